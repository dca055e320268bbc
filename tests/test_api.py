"""The Python face: named results, the same for the same seed, and one line for what cannot be done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import gencaps
from gencaps.abilities import ABILITIES, Classified
from gencaps.api import Capsules
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Step
from gencaps.painted import Classification, Painted
from gencaps.primitives.noise import Noise
from tests.helpers import refused


class Bare(CapsuleModel):
    """A model that can do nothing but be trained."""

    paper = "bare"

    def __init__(self, labels: Any = "classes") -> None:
        super().__init__(None, PictureInfo(1, 8, ("cat", "dog", "owl"), labels, "pets"))
        self.weight = nn.Parameter(torch.zeros(()))

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        raise NotImplementedError


class Mirror(Bare):
    """Paints pictures without knowing what they show."""

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        return x.flip(-1)

    def resample(self, x: Pictures, noise: Noise, only: Tensor | None = None) -> Pictures:
        return x + self.weight

    def interpolate(self, start: Pictures, end: Pictures, steps: int, only: Tensor | None = None) -> Tensor:
        return torch.stack([torch.lerp(start, end, share) for share in torch.linspace(0, 1, steps)], 1)


class Painter(Bare):
    """Paints a class's index as brightness: 0.0, 0.1 or 0.2."""

    def generate(self, y: Labelling, noise: Noise) -> Pictures:
        return (y / 10)[:, None, None, None].expand(-1, 1, 8, 8)


class Dreamer(Bare):
    """Paints what it likes, and takes bright pictures for real ones."""

    def sample(self, n: int, noise: Noise) -> Pictures:
        return noise.uniform(n, 1, 8, 8)

    def score(self, x: Pictures) -> Tensor:
        return x.mean((1, 2, 3))


class Attributes(Bare):
    """Sees the first two attributes in every picture."""

    def classify(self, x: Pictures) -> Classified:
        return Classified(
            torch.tensor([[0.9, 0.8, 0.1]]).repeat(len(x), 1), torch.tensor([[1, 1, 0]]).repeat(len(x), 1)
        )


def test_classification_has_names(a: Path, b: Path, model: Capsules) -> None:
    seen = model.classify([a, b])
    assert isinstance(seen, Classification)
    assert seen.names == model.names == tuple("0123456789")
    assert seen.presence.shape == (2, 10)
    torch.testing.assert_close(seen.presence.sum(1), torch.ones(2))
    assert seen.label == [seen.names[i] for i in seen.presence.argmax(1).tolist()]
    assert torch.equal(model.presence([a, b]), seen.presence)
    assert not seen.presence.requires_grad


def test_attributes_are_listed_by_name() -> None:
    seen = Capsules(Attributes("attributes")).classify(np.zeros((2, 8, 8)))
    assert seen.label == ["cat, dog", "cat, dog"]


def test_a_batch_is_answered_like_its_pictures_one_by_one(a: Path, b: Path, model: Capsules) -> None:
    given = [a, b, np.zeros((8, 8)), np.ones((8, 8))]
    batch, single = model.classify(given), [model.classify(one) for one in given]
    assert batch.label == [one.label[0] for one in single]
    torch.testing.assert_close(batch.presence, torch.cat([one.presence for one in single]), rtol=1e-4, atol=1e-6)
    painted = torch.cat([model.reconstruct(one).pictures for one in given])
    torch.testing.assert_close(model.reconstruct(given).pictures, painted, rtol=1e-4, atol=1e-5)
    for whole, parts in zip(model.encode(given), zip(*map(model.encode, given), strict=True), strict=True):
        torch.testing.assert_close(whole, torch.cat(parts), rtol=1e-4, atol=1e-4)


def test_capsules_have_the_names_of_the_paper(a: Path, model: Capsules) -> None:
    code = model.encode(a)
    assert code._fields == ("mu", "log_var", "kl")
    assert code.mu.shape == code.log_var.shape == (1, 10, 8)
    assert model.classify(a).label == [model.names[int(code.kl.argmin())]]


def test_reconstruction_is_fixed_without_noise_and_by_seed_with_it(a: Path, b: Path, model: Capsules) -> None:
    plain = model.reconstruct([a, b])
    assert isinstance(plain, Painted)
    assert plain.pictures.shape == (2, 1, 8, 8)
    assert plain.pictures.min() >= 0
    assert plain.pictures.max() <= 1
    assert plain.labels == model.classify([a, b]).label
    assert torch.equal(plain.pictures, model.reconstruct([a, b], seed=1).pictures)
    drawn = [model.reconstruct([a, b], sample=True, seed=seed).pictures for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], plain.pictures)


def test_reconstruction_resembles_its_picture_more_than_another(a: Path, b: Path, model: Capsules) -> None:
    x, painted = model.pictures([a, b]), model.reconstruct([a, b]).pictures
    own, other = (painted - x).square().mean(), (painted - x.flip(0)).square().mean()
    assert own < 0.5 * other


def test_generate_takes_names_indices_and_all() -> None:
    model = Capsules(Painter())
    shown: list[tuple[Any, list[float]]] = [
        ("dog", [0.1]),
        (2, [0.2]),
        (["owl", 0], [0.2, 0.0]),
        (("dog", "dog"), [0.1, 0.1]),
        (np.array([2, 1]), [0.2, 0.1]),
        (None, [0.0, 0.1, 0.2]),
    ]
    for classes, light in shown:
        made = model.generate(classes, n=3)
        assert made.labels == [model.names[round(10 * value)] for value in light]
        assert made.columns == 3
        found = made.pictures[:, 0, 0, 0].tolist()  # one row of three for each class, in the order asked
        assert found == pytest.approx([value for value in light for _ in range(3)])


def test_same_seed_same_picture_and_other_seed_another(model: Capsules) -> None:
    first, again, other = (model.generate("3", n=4, seed=seed).pictures for seed in (5, 5, 6))
    assert first.shape == (4, 1, 8, 8)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[0], first[1])
    assert torch.equal(first, model.generate(3, n=4, seed=5).pictures)
    assert model.generate().pictures.shape == (80, 1, 8, 8)


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ("dgo", ["'dgo'", "did you mean 'dog'?"]),
        (3, ["'3'"]),
        (-1, ["'-1'"]),
        ([0, "lion"], ["'lion'", "cat, dog, owl"]),
        ([1.0], ["'1.0'"]),
        ([], ["no class was named", "cat, dog, owl"]),
    ],
)
def test_a_class_that_is_not_known_is_refused_by_name(classes: Any, words: list[str]) -> None:
    refused(lambda: Capsules(Painter()).generate(classes), *words)


def test_counts_and_seeds_that_make_no_sense_are_refused(a: Path, b: Path, model: Capsules) -> None:
    refused(lambda: model.generate(n=0), "n is 0")
    refused(lambda: model.resample(a, n=0), "n is 0")
    refused(lambda: model.resample(a, n=-2), "n is -2")
    refused(lambda: model.interpolate(a, b, steps=1), "steps is 1")
    refused(lambda: model.generate(seed=2**70), f"seed is {2**70}")
    refused(lambda: model.generate(seed=-1), "seed is -1")


def test_resampling_gives_each_picture_a_row_of_styles(a: Path, b: Path, model: Capsules) -> None:
    made = model.resample([a, b], n=3, seed=2)
    assert made.pictures.shape == (6, 1, 8, 8)
    assert made.labels == model.classify([a, b]).label
    assert made.columns == 3
    assert torch.equal(made.pictures, model.resample([a, b], n=3, seed=2).pictures)
    # the styles are drawn from the prior for the class that was seen: what generate paints of it
    painted = model.generate(made.labels, n=3, seed=2).pictures
    torch.testing.assert_close(made.pictures, painted)


def test_a_walk_goes_from_the_first_picture_to_the_second(a: Path, b: Path, model: Capsules) -> None:
    walk = model.interpolate([a, b], [b, a], steps=5)
    assert walk.pictures.shape == (10, 1, 8, 8)
    assert walk.columns == 5
    first, last = model.classify([a, b]).label
    assert walk.labels == [f"{first} to {last}", f"{last} to {first}"]
    ends = model.reconstruct([a, b]).pictures
    torch.testing.assert_close(walk.pictures[[0, 4]], ends)
    torch.testing.assert_close(walk.pictures[5:], walk.pictures[:5].flip(0))


def test_a_walk_needs_as_many_ends_as_starts(a: Path, b: Path, model: Capsules) -> None:
    refused(lambda: model.interpolate([a, b], [b]), "2 pictures to start from and 1 to end at")


def test_painted_pictures_can_be_looked_at_and_saved(tmp_path: Path, model: Capsules) -> None:
    made = model.generate(["1", "7"], n=3)
    images = made.images()
    assert [(image.size, image.mode) for image in images] == [((8, 8), "L")] * 6
    assert np.array_equal(np.asarray(images[4]), (made.pictures[4, 0] * 255).round().byte().numpy())
    path = made.save(tmp_path / "made.png")
    assert path == tmp_path / "made.png"
    assert np.array_equal(np.asarray(Image.open(path)), np.asarray(made.grid()))
    refused(lambda: made.save(tmp_path / "made.docx"), "made.docx")


def test_can_lists_what_the_model_has_methods_for(model: Capsules) -> None:
    assert model.can == ("classify", "encode", "reconstruct", "generate", "edit", "resample", "interpolate", "turn")
    assert Capsules(Bare()).can == ()
    assert Capsules(Mirror()).can == ("reconstruct", "resample", "interpolate")
    assert Capsules(Painter()).can == ("generate",)
    assert Capsules(Dreamer()).can == ("sample", "score")


CALLS: dict[str, Callable[[Capsules], object]] = {
    "classify": lambda m: m.classify(np.zeros((8, 8))),
    "encode": lambda m: m.encode(np.zeros((8, 8))),
    "reconstruct": lambda m: m.reconstruct(np.zeros((8, 8))),
    "generate": lambda m: m.generate(),
    "draw": lambda m: m.generate(capsule=0),
    "walk": lambda m: m.walk(),
    "explore": lambda m: m.explore(0),
    "score": lambda m: m.score(np.zeros((8, 8))),
    "edit": lambda m: m.edit(np.zeros((8, 8)), "3"),
    "resample": lambda m: m.resample(np.zeros((8, 8))),
    "interpolate": lambda m: m.interpolate(np.zeros((8, 8)), np.ones((8, 8))),
    "refine": lambda m: m.refine(np.zeros((8, 8)), 2),
    "explain": lambda m: m.explain(np.zeros((8, 8))),
    "parse": lambda m: m.parse(np.zeros((8, 8))),
    "place": lambda m: m.place(),
    "move": lambda m: m.move(np.zeros((8, 8)), right=0.5),
    "show templates": lambda m: m.templates(),
    "turn": lambda m: m.turn(np.zeros((8, 8)), {"3.0": 1.0}),
}


def test_every_ability_can_be_asked_for() -> None:
    assert {*CALLS, "sample"} == set(ABILITIES)  # a model that samples is asked to generate


@pytest.mark.parametrize("ability", CALLS)
def test_what_a_model_lacks_is_refused_with_what_it_can(ability: str) -> None:
    lacking: Capsules = Capsules(Mirror()) if ability in ("classify", "encode", "generate") else Capsules(Painter())
    refused(lambda: CALLS[ability](lacking), f"this bare model cannot {ability}; it can {', '.join(lacking.can)}")


def test_a_model_that_cannot_classify_still_paints() -> None:
    """The labels are left empty; asking for a reconstruction is not refused for want of a classifier."""
    model, x = Capsules(Mirror()), np.zeros((2, 8, 8))
    x[:, :, 0] = 1
    painted = model.reconstruct(x)
    assert painted.labels == ["", ""]
    assert painted.pictures[..., -1].min() == 1
    assert model.resample(x, n=2).labels == ["", ""]
    walk = model.interpolate(x, x, steps=3)
    assert walk.labels == ["", ""]
    assert len(walk.pictures) == 6
    assert painted.grid().size[0] > 8


def test_the_name_of_a_model_says_what_it_knows_and_can(model: Capsules) -> None:
    assert repr(model) == (
        "Capsules(variational on digits: 10 classes, 8 px grey; "
        "can classify, encode, reconstruct, generate, edit, resample, interpolate, turn)"
    )


def test_a_model_saved_and_loaded_answers_the_same(tmp_path: Path, a: Path, b: Path, model: Capsules) -> None:
    folder = model.save_pretrained(tmp_path / "deep" / "model")
    assert folder == tmp_path / "deep" / "model"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    again = gencaps.load(str(folder), device="cpu")
    assert repr(again) == repr(model)
    assert again.info == model.info
    assert torch.equal(again.presence([a, b]), model.presence([a, b]))
    assert torch.equal(again.generate(seed=3).pictures, model.generate(seed=3).pictures)


def test_a_loaded_model_is_not_in_training_mode(model: Capsules) -> None:
    assert not any(module.training for module in model.model.modules())
    assert Capsules(Bare().train()).model.training is False


def test_a_model_without_classes_paints_what_it_likes() -> None:
    model = Capsules(Dreamer())
    sheet = model.generate(n=23)
    assert (len(sheet.pictures), sheet.columns, sheet.labels) == (23, 10, ["", "", ""])
    assert sheet.grid().width < 11 * 66
    made, again, other = (model.generate(n=5, seed=seed) for seed in (1, 1, 2))
    assert made.pictures.shape == (5, 1, 8, 8)
    assert torch.equal(made.pictures, again.pictures)
    assert not torch.equal(made.pictures, other.pictures)
    assert (made.labels, made.columns) == ([""], 5)
    assert made.grid().size[0] > 5 * 8
    assert len(model.generate().pictures) == 8


@pytest.mark.parametrize("classes", ["cat", 0, ["dog"], []])
def test_a_model_without_classes_is_not_asked_for_one(classes: Any) -> None:
    refused(lambda: Capsules(Dreamer()).generate(classes), "bare", "knows no classes")
    refused(lambda: Capsules(Dreamer()).generate(n=0), "n is 0")


def test_scores_are_one_number_a_picture() -> None:
    given = np.stack([np.zeros((8, 8)), np.ones((8, 8)), np.full((8, 8), 0.25)])
    torch.testing.assert_close(Capsules(Dreamer()).score(given), torch.tensor([0.0, 1.0, 0.25]), atol=0.003, rtol=0)


@pytest.fixture(scope="module")
def gan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trains a GAN on the digits for one epoch."""
    from gencaps.cli import main

    run = tmp_path_factory.mktemp("gan") / "run"
    words = ["train", "gan", "--data", "digits", "--out", str(run), "--quiet", "--device", "cpu"]
    assert main([*words, "--train.epochs", "1"]) == 0
    return run


def test_a_gan_generates_and_scores(gan: Path, a: Path, b: Path) -> None:
    model = gencaps.load(gan, "cpu")
    assert model.can == ("sample", "walk", "score")
    made, again, other = (model.generate(n=4, seed=seed).pictures for seed in (3, 3, 4))
    assert made.shape == (4, 1, model.info.size, model.info.size)
    assert made.min() >= 0
    assert made.max() <= 1
    assert torch.equal(made, again)
    assert not torch.equal(made, other)
    scores = model.score([a, b])
    assert scores.shape == (2,)
    assert scores.min() >= 0
    assert scores.max() <= 1
    torch.testing.assert_close(scores[:1], model.score(a), rtol=1e-4, atol=1e-5)
    refused(lambda: model.generate("3"), "gan", "knows no classes")
    refused(lambda: model.classify(a), "this gan model cannot classify; it can sample, walk, score")


def test_the_report_of_a_gan_shows_its_pictures_without_class_names(gan: Path) -> None:
    text = (gan / "report.html").read_text()
    assert text.count('alt="generated picture ') == 40
    assert 'alt="generated 3, draw 1"' not in text
    assert "Painted from random numbers alone" in text
    assert "read as asked" not in text
