"""Measures on models whose answers are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from gencaps import data
from gencaps.abilities import Classified
from gencaps.data.images import ImageSet, Splits
from gencaps.engine.evaluate import pixels
from gencaps.engine.probe import latents
from gencaps.engine.recipe import make_recipe
from gencaps.engine.run import Run
from gencaps.engine.train import Trained
from gencaps.figures import grid
from gencaps.metrics.classification import accuracy
from gencaps.metrics.neighbors import nearest
from gencaps.metrics.spreading import predict_labels, spread_labels
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Step
from gencaps.papers.probabilistic.capsules import Layer
from gencaps.papers.probabilistic.config import ProbabilisticConfig
from gencaps.primitives.noise import Noise
from gencaps.reproduce import subject as subject_module
from gencaps.reproduce.judge import Judge, as_judge
from gencaps.reproduce.measures import classify, experts, figures, generation, probes, spreading
from gencaps.reproduce.subject import Measured, Subject, generate, sample
from tests.helpers import refused


class Stub(CapsuleModel):
    """A model that knows its pictures."""

    paper = "stub"

    def __init__(self, images: ImageSet) -> None:
        super().__init__(None, PictureInfo.of(images))
        self.weight = nn.Parameter(torch.ones(()))

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        raise NotImplementedError


class Reader(Stub):
    """Sees in a picture what its first pixel says: presences by the byte."""

    def __init__(self, images: ImageSet, table: list[Classified]) -> None:
        super().__init__(images)
        self.table = table

    def classify(self, x: Pictures) -> Classified:
        rows = [self.table[int(byte)] for byte in (255 * x[:, 0, 0, 0]).round().tolist()]
        return Classified(*(torch.stack(column) for column in zip(*rows, strict=True)))


class Copyist(Stub):
    """Paints the training pictures of the class asked for, or of the one after it."""

    def __init__(self, train: ImageSet, off: int = 0, only: int | None = None) -> None:
        super().__init__(train)
        self.train_set, self.off, self.only = train, off, only

    def generate(self, y: Labelling, noise: Noise) -> Pictures:
        classes = len(self.pictures.names)
        index = [(self.train_set.y == k).nonzero()[:, 0] for k in range(classes)]
        wanted = ((y + self.off) % classes).tolist() if self.only is None else [self.only] * len(y)
        share = noise.uniform(len(y)).tolist()
        chosen = [int(index[k][int(u * len(index[k]))]) for k, u in zip(wanted, share, strict=True)]
        return pixels(self.train_set.x[torch.tensor(chosen)])


class Tray(Stub):
    """Paints the training pictures in turn, whatever is asked."""

    def __init__(self, train: ImageSet) -> None:
        super().__init__(train)
        self.train_set, self.asked = train, []

    def sample(self, n: int, noise: Noise) -> Pictures:
        self.asked.append(n)
        return pixels(self.train_set.x[torch.arange(n) % len(self.train_set)])


def no_judge(run: Run) -> Judge:
    raise AssertionError("this measure needs no judge")


def look(model: CapsuleModel, splits: Splits, judge: Judge | None = None, **fields: Any) -> Subject:
    run = Run(Path("nowhere"), make_recipe("resnet", preset="small", data="digits"))
    find = no_judge if judge is None else lambda run: judge
    return Subject((Trained(run, model, splits),), fields.pop("seed", 0), find, **fields)


@pytest.fixture(scope="module")
def digits() -> Splits:
    return data.load("digits", valid=0.0)


@pytest.fixture(scope="module")
def judge(resnet: Trained) -> Judge:
    return as_judge(resnet)


def numbered(y: Tensor, names: tuple[str, ...], labels: Any = "classes") -> ImageSet:
    """Makes pictures whose bytes are their numbers."""
    x = torch.arange(len(y), dtype=torch.uint8)[:, None, None, None].expand(-1, 1, 8, 8).contiguous()
    return ImageSet("hand", x, y, names, labels)


def test_classification_by_hand() -> None:
    """Labels 0 0 0 1, read as 0 0 1 1: 3 of 4 right; of class 0 two thirds, of class 1 all: 5/6 balanced.

    Confidences 0.9 0.8 0.6 0.7: bins hold one each, so the error is (0.1 + 0.2 + 0.6 + 0.3) / 4 = 0.3.
    """
    test = numbered(torch.tensor([0, 0, 0, 1]), ("no", "yes"))
    presence = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    table = [Classified(p, p.argmax()) for p in presence]
    found = classify.classification(look(Reader(test, table), Splits(test, test[:0], test)))
    assert found.values == {
        "accuracy_percent": pytest.approx(75),
        "error_percent": pytest.approx(25),
        "balanced_percent": pytest.approx(100 * 5 / 6),
        "calibration_error": pytest.approx(0.3, abs=1e-6),
    }


def test_lengths_of_capsules_have_no_calibration() -> None:
    test = numbered(torch.tensor([0, 1]), ("no", "yes"))
    table = [Classified(torch.tensor(p), torch.tensor(p).argmax()) for p in ([0.9, 0.3], [0.2, 0.8])]
    found = classify.classification(look(Reader(test, table), Splits(test, test[:0], test)))
    assert found.values["error_percent"] == 0
    assert "calibration_error" not in found.values


def test_attributes_by_hand() -> None:
    """Attribute A is 1 1 1 0 and read 1 1 0 1 (2 of 4); B is 0 0 0 1 and read so (4 of 4).

    Balanced: A (2/3 + 0) / 2 = 1/3, B 1. In training A is mostly 0 and B mostly 0: right for 1/4 and 3/4.
    """
    y = torch.tensor([[1, 0], [1, 0], [1, 0], [0, 1]])
    test = numbered(y.byte(), ("5_o_Clock_Shadow", "Bald"), "attributes")
    train = numbered(torch.tensor([[0, 0], [0, 0], [1, 1]], dtype=torch.uint8), test.names, "attributes")
    read = torch.tensor([[1, 0], [1, 0], [0, 0], [1, 1]])
    table = [Classified(row.float(), row) for row in read]
    found = classify.attributes(look(Reader(test, table), Splits(train, train[:0], test)))
    assert found.values == {
        "5-o-clock-shadow": pytest.approx(50),
        "bald": pytest.approx(100),
        "average": pytest.approx(75),
        "least": pytest.approx(50),
        "balanced": pytest.approx(100 * (1 / 3 + 1) / 2),
        "majority": pytest.approx(50),
    }


def test_attributes_are_named_as_the_claims_of_table_1_name_them() -> None:
    from gencaps.reproduce.claims import book

    claims = book().claims.values()
    columns = {
        c.id.split(".")[-1]: c.at.split("column ")[1] for c in claims if c.id.startswith("variational.celeba.moon")
    }
    assert len(columns) == 41
    assert all(classify.dashed(name) == column for column, name in columns.items())


def test_training_time_is_that_of_all_epochs(resnet: Trained) -> None:
    one = replace(look(resnet.model, resnet.splits), trained=(resnet,))
    both = replace(one, trained=(resnet, resnet))
    seconds = sum(row["seconds"] for row in resnet.run.rows() if row["split"] == "train")
    assert classify.training(one).values == {"seconds": seconds, "minutes": pytest.approx(seconds / 60)}
    assert classify.training(both).values["seconds"] == pytest.approx(2 * seconds)


class Gaussian(NamedTuple):
    mu: Tensor
    log_var: Tensor


class Encoder(Stub):
    """Its means are the pixels, its variances are 4."""

    def encode(self, x: Pictures) -> Gaussian:
        mu = x.flatten(1)
        return Gaussian(mu, torch.full_like(mu, 4.0).log())


def test_latents_are_means_then_deviations(digits: Splits) -> None:
    x = pixels(digits.test.x[:3])
    found = latents(Encoder(digits.test), x)
    torch.testing.assert_close(found, torch.cat([x.flatten(1), torch.full((3, 64), 2.0)], 1))


def test_a_probe_reads_the_class_off_the_latents_and_worse_off_turned_pictures(digits: Splits) -> None:
    found = probes.probe(look(Encoder(digits.test), digits)).values
    assert 0.9 < found["rotated-0"] < 1
    assert found["rotated-180"] < found["rotated-45"] < found["rotated-0"]


def test_a_probe_of_a_model_of_turned_pictures_sees_turned_ones(digits: Splits) -> None:
    upright = look(Encoder(digits.test), digits)
    run = Run(Path("nowhere"), make_recipe("vae", preset="small", overrides={"train": {"degrees": 180.0}}))
    turned = replace(upright, trained=(Trained(run, upright.model, digits),))
    a, b = (probes.probe(one).values for one in (upright, turned))
    assert b["rotated-180"] > a["rotated-180"] + 0.02
    assert b["rotated-0"] < a["rotated-0"]
    for one, column, seen in ((upright, "rotated-0", a), (turned, "rotated-180", b)):
        assert probes.probe_alike(one).values == {"test": seen[column]}


class Sides(Stub):
    """A scene whose objects are the pixels where it looks from several sides, and nothing where from one."""

    def __init__(self, images: ImageSet) -> None:
        super().__init__(images)
        self.config = ProbabilisticConfig(capsules=(64, 2), turns=3)

    def encode(self, x: Pictures) -> Any:
        seen = x.flatten(1) * (self.config.turns > 1)
        zeros = torch.zeros(len(x), 64, 2, 3)
        return SimpleNamespace(objects=Layer(seen, zeros, zeros))


def test_a_scene_is_read_from_one_side_where_that_is_asked_and_from_all_after(digits: Splits) -> None:
    subject = look(Sides(digits.test), digits)
    one, all_sides = probes.probe_scene_one_side(subject).values, probes.probe_scene(subject).values
    assert one["t0-rotated-0"] < 0.2
    assert all_sides["t0-rotated-0"] > 0.9
    assert all_sides["t0-rotated-0"] == probes.probe_scene_alike(subject).values["t0-test"]


def among(points: Tensor, new: Tensor) -> spreading.Unlabelled:
    return spreading.Unlabelled(points, nearest(points, points, 9), nearest(new, points, 9))


def test_labels_spread_within_clusters() -> None:
    """Two rows of points far apart, one label in each; with the labels exchanged everything is wrong."""
    row = torch.linspace(0, 1, 7)[:, None]  # as many as there are neighbours: one step reaches all of a row
    x, others = torch.cat([row[:1], row[:1] + 50]), torch.cat([row[1:], row[1:] + 50])
    near = torch.linspace(0.1, 0.9, 9)[:, None]
    new, truth = torch.cat([near, near + 50]), torch.arange(2).repeat_interleave(9)
    assert spreading.errors(x, torch.tensor([0, 1]), new, truth, 2, among(others, new), 7).together == 0
    assert spreading.errors(x, torch.tensor([1, 0]), new, truth, 2, among(others, new), 7).together == 1


@pytest.mark.parametrize("labelled", [4, 40])
def test_what_is_known_of_generated_pictures_is_used_again(labelled: int) -> None:
    """The same as spreading over all points together; fewer labelled ones than neighbours, or more, and copies."""
    noise = Noise(0)
    x, others, new = noise.normal(labelled, 3), noise.normal(200, 3), noise.normal(300, 3)
    others[:3] = x[0]
    y, truth = torch.arange(labelled) % 3, torch.arange(300) % 3
    points, known = torch.cat([x, others]), torch.cat([y, torch.full((200,), -1)])
    spread = spread_labels(points, known, 3, neighbors=6, alpha=spreading.ALPHA)
    told = predict_labels(spread, points, known, new, neighbors=6)
    found = spreading.errors(x, y, new, truth, 3, among(others, new), 6)
    assert found.together == pytest.approx(1 - accuracy(told.labels, truth))
    assert found.alone == pytest.approx(1 - accuracy(y[torch.cdist(new, x).argmin(1)], truth))


def test_generated_pictures_that_are_not_finite_are_refused() -> None:
    made = Noise(0).normal(60, 3)
    made[3] = torch.nan
    refused(lambda: among(made, made[:5]), "not finite")


def test_labelled_pictures_are_the_same_for_every_model() -> None:
    first, again, other = (spreading.labelled(100, 10, draw) for draw in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert len(first.unique()) == 10
    assert first.max() < 100
    assert len(spreading.labelled(100, 1000, 0)) == 50  # of a small set at most half


def test_generated_pictures_help_or_do_not(digits: Splits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "GENERATED", 500)
    monkeypatch.setattr(spreading, "LABELLED", {30: 7})
    monkeypatch.setattr(spreading, "DRAWS", 2)
    found = spreading.semi_supervised(look(Tray(digits.train), digits)).values
    assert found.keys() == {"error-30", "labelled-only-30", "difference-labelled-only-30"}
    assert 0 < found["error-30"] < 1
    difference = found["error-30"] - found["labelled-only-30"]
    assert found["difference-labelled-only-30"] == pytest.approx(difference)
    assert difference < 0  # real pictures, though unlabelled, lower the error


def scores(model: CapsuleModel, digits: Splits, judge: Judge, seed: int = 0) -> Measured:
    return generation.generation(look(model, digits, judge, seed=seed))


def test_a_copyist_is_read_as_asked_and_one_that_mistakes_the_class_is_not(
    digits: Splits, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "EACH", 20)
    right, wrong, always = (
        scores(Copyist(digits.train, **options), digits, judge) for options in ({}, {"off": 1}, {"only": 3})
    )
    assert right.notes == (judge.note,)
    assert right.values["read_as_asked_percent"] > 80
    assert wrong.values["read_as_asked_percent"] < 20
    # the pictures are as good whatever was asked for
    assert wrong.values["rarest_class_percent"] > 3
    assert always.values["rarest_class_percent"] == 0
    assert always.values["judge_fd"] > 3 * right.values["judge_fd"]
    assert always.values["judge_kid"] > right.values["judge_kid"]
    assert always.values["recall"] < right.values["recall"]
    assert always.values["precision"] > 0.5 > always.values["recall"]  # real threes, and nothing else
    assert right.values["judge_kid_low"] <= right.values["judge_kid"] <= right.values["judge_kid_high"]
    assert right.values["spread"] <= right.values["spread_mean"]
    assert 0.3 < right.values["spread_mean"] < 2
    assert "kid_effnet" not in right.values  # that is for colour


def test_a_model_that_is_not_asked_is_judged_by_what_it_likes(
    digits: Splits, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "ALL", 300)
    model = Tray(digits.train)
    found = scores(model, digits, judge).values
    assert sum(model.asked) == 300
    assert not {"read_as_asked_percent", "spread"} & found.keys()
    assert found["precision"] > 0.5


class Mirror(Stub):
    """Paints what it sees, darker, or always the first picture that it sees."""

    def __init__(self, images: ImageSet, light: float, first: bool = False) -> None:
        super().__init__(images)
        self.light, self.first = light, first

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        return self.light * (x[:1].expand_as(x) if self.first else x)


def test_pictures_painted_again_are_read_and_compared(digits: Splits, judge: Judge) -> None:
    mirrors = (Mirror(digits.train, 1.0), Mirror(digits.train, 0.9), Mirror(digits.train, 1.0, first=True))
    same, dark, one = (generation.rebuilt(look(mirror, digits, judge)) for mirror in mirrors)
    assert same.values["mse"] == 0
    assert same.values["read_percent"] == pytest.approx(100 * judge.accuracy)
    assert same.notes == (judge.note,)
    squares = (digits.test.x.double() / 255).square().mean().item()
    assert dark.values["mse"] == pytest.approx(0.01 * squares, rel=1e-4)
    assert one.values["read_percent"] < 30
    refused(lambda: generation.rebuilt(look(Tray(digits.train), digits, judge)), "stub", "paint a picture again")


def test_scores_are_fixed_by_the_seed(digits: Splits, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "EACH", 5)
    first, again, other = (scores(Copyist(digits.train), digits, judge, seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_the_measure_of_classes_refuses_attributes(digits: Splits, judge: Judge) -> None:
    faces = data.load("faces:10", size=32, valid=0.0)
    refused(lambda: scores(Tray(faces.train), faces, judge), "attributes")


def test_pictures_come_some_at_a_time(digits: Splits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject_module, "BATCH", 4)
    model = Tray(digits.train)
    assert len(sample(model, 10, Noise(0))) == 10
    assert model.asked == [4, 4, 2]
    copyist = Copyist(digits.train)
    made = generate(copyist, torch.arange(10), Noise(0))
    assert made.shape == (10, 1, 8, 8)
    # one that must be asked is asked for every class in turn
    torch.testing.assert_close(sample(copyist, 10, Noise(0)), made)
    refused(lambda: generate(model, torch.arange(2), Noise(0)), "stub", "does not paint what it is asked for")


def test_noise_is_fixed_by_seed_and_purpose(digits: Splits) -> None:
    one, other = (look(Stub(digits.test), digits, seed=seed) for seed in (0, 1))
    a, b, c, d = (s.noise(p).uniform(4) for s, p in ((one, "a"), (one, "a"), (one, "b"), (other, "a")))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert not torch.equal(a, d)


class Everything(Copyist):
    """A copyist that also paints again and walks."""

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        return 1 - x

    def interpolate(self, start: Pictures, end: Pictures, steps: int) -> Tensor:
        return torch.stack([torch.lerp(start, end, share) for share in torch.linspace(0, 1, steps)], 1)


def test_figures_show_the_first_pictures(digits: Splits) -> None:
    subject = look(Everything(digits.train), digits)
    x = pixels(digits.test.x)
    shown = figures.reconstructions_and_samples(subject)
    # 4 rows of originals, 4 of reconstructions, 10 of classes
    labels = [*["original"] * 4, *["painted again"] * 4, *(f"new: {name}" for name in digits.test.names)]
    made = generate(subject.model, torch.arange(10).repeat_interleave(10), subject.noise("figure"))
    expected = grid(torch.cat([x[:40], 1 - x[:40], made]), 10, row_labels=labels)
    assert shown.size == expected.size
    assert shown.tobytes() == expected.tobytes()
    walk = subject.model.interpolate(x[:6], x[1:7], 10).flatten(0, 1)
    assert figures.interpolation(subject).tobytes() == grid(walk, 10).tobytes()
    tray = look(Tray(digits.train), digits)
    assert figures.samples(tray).tobytes() == grid(pixels(digits.train.x[:100]), 10).tobytes()


def test_a_negative_is_told_from_a_bright_picture() -> None:
    """By mean intensity a bright coat is a negative and a dark negative is none; by the nearest real picture not so."""
    coat, ring = torch.ones(1, 1, 8, 8), torch.zeros(1, 1, 8, 8)
    coat[..., :1] = 0.0
    ring[..., 1:7, 1:7] = 1.0
    ring[..., 2:6, 2:6] = 0.0
    dark = torch.full((1, 1, 8, 8), 0.1)
    dark[..., :2, :] = 0.6
    real = torch.cat([coat, ring, 1 - dark])
    assert experts.negatives(coat, usual=0.3) == 1.0
    assert experts.negatives_by_nearest(0.9 * coat, real) == 0.0
    assert experts.negatives(dark, usual=0.3) == 0.0
    assert experts.negatives_by_nearest(dark, real) == 1.0
    assert experts.negatives_by_nearest(torch.cat([1 - ring, ring]), real) == 0.5
