"""What a report shows of a run, and the judge that reads generated pictures."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import yaml
from torch import Tensor, nn

from gencaps.baselines.pixel_svm import PixelSVM
from gencaps.data.images import ImageSet, Splits
from gencaps.engine.evaluate import Evaluation, evaluate, pixels
from gencaps.engine.pretrained import from_pretrained
from gencaps.engine.run import Run
from gencaps.engine.train import load_splits
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Step, count_parameters
from gencaps.primitives.noise import Noise
from gencaps.report.collect import collect, hardest, headline, judged_share
from gencaps.report.content import ReportContent


class Looked(NamedTuple):
    """A finished run, looked at once."""

    run: Run
    model: CapsuleModel
    splits: Splits
    seen: Evaluation
    content: ReportContent


class Copyist(CapsuleModel):
    """Paints real training pictures, of the class asked for or of the one after it."""

    paper = "copyist"

    def __init__(self, train: ImageSet, off: int = 0) -> None:
        super().__init__(None, PictureInfo.of(train))
        self.scale = nn.Parameter(torch.ones(()))
        self.train_set, self.off = train, off

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        raise NotImplementedError

    def generate(self, y: Labelling, noise: Noise) -> Pictures:
        wanted = (y + self.off) % len(self.pictures.names)
        pick = noise.uniform(len(y))
        chosen = [(self.train_set.y == k).nonzero()[:, 0] for k in range(len(self.pictures.names))]
        index = torch.stack([chosen[k][int(u * len(chosen[k]))] for k, u in zip(wanted.tolist(), pick, strict=True)])
        return self.scale * pixels(self.train_set.x[index])


@pytest.fixture(scope="module")
def looked(trained_digits: Path) -> Looked:
    run = Run.open(trained_digits)
    model, splits = from_pretrained(trained_digits), load_splits(run.recipe)
    seen = evaluate(model, splits.test)
    return Looked(run, model, splits, seen, collect(run, model, splits, seen))


def shape(x: Tensor | None) -> tuple[int, ...] | None:
    return None if x is None else tuple(x.shape)


def test_a_report_names_what_was_trained(looked: Looked) -> None:
    content = looked.content
    assert content.title == "Variational capsules on digits"
    numbers = f"{count_parameters(looked.model.parameters()):,}"
    assert content.lead == f"{numbers} parameters trained on 1,294 pictures of 8 x 8 pixels in 10 classes, seed 0."
    assert content.names == tuple("0123456789")
    assert yaml.safe_load(content.config)["train"]["epochs"] == 12
    assert content.command.startswith("gencaps")
    assert {"gencaps", "torch", "python", "device", "commit", "date"} <= content.versions.keys()
    assert content.split["train"]["pictures"] == 1294
    assert content.metrics == looked.run.rows()
    assert {row["split"] for row in content.metrics} == {"train", "valid"}


def test_headlines_are_the_figures_of_the_test_part(looked: Looked) -> None:
    seen = looked.seen
    assert seen.accuracy is not None
    assert seen.accuracy > 0.9  # twelve epochs are enough for that
    told, painted, judged = looked.content.headline
    assert told == ("Test accuracy", f"{100 * seen.accuracy:.2f} %", f"{seen.correct} of 359 held-out pictures")
    assert painted[:2] == ("Reconstruction", f"{seen.mse:.4f}")
    assert judged[0] == "Generated pictures read as asked"
    assert judged[1].endswith(" %")
    assert 0 <= float(judged[1].removesuffix(" %")) <= 100
    assert judged[2].startswith("of 200 by a pixel SVM that reads 9")
    assert looked.content.confusion is not None
    assert looked.content.confusion.sum() == 359
    assert looked.content.confusion.trace() == seen.correct


def test_headlines_of_attributes_count_no_pictures() -> None:
    seen = Evaluation(1500, 1.0, 0.875, 12.5, None, None, None, None, None)
    assert headline(seen) == [("Test accuracy", "87.50 %", "mean over 1,500 held-out pictures")]
    assert headline(seen._replace(accuracy=None, mse=0.25)) == [
        ("Reconstruction", "0.2500", "mean squared error of a test pixel, values 0 to 1")
    ]


def test_pictures_are_the_first_of_the_test_part_not_the_best(looked: Looked) -> None:
    content, x = looked.content, pixels(looked.splits.test.x)
    assert content.real is not None
    assert content.reconstructed is not None
    assert content.interpolations is not None
    assert torch.equal(content.real, x[:20])
    with torch.no_grad():
        painted = looked.model.reconstruct(x[:20])  # pyright: ignore[reportCallIssue]
    torch.testing.assert_close(content.reconstructed, painted)
    assert shape(content.samples) == (10, 10, 1, 8, 8)
    assert shape(content.interpolations) == (6, 9, 1, 8, 8)
    # each walk leads from a picture to the next one
    torch.testing.assert_close(content.interpolations[:, 0], painted[:6])
    torch.testing.assert_close(content.interpolations[:, -1], painted[1:7])


def test_a_second_look_shows_the_same(looked: Looked) -> None:
    again = collect(looked.run, looked.model, looked.splits, looked.seen)
    assert again.headline == looked.content.headline
    for part in ("samples", "reconstructed", "interpolations"):
        assert torch.equal(getattr(again, part), getattr(looked.content, part))


def test_the_hardest_pictures_stand_worst_first(looked: Looked) -> None:
    presence, test = looked.seen.presence, looked.splits.test
    assert presence is not None
    own = torch.stack([row[y] for row, y in zip(presence, test.y.tolist(), strict=True)])
    worst = sorted(range(len(test)), key=lambda i: own[i].item())[:12]
    shown = looked.content.hardest
    assert len(shown) == 12
    assert [hard.true for hard in shown] == [test.names[int(test.y[i])] for i in worst]
    for hard, i in zip(shown, worst, strict=True):
        assert torch.equal(hard.picture, pixels(test.x[i]))
        assert hard.predicted == test.names[int(presence[i].argmax())]
        assert hard.presence == presence[i].max().item()


def test_the_hardest_pictures_worked_by_hand() -> None:
    """The own class's presences are 0.9, 0.2, 0.6 and 0.1."""
    presence = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.1, 0.9]])
    x = torch.arange(4, dtype=torch.uint8)[:, None, None, None].expand(4, 1, 8, 8)
    test = ImageSet("hand", x, torch.tensor([0, 1, 0, 0]), ("no", "yes"))
    seen = Evaluation(4, 1.0, 0.5, 50.0, 2, None, None, presence.argmax(1), presence)
    found = [(hard.true, hard.predicted, round(hard.presence, 4)) for hard in hardest(seen, test)]
    assert found == [("no", "yes", 0.9), ("yes", "no", 0.8), ("no", "no", 0.6), ("no", "no", 0.9)]
    assert hardest(seen._replace(presence=None), test) == []


def test_the_judge_reads_real_pictures(looked: Looked) -> None:
    svm, test = PixelSVM(looked.splits.train), looked.splits.test
    trust = svm.accuracy(test)
    assert 0.9 < trust <= 1
    right = sum(int(svm.read(pixels(test.x[i : i + 1]))) == int(test.y[i]) for i in range(len(test)))
    assert trust == right / len(test)


def test_the_judge_saw_training_pictures_only(looked: Looked) -> None:
    """Fitted on pictures whose labels are all moved by one, it reads the test part wrong."""
    train = looked.splits.train
    moved = ImageSet("moved", train.x, (train.y + 1) % 10, train.names)
    assert PixelSVM(moved).accuracy(looked.splits.test) < 0.05


def test_the_share_judged_lies_between_none_and_all(looked: Looked) -> None:
    share, trust, n = judged_share(looked.model, looked.splits, Noise(0), each=7)
    assert n == 70
    assert 0 <= share <= 1
    assert share * 70 == pytest.approx(round(share * 70))
    assert 0.9 < trust <= 1


def test_the_judge_tells_the_class_asked_from_another(looked: Looked) -> None:
    train = looked.splits.train
    right, wrong = (judged_share(Copyist(train, off), looked.splits, Noise(0))[0] for off in (0, 1))
    assert right > 0.98
    assert wrong < 0.02


def test_a_model_that_only_generates_gets_a_report_of_that(looked: Looked) -> None:
    model = Copyist(looked.splits.train)
    content = collect(looked.run, model, looked.splits, evaluate(model, looked.splits.test))
    assert [name for name, _, _ in content.headline] == ["Generated pictures read as asked"]
    assert shape(content.samples) == (10, 10, 1, 8, 8)
    assert content.real is content.reconstructed is content.interpolations is content.confusion is None
    assert content.hardest == []


class Sampler(CapsuleModel):
    """Paints real training pictures of whatever class it likes."""

    paper = "sampler"

    def __init__(self, train: ImageSet) -> None:
        super().__init__(None, PictureInfo.of(train))
        self.scale = nn.Parameter(torch.ones(()))
        self.train_set = train

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        raise NotImplementedError

    def sample(self, n: int, noise: Noise) -> Pictures:
        return pixels(self.train_set.x[(noise.uniform(n) * len(self.train_set)).long()])


def test_a_model_that_only_samples_gets_rows_of_no_class(looked: Looked) -> None:
    model = Sampler(looked.splits.train)
    first, again = (collect(looked.run, model, looked.splits, evaluate(model, looked.splits.test)) for _ in range(2))
    assert shape(first.samples) == (4, 10, 1, 8, 8)
    assert first.samples is not None
    assert again.samples is not None
    assert torch.equal(first.samples, again.samples)
    assert first.asked is False
    assert looked.content.asked is True
    assert list(first.headline) == []  # nobody can tell whether it painted what it was asked for
