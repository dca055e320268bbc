from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.data import affnist
from gencaps.data.images import ImageSet
from gencaps.errors import GencapsError
from tests.data.helpers import rng


def digits(n: int, seed: int = 0) -> ImageSet:
    """Makes blobs in the central 20 x 20 of 28 x 28, as MNIST's digits are."""
    x = torch.zeros(n, 1, 28, 28, dtype=torch.uint8)
    x[:, 0, 4:24, 4:24] = torch.from_numpy(rng(seed).integers(40, 256, (n, 20, 20), dtype=np.uint8))
    return ImageSet("mnist", x, torch.arange(n) % 10, tuple("0123456789"))


def unmoved(n: int) -> torch.Tensor:
    """Gives numbers for no turn, no shear and no growth."""
    return torch.full((n, 6), 0.5)


def test_no_map_and_a_place_is_a_plain_shift() -> None:
    x = digits(3).x
    u = unmoved(3)
    u[:, 4:] = torch.tensor([[0.0, 0.0], [0.999, 0.0], [0.5, 0.999]])
    placed = affnist.place(x, u)
    ink = x[:, 0, 4:24, 4:24]
    # 20 x 20 of ink has 40 - 20 + 1 = 21 places each way: 0 to 20; 0.5 is the eleventh
    for picture, original, (top, left) in zip(placed, ink, [(0, 0), (20, 0), (10, 20)], strict=True):
        assert torch.equal(picture[0, top : top + 20, left : left + 20], original)
        assert int((picture > 0).sum()) == 400


@given(u=st.lists(st.sampled_from([0.0, 0.5, 0.999999]), min_size=6, max_size=6))
@settings(max_examples=60, deadline=None)
def test_the_digit_stays_whole_at_the_ends_of_every_range(u: list[float]) -> None:
    x = digits(1).x
    numbers = torch.tensor([u])
    placed = affnist.place(x, numbers)
    centred = numbers.clone()
    centred[:, 4:] = 0.5
    # the same ink wherever it is put: nothing was cut off
    assert int(placed.sum(dtype=torch.int64)) == int(affnist.place(x, centred).sum(dtype=torch.int64))
    grow = (0.8 + 0.4 * u[2]) * (0.8 + 0.4 * u[3])
    mass = int(x.sum(dtype=torch.int64))
    assert float(placed.sum(dtype=torch.int64)) == pytest.approx(mass * grow, rel=0.03)


def test_turning_and_shearing_go_the_stated_way() -> None:
    bar = torch.zeros(1, 1, 28, 28, dtype=torch.uint8)
    bar[0, 0, 4:24, 13:15] = 255
    u = unmoved(2)
    u[0, 0] = 1.0  # 20 degrees counter-clockwise: the top leans left
    u[1, 1] = 1.0  # sheared by 0.2: the bottom moves right, so the top leans left too
    turned, sheared = affnist.place(bar.expand(2, -1, -1, -1), u)[:, 0].float()
    columns = torch.arange(40.0)
    for picture, slope in ((turned, -np.tan(np.radians(20))), (sheared, -0.2)):
        rows = picture.sum(1).nonzero()[:, 0]
        first, last = int(rows[3]), int(rows[-4])
        top, bottom = ((picture[r] * columns).sum() / picture[r].sum() for r in (first, last))
        assert float((top - bottom) / (last - first)) == pytest.approx(slope, abs=0.03)


def test_regenerating_is_fixed_by_the_seed_and_labelled_so() -> None:
    whole = digits(40)
    first, again, other = (affnist.regenerate(whole, seed) for seed in (1, 1, 2))
    assert torch.equal(first.x, again.x)
    assert not torch.equal(first.x, other.x)
    assert first.name == "affNIST (regenerated)"
    assert "not the original" in first.notes[0]
    assert torch.equal(first.y, whole.y)
    assert first.x.shape == (40, 1, 40, 40)


def test_chunks_do_not_matter() -> None:
    whole, u = digits(40), torch.rand(40, 6)
    assert torch.equal(affnist._placed(whole, u, chunk=16), affnist.place(whole.x, u))


def box(picture: torch.Tensor) -> tuple[int, int, torch.Tensor]:
    """Finds where a picture's ink begins, down and right, and cuts it out."""
    rows, columns = (picture.sum(other, dtype=torch.int64).nonzero()[:, 0] for other in (1, 0))
    top, left = int(rows[0]), int(columns[0])
    return top, left, picture[top : int(rows[-1]) + 1, left : int(columns[-1]) + 1]


def test_placed_digits_are_moved_and_nothing_else() -> None:
    whole = digits(60)
    whole.x[::2, 0, 4:9] = 0  # some are 15 x 20
    moved = affnist.placed(whole, 0)
    assert moved.x.shape == (60, 1, 40, 40)
    assert moved.name == "mnist_to_affnist"
    assert torch.equal(moved.y, whole.y)
    assert moved.names == whole.names
    for before, after in zip(whole.x[:, 0], moved.x[:, 0], strict=True):
        # the same bright values, so nothing is lost at the edge, and in the same arrangement
        assert torch.equal(before[before > 0].sort().values, after[after > 0].sort().values)
        assert torch.equal(box(before)[2], box(after)[2])


def test_placed_digits_take_every_place_that_keeps_them_whole() -> None:
    moved = affnist.placed(digits(600), 0).x[:, 0]
    places = torch.tensor([box(picture)[:2] for picture in moved])
    # 40 - 20 + 1 = 21 places down and as many right, drawn one apart from the other
    assert [sorted(set(axis.tolist())) for axis in places.T] == [list(range(21))] * 2
    assert abs(torch.corrcoef(places.T.double())[0, 1].item()) < 0.15


def test_placing_is_fixed_by_the_seed() -> None:
    first, again, other = (affnist.placed(digits(30), seed) for seed in (1, 1, 2))
    assert torch.equal(first.x, again.x)
    assert not torch.equal(first.x, other.x)
    assert "seed 1" in first.notes[0]


def test_an_empty_picture_stays_empty() -> None:
    assert int(affnist.place(torch.zeros(1, 1, 28, 28, dtype=torch.uint8), unmoved(1)).sum()) == 0


def write_mat(path: Path, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from scipy.io import savemat

    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = rng(seed).integers(0, 256, (1600, n), dtype=np.uint8)
    labels = (np.arange(n) % 10).astype(np.uint8)
    savemat(path, {"affNISTdata": {"image": pixels, "label_int": labels[None], "affine_params": np.zeros((6, n))}})
    return pixels, labels


def test_original_files_are_read_batch_after_batch(tmp_path: Path) -> None:
    batches = tmp_path / "transformed" / "training_and_validation_batches"
    parts = [write_mat(batches / f"{k}.mat", 3, k) for k in (1, 2, 10)]
    write_mat(tmp_path / "transformed" / "test_batches" / "1.mat", 1, 5)
    assert affnist.is_here(tmp_path)
    splits = affnist.read(tmp_path)
    assert splits.train.name == "affNIST (original)"
    assert (len(splits.train), len(splits.test)) == (9, 1)
    # the last batch is number 10; a column holds a picture row by row
    assert int(splits.train.x[7, 0, 2, 5]) == parts[2][0][2 * 40 + 5, 1]
    assert splits.train.y.tolist() == [0, 1, 2] * 3


def test_a_damaged_original_is_named(tmp_path: Path) -> None:
    path = tmp_path / "1.mat"
    path.write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    with pytest.raises(GencapsError, match=r"1.mat is no affNIST file"):
        affnist.read_mat(path)
