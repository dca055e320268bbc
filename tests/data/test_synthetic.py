from __future__ import annotations

import hashlib

import pytest
import torch
from torch import Tensor

from gencaps.data import face, synthetic
from gencaps.data.catalog import FACES, faces_asked
from gencaps.data.synthetic import NAMES, NUISANCE, STYLES, Faces, draw, faces, region, sample
from gencaps.errors import GencapsError
from tests.helpers import refused

N = 12


@pytest.fixture(scope="module")
def numbers() -> Faces:
    return sample(N, 7)


def with_attribute(numbers: Faces, name: str, value: int, others: int | None = None) -> Tensor:
    attributes = numbers.attributes.clone() if others is None else torch.full_like(numbers.attributes, others)
    attributes[:, NAMES.index(name)] = value
    return attributes


def changed(a: Tensor, b: Tensor) -> Tensor:
    """Marks the pixels in which two batches differ."""
    return (a != b).any(1)


@pytest.mark.parametrize("size", [32, 64, 128])
def test_faces_have_the_size_asked_for_and_are_fixed_by_the_seed(size: int) -> None:
    first, again, other = (faces(5, size, seed) for seed in (1, 1, 2))
    assert first.x.shape == (5, 3, size, size)
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.y, again.y)
    assert not torch.equal(first.x, other.x)
    assert first.labels == "attributes"
    assert first.names == NAMES


def test_faces_are_the_same_wherever_they_are_drawn() -> None:
    # of another version of torch, too: a run's data is known by its bytes
    assert hashlib.sha256(faces(40, 64, 3).x.numpy().tobytes()).hexdigest()[:16] == "1f54c314adf096f4"


def test_a_face_does_not_depend_on_those_drawn_beside_it(numbers: Faces) -> None:
    whole = draw(*numbers, 32)
    alone = draw(*Faces(*(part[4:5] for part in numbers)), 32)
    assert torch.equal(whole[4:5], alone)


def test_labels_are_the_attributes_drawn(numbers: Faces) -> None:
    made = faces(N, 32, 7)
    assert torch.equal(made.y, numbers.attributes)
    assert torch.equal(made.x, draw(*numbers, 32))


@pytest.mark.parametrize("others", [0, None, 1], ids=["alone", "mixed", "crowded"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [32, 64])
def test_an_attribute_changes_its_region_only(numbers: Faces, name: str, others: int | None, size: int) -> None:
    off, on = (
        draw(with_attribute(numbers, name, value, others), numbers.styles, numbers.nuisance, size) for value in (0, 1)
    )
    different, allowed = changed(off, on), region(name, numbers.nuisance, size)
    assert not bool((different & ~allowed).any())
    if others != 1:  # every face shows it; in a crowd a hat may hide short bangs
        assert bool(different.flatten(1).any(1).all())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("style", range(3))
def test_a_style_moves_pixels_of_its_attribute_only_and_more_when_further(
    numbers: Faces, name: str, style: int
) -> None:
    attributes = with_attribute(numbers, name, 1, 0)
    pictures = []
    for value in (0.0, 0.1, 1.0):
        styles = numbers.styles.clone()
        styles[:, NAMES.index(name), style] = value
        pictures.append(draw(attributes, styles, numbers.nuisance, 64))
    low, near, far = pictures
    assert not bool((changed(low, far) & ~region(name, numbers.nuisance, 64)).any())
    small, large = ((low.int() - other.int()).abs().sum((1, 2, 3)) for other in (near, far))
    assert bool((large > 0).all()), STYLES[name][style]
    assert bool((large > small).all()), STYLES[name][style]


def test_styles_of_absent_attributes_have_no_effect(numbers: Faces) -> None:
    nothing = torch.zeros_like(numbers.attributes)
    assert torch.equal(
        draw(nothing, numbers.styles, numbers.nuisance, 32),
        draw(nothing, 1 - numbers.styles, numbers.nuisance, 32),
    )


@pytest.mark.parametrize("k", range(len(NUISANCE)), ids=NUISANCE)
def test_every_nuisance_changes_the_picture(numbers: Faces, k: int) -> None:
    low, high = numbers.nuisance.clone(), numbers.nuisance.clone()
    low[:, k], high[:, k] = 0.0, 1.0
    nothing = torch.zeros_like(numbers.attributes)
    a, b = (draw(nothing, numbers.styles, nuisance, 64) for nuisance in (low, high))
    assert bool(changed(a, b).flatten(1).any(1).all())


@pytest.mark.parametrize("size", [32, 64, 128])
def test_computing_only_the_boxes_of_the_layers_loses_nothing(
    numbers: Faces, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    extreme = numbers.nuisance.clone()
    for k, name in enumerate(NUISANCE):
        if name in ("right", "down", "scale", "tilt", "width"):
            extreme[:, k] = (torch.arange(N) // 2 ** (k % 3) % 2).float()
    quick = draw(numbers.attributes, numbers.styles, extreme, size)
    whole = (-9.0, -9.0, 9.0, 9.0)
    monkeypatch.setattr(face, "LAYERS", tuple(layer._replace(box=whole) for layer in face.LAYERS))
    assert torch.equal(quick, draw(numbers.attributes, numbers.styles, extreme, size))


def test_small_faces_are_the_large_ones_seen_from_afar(numbers: Faces) -> None:
    large = draw(*numbers, 128).float()
    small = draw(*numbers, 32).float()
    averaged = torch.nn.functional.avg_pool2d(large, 4)
    assert (averaged - small).abs().mean() < 6  # without smooth edges it would be far more


def test_attributes_are_even_and_independent() -> None:
    attributes = sample(4000, 0).attributes.float()
    assert (attributes.mean(0) - 0.5).abs().max() < 0.04
    correlation = torch.corrcoef(attributes.T) - torch.eye(len(NAMES))
    assert correlation.abs().max() < 0.07


@pytest.mark.parametrize("size", [31, 129])
def test_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(GencapsError, match=f"faces of {size} pixels"):
        faces(1, size)


def test_an_unknown_attribute_is_refused_with_the_nearest(numbers: Faces) -> None:
    with pytest.raises(GencapsError, match="did you mean 'Eyeglasses'"):
        region("Eyeglases", numbers.nuisance, 32)
    assert set(synthetic.BOXES) == set(NAMES)


def test_a_number_of_faces_is_for_training_and_a_fifth_of_it_for_the_test() -> None:
    assert faces_asked("faces") == FACES
    assert faces_asked("faces:60") == (60, 12)
    assert faces_asked("faces:14") == (14, 2)
    assert faces_asked("faces:10") == (10, 2)
    assert faces_asked("faces:1000000") == (1_000_000, 200_000)
    for spec in (
        "faces:9",
        "faces:0",
        "faces:-20",
        "faces:1000001",
        "faces:1e3",
        "faces:ten",
        "faces: 20",
        "faces:2.5",
    ):
        refused(lambda spec=spec: faces_asked(spec), f"'{spec}'", "from 10 to 1000000")
