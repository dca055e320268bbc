"""Measures of editing on models and judges whose behaviour is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from gencaps.abilities import Classified
from gencaps.data import synthetic
from gencaps.data.images import ImageSet, Splits
from gencaps.data.loading import load
from gencaps.engine.evaluate import pixels
from gencaps.engine.recipe import make_recipe
from gencaps.engine.run import Run
from gencaps.engine.train import Trained
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Step
from gencaps.papers.variational.entities import Entities
from gencaps.primitives.noise import Noise
from gencaps.reproduce.claims import book
from gencaps.reproduce.judge import Judge, Looked
from gencaps.reproduce.measures import MEASURES, editing, figures
from gencaps.reproduce.measures.classify import dashed
from gencaps.reproduce.measures.editing import EDITED, ENTAILED
from gencaps.reproduce.subject import Subject


class Pixels(Judge):
    """A judge that reads attribute k off the k-th pixel of the first row, and whose features are all pixels."""

    attributes: int
    looks: list[int]

    def __init__(self, attributes: int) -> None:
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(self, "looks", [])

    @property
    def note(self) -> str:
        return "the judge reads pixels"

    def look(self, x: Tensor) -> Looked:
        self.looks.append(len(x))
        presence = x[:, 0, 0, : self.attributes]
        return Looked(x.flatten(1), presence, (presence > 0.5).long())


class Editor(CapsuleModel):
    """Shows attribute k as the k-th pixel of the first row; an edit sets it, and may spoil others with it."""

    paper = "stub"

    def __init__(self, images: ImageSet, spoils: dict[int, list[int]] | None = None, idle: bool = False) -> None:
        super().__init__(None, PictureInfo.of(images))
        self.weight = nn.Parameter(torch.ones(()))
        self.entities = Entities.of(self.pictures)
        self.spoils, self.idle, self.styled = spoils or {}, idle, []

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        raise NotImplementedError

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        return x

    def classify(self, x: Pictures) -> Classified:
        shown = x[:, 0, 0, : len(self.pictures.names)]
        return Classified(shown, (shown > 0.5).long())

    def edit(
        self, x: Pictures, wanted: Tensor, style: Noise | None = None, noise: Noise | None = None, intensity: float = 1
    ) -> Pictures:
        self.styled.append(style is not None)
        if self.idle:
            return x
        row = x[:, 0, 0, : wanted.shape[1]]
        out = x.clone()
        row = torch.where(wanted < 0, row, wanted.to(row.dtype))
        for target, others in self.spoils.items():
            for other in others:
                row[:, other] = torch.where(wanted[:, target] < 0, row[:, other], 1 - row[:, other])
        out[:, 0, 0, : wanted.shape[1]] = row
        return out


def shown(names: tuple[str, ...], n: int = 300, size: int | None = None) -> ImageSet:
    """Pictures that show their attributes as pixels."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (n, len(names)), generator=generator, dtype=torch.uint8)
    x = torch.zeros(n, 1, size or len(names), size or len(names), dtype=torch.uint8)
    x[:, 0, 0, : len(names)] = 255 * y
    return ImageSet("hand", x, y, names, "attributes")


def look(model: CapsuleModel, test: ImageSet, judge: Any, data: str = "celeba", **fields: Any) -> Subject:
    run = Run(Path("nowhere"), make_recipe("variational", preset="small", data=data))
    return Subject((Trained(run, model, Splits(test[:0], test[:0], test)),), 0, lambda run: judge, **fields)


THREE = ("Hat", "Long_Hair", "Beard")


def test_an_edit_that_does_just_what_was_asked_changes_all_and_keeps_all() -> None:
    test = shown(THREE)
    model = Editor(test)
    found = editing.edits(look(model, test, Pixels(3)))
    names = ("hat", "long-hair", "beard")
    assert found.values == {f"{word}-{name}": pytest.approx(100) for name in names for word in ("changed", "kept")}
    assert found.notes == ("the judge reads pixels",)
    # more pictures than go through at once, each attribute by itself, in a style drawn from the prior
    assert model.styled == [True] * 6


def test_an_edit_that_does_nothing_changes_none_and_keeps_all() -> None:
    test = shown(THREE)
    found = editing.edits(look(Editor(test, idle=True), test, Pixels(3))).values
    assert all(value == pytest.approx(0 if name.startswith("changed") else 100) for name, value in found.items())


def test_an_edit_that_spoils_another_attribute_keeps_half() -> None:
    """Of three attributes two should be kept; an edit of the first always flips the second: one of two is kept."""
    test = shown(THREE)
    found = editing.edits(look(Editor(test, {0: [1]}), test, Pixels(3))).values
    assert found["changed-hat"] == pytest.approx(100)
    assert found["kept-hat"] == pytest.approx(50)
    assert found["kept-long-hair"] == pytest.approx(100)
    assert found["kept-beard"] == pytest.approx(100)


class Inverting(Editor):
    """Its reconstructions show the opposite of the pictures, and its edits start from those."""

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        return 1 - x

    def edit(self, x: Pictures, wanted: Tensor, *rest: Any, **more: Any) -> Pictures:
        return super().edit(1 - x, wanted, *rest, **more)


def test_edits_are_held_against_the_reconstruction_not_the_picture() -> None:
    """Against the picture itself, a model that paints the opposite of everything would seem to keep nothing."""
    test = shown(THREE)
    found = editing.edits(look(Inverting(test), test, Pixels(3))).values
    assert list(found.values()) == pytest.approx([100] * len(found))


CELEBA = (
    *EDITED,
    *dict.fromkeys(other for others in ENTAILED.values() for other in others if other not in EDITED),
)
FORTY = CELEBA + tuple(f"Other_{i}" for i in range(40 - len(CELEBA)))


def test_of_celeba_five_are_edited_and_what_they_entail_is_left_out() -> None:
    test = shown(FORTY, 40)
    spoils = {FORTY.index(name): [FORTY.index(other) for other in others] for name, others in ENTAILED.items()}
    found = editing.edits(look(Editor(test, spoils), test, Pixels(40))).values
    assert len(found) == 10
    assert list(found.values()) == pytest.approx([100] * len(found))
    assert {"changed-eyeglasses", "kept-mouth-slightly-open", "kept-male"} <= set(found)
    # one that is not entailed counts: 1 of the 40 - 1 - 2 others of Smiling
    spoils[FORTY.index("Smiling")].append(FORTY.index("Eyeglasses"))
    found = editing.edits(look(Editor(test, spoils), test, Pixels(40))).values
    assert found["kept-smiling"] == pytest.approx(100 * 36 / 37)


def test_what_is_edited_and_entailed_is_named_as_celeba_names_it() -> None:
    """Names come from the claims of Table 1: a misspelt one would silently not be left out."""
    claims = book().claims.values()
    columns = {c.id.split(".")[-1] for c in claims if c.id.startswith("variational.celeba.moon")}
    named = {*EDITED, *ENTAILED, *(other for others in ENTAILED.values() for other in others)}
    known = {c.at.split("column ")[1] for c in claims if c.id.startswith("variational.celeba.moon")} | columns
    assert {dashed(name) for name in named} <= known


# --- styles


class Code(NamedTuple):
    mu: Tensor
    log_var: Tensor
    kl: Tensor


class Styled(Editor):
    """Has one number a capsule: the active ones' sum is added where ``region`` allows, and outside by a share.

    Prior draws have deviation 1, posterior draws ``sigma``; means are zero.
    """

    def __init__(self, images: ImageSet, sigma: float, regions: Tensor | None = None, leak: float = 0.0) -> None:
        super().__init__(images)
        self.sigma, self.regions, self.leak, self.kept = sigma, regions, leak, []

    def encode(self, x: Pictures) -> Code:
        n, count = len(x), self.entities.count
        kl = torch.ones(n, count)
        kl[:, 1::2] = 0.0  # every attribute is seen
        zero = torch.zeros(n, count, 1)
        return Code(zero, zero + 2 * torch.tensor(self.sigma).log(), kl)

    def activate(self, capsules: Tensor, active: Tensor) -> Tensor:
        return torch.where(self.entities.mask(active)[..., None], capsules, 0.0)

    def decode(self, capsules: Tensor) -> Tensor:
        value = capsules.sum((1, 2))[:, None, None, None]
        size = self.pictures.size
        if self.regions is None:
            return value.expand(-1, self.pictures.channels, size, size)
        inside = self.regions.repeat_interleave(editing.DRAWS, 0)[:, None].float()
        return value * (inside + self.leak * (1 - inside)).expand(-1, self.pictures.channels, -1, -1)

    def resample(self, x: Pictures, noise: Noise, only: Tensor | None = None) -> Pictures:
        assert only is not None
        assert (only.sum(1) == 1).all()  # one attribute at a time; the others are at their means
        n, count = len(x), self.entities.count
        drawn = torch.where(self.entities.capsules_in(only)[..., None], noise.normal(n, count, 1), 0.0)
        return self.decode(self.activate(drawn, torch.ones(n, self.entities.groups, dtype=torch.long)))


@pytest.mark.parametrize("sigma", [0.25, 1.0, 2.0])
def test_style_ratio_is_the_spread_of_the_prior_over_that_of_the_posterior(sigma: float) -> None:
    """Deviation 1 over deviation sigma."""
    test = shown(THREE, 400)
    found = editing.styles(look(Styled(test, sigma), test, Pixels(3))).values
    assert set(found) == {"ratio"}  # whose pixels are an attribute's is known of synthetic faces alone
    assert found["ratio"] == pytest.approx(1 / sigma, rel=0.1)


def test_only_pictures_that_have_the_attribute_count() -> None:
    test = shown(THREE, 40)
    judge = Pixels(3)
    editing.styles(look(Styled(test, 0.5), test, judge))
    wanted = [editing.DRAWS * int(count) for count in test.y.long().sum(0) for _ in range(2)]
    assert judge.looks == wanted


@pytest.mark.parametrize(("leak", "wanted"), [(0.0, 0.0), (0.25, 0.25), (1.0, 1.0), (3.0, 3.0)])
def test_kept_ratio_is_the_change_outside_over_that_inside(leak: float, wanted: float) -> None:
    """The pictures of one attribute only, so that the region is known here by a road of its own."""
    numbers = synthetic.sample(12, 1)  # the test part of faces:60
    splits = load("faces:60", size=32, valid=0.0)
    test = splits.test
    assert torch.equal(test.y, numbers.attributes)
    assert torch.equal(test.x, synthetic.draw(*numbers, 32))
    hat = synthetic.NAMES.index("Hat")
    only = torch.zeros_like(test.y)
    only[:, hat] = test.y[:, hat]
    test = ImageSet("faces", test.x, only, test.names, "attributes")
    chosen = only[:, hat].bool()
    regions = synthetic.region("Hat", numbers.nuisance[chosen], 32)
    assert 0.02 < regions.float().mean() < 0.9
    model = Styled(test, 0.5, regions, leak)
    found = editing.styles(look(model, test, Pixels(8), data="faces:60")).values
    # all pictures' pixels count the same, and regions differ in size: not exactly the share
    assert found["kept_ratio"] == pytest.approx(wanted, rel=0.02)


def test_an_attribute_touches_no_pixel_outside_its_region() -> None:
    """What kept_ratio rests on: drawing another hat on the same heads changes the region alone."""
    numbers = synthetic.sample(6, 1)
    hat = synthetic.NAMES.index("Hat")
    on, styles = numbers.attributes.clone(), numbers.styles.clone()
    on[:, hat] = 1
    styles[:, hat] = 1 - styles[:, hat]
    one, two = (synthetic.draw(on, style, numbers.nuisance, 32) for style in (numbers.styles, styles))
    change = (one.int() - two.int()).abs().sum(1)
    region = synthetic.region("Hat", numbers.nuisance, 32)
    assert change[~region].sum() == 0
    assert change[region].sum() > 0


# --- figures


class Painter(Editor):
    """Paints what it is asked for as pixels, and walks in straight lines."""

    def __init__(self, images: ImageSet) -> None:
        super().__init__(images)
        self.asked: list[Tensor] = []
        self.shares: list[float] = []

    def generate(self, y: Labelling, noise: Noise) -> Pictures:
        self.asked.append(y.clone())
        out = torch.zeros(len(y), 1, self.pictures.size, self.pictures.size)
        out[:, 0, 0, : y.shape[1]] = y.float()
        return out

    def edit(self, x: Pictures, wanted: Tensor, *rest: Any, intensity: float = 1.0, **more: Any) -> Pictures:
        self.asked.append(wanted.clone())
        self.shares.append(intensity)
        return super().edit(x, wanted, *rest, **more)

    def interpolate(self, start: Pictures, end: Pictures, steps: int, only: Tensor | None = None) -> Tensor:
        share = torch.linspace(0, 1, steps)[:, None, None, None]
        return start[:, None] * (1 - share) + end[:, None] * share


@pytest.fixture
def painter() -> tuple[Painter, Subject, Tensor]:
    test = shown(THREE, 20, 8)
    model = Painter(test)
    return model, look(model, test, None), pixels(test.x)


def test_figure_2_paints_a_picture_attributes_with_one_off_and_on(painter: tuple[Painter, Subject, Tensor]) -> None:
    model, subject, x = painter
    assert figures.attribute_generation(subject).width > 0
    assert len(model.asked) == 3
    for row, y in enumerate(model.asked):
        own = model.classify(x[row : row + 1]).label[0]
        assert y[:, row].tolist() == [0, 0, 1, 1]
        others = [k for k in range(3) if k != row]
        assert torch.equal(y[:, others], own[others].expand(4, 2))


def test_figure_3_swaps_one_attribute_in_four_styles(painter: tuple[Painter, Subject, Tensor]) -> None:
    model, subject, x = painter
    figures.attribute_swapping(subject)
    assert len(model.asked) == 6
    assert model.styled == [True] * 6
    for place, wanted in enumerate(model.asked):
        target, own = place // 2, model.classify(x[place : place + 1]).label[0]
        assert wanted.shape == (4, 3)
        assert wanted[:, target].tolist() == [1 - int(own[target])] * 4
        assert (wanted[:, [k for k in range(3) if k != target]] == -1).all()


def test_figure_4_grows_one_attribute_in_equal_steps(painter: tuple[Painter, Subject, Tensor]) -> None:
    model, subject, _ = painter
    figures.attribute_interpolation(subject)
    assert model.shares == pytest.approx(torch.linspace(0, 1, figures.STEPS).tolist() * 3)
    assert model.styled == [False] * 30  # its plainest form: no style to choose for looks


def test_figure_5_walks_between_styles_and_between_pictures(painter: tuple[Painter, Subject, Tensor]) -> None:
    model, subject, x = painter
    figures.multi_attribute_interpolation(subject)
    own = model.classify(x[:1]).label
    assert len(model.asked) == 2
    assert all(torch.equal(y, own) for y in model.asked)


def test_measures_of_editing_can_be_asked_for_by_claims() -> None:
    assert MEASURES["edits"] is editing.edits
    assert MEASURES["styles"] is editing.styles
