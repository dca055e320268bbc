"""The Python face: load a model, hand it pictures in any form, get named results back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.abilities import (
    ABILITIES,
    Classifies,
    Dials,
    Doubts,
    Draws,
    Edits,
    Encodes,
    Explains,
    Explores,
    Generates,
    Interpolates,
    Moves,
    Parses,
    Places,
    Reconstructs,
    Refines,
    Resamples,
    Samples,
    SamplesPlainly,
    Scores,
    ShowsTemplates,
    Turns,
    Walks,
    abilities,
)
from gencaps.asked import by_hand, intensities, motion, numbered, refuse_short
from gencaps.data.arrays import Given, as_pictures
from gencaps.engine.devices import choose_device
from gencaps.engine.log import counting
from gencaps.engine.pretrained import from_pretrained, how_made, model_card, run_of, save_pretrained
from gencaps.errors import GencapsError, nearest
from gencaps.figures import tinted
from gencaps.model import CapsuleModel, PictureInfo
from gencaps.painted import Classification, Painted
from gencaps.primitives.noise import Noise, mix_seed
from gencaps.trees import Node, trees
from gencaps.wishes import Wishes, as_states, marked, read_wishes

Ability = TypeVar("Ability")
MOST_STEPS = 100_000
"""Steps of refining that can be asked for."""
SAMPLES_A_ROW = 10
"""Pictures in a row where a model paints what it likes."""


class Capsules:
    """A trained model that answers. ``can`` lists what it can do; anything else is refused by name."""

    def __init__(self, model: CapsuleModel, origin: str | Path | None = None) -> None:
        self.model, self.origin = model.eval(), origin
        self.info: PictureInfo = model.pictures
        self.names = self.info.names
        self.can = abilities(model)

    def __repr__(self) -> str:
        kind = "grey" if self.info.channels == 1 else "colour"
        return (
            f"Capsules({self.model.paper} on {self.info.data}: {len(self.names)} {self.info.labels}, "
            f"{self.info.size} px {kind}; can {', '.join(self.can)})"
        )

    def pictures(self, given: Given) -> Float[Tensor, "n channels height width"]:
        """Brings pictures of any form to the size and channels that the model knows."""
        return as_pictures(given, self.info.size, self.info.channels).to(self.model.device)

    def _able(self, protocol: type[Ability]) -> Ability:
        if not isinstance(self.model, protocol):
            name = next(key for key, value in ABILITIES.items() if value is protocol)
            raise GencapsError(f"this {self.model.paper} model cannot {name}; it can {', '.join(self.can)}")
        return self.model

    def _seen(self, x: Tensor) -> list[str]:
        """Labels pictures with what they show, in a few words; a model that cannot tell leaves the labels empty."""
        if not isinstance(self.model, Classifies):
            return [""] * len(x)
        # not through self.classify, which also paints every picture to see how far it is to be doubted
        seen = self._named(self.model.classify(x).label)
        return seen if self.info.labels == "classes" else [_few(text) for text in seen]

    def _named(self, label: Tensor) -> list[str]:
        """Names classes, or lists the attributes that are on."""
        if label.ndim == 1:
            return [self.names[i] for i in label.tolist()]
        return [", ".join(n for n, on in zip(self.names, row, strict=True) if on) for row in label.tolist()]

    @torch.no_grad()
    def classify(self, pictures: Given) -> Classification:
        """Names what each picture shows, with every entity's presence."""
        x = self.pictures(pictures)
        seen = self._able(Classifies).classify(x)
        unknown = self.model.doubt(x).cpu() if isinstance(self.model, Doubts) else None
        return Classification(self._named(seen.label), seen.presence.cpu(), self.names, unknown)

    def presence(self, pictures: Given) -> Float[Tensor, "n entities"]:
        """Gives how surely each entity is in each picture, 0 to 1."""
        return self.classify(pictures).presence

    @torch.no_grad()
    def encode(self, pictures: Given) -> Any:
        """Gives the capsules of each picture as the paper's named tensors."""
        return _on_cpu(self._able(Encodes).encode(self.pictures(pictures)))

    @torch.no_grad()
    def refine(self, pictures: Given, steps: int = 200, layers: int | None = None, *, progress: bool = False) -> Any:
        """Gives the capsules of each picture after so many steps of optimising them for that picture alone.

        Args:
            layers: how many, from the top, are optimised: 1 for objects alone, which tells best what is there where a
                network found them (those solved from votes are at their best already); ``None`` for all, which paints
                best.
            progress: shows a bar on a terminal.
        """
        self._refuse_steps(steps)
        refiner, x = self._able(Refines), self.pictures(pictures)
        with counting("refining", steps, progress) as each:
            return _on_cpu(refiner.refine(x, steps, layers=layers, each=each))

    @torch.no_grad()
    def explain(self, pictures: Given) -> Painted:
        """Shows who painted what, a row a picture: as given, painted again, coloured by template and by object."""
        x = self.pictures(pictures)
        told = self._able(Explains).explain(x)
        as_colour = (part.expand(-1, 3, -1, -1) for part in (x, told.picture))
        # the ground painted nothing: it stays black
        coloured = (tinted(told.templates[:, :-1], told.picture), tinted(told.objects, told.picture))
        rows = torch.stack([*as_colour, *coloured], 1).flatten(0, 1)
        return Painted(rows.cpu(), self._seen(x), 4)

    @torch.no_grad()
    def parse(self, pictures: Given, names: Iterable[str] = ()) -> list[Node]:
        """Reads each picture as a tree of objects and their parts: ``text()`` and ``image()`` draw it.

        Args:
            names: what to call the pictures.
        """
        x = self.pictures(pictures)
        given = [*names, *(f"picture {place}" for place in range(len(x)))]
        return trees(self._able(Parses).parse(x), given[: len(x)])

    @torch.no_grad()
    def templates(self) -> Painted:
        """Paints the templates that were learned, as they look on black."""
        return Painted.in_rows(self._able(ShowsTemplates).template_sheet().cpu(), 8)

    @torch.no_grad()
    def place(
        self,
        objects: int | Iterable[int] | None = None,
        *,
        right: float = 0.0,
        down: float = 0.0,
        turn: float = 0.0,
        scale: float = 1.0,
    ) -> Painted:
        """Paints 'this object at that pose', in its plainest form; of all objects, each alone, if none is named.

        Args:
            objects: by number from 0; several are painted into one picture.
            right: to the right, 1 being half a picture.
            down: downwards.
            turn: clockwise, in degrees.
            scale: above 1 enlarges.
        """
        model, device = self._able(Places), self.model.device
        frame = motion(right, down, turn, scale).to(device)
        if objects is None:
            on, labels = torch.eye(model.objects, device=device), [f"object {i}" for i in range(model.objects)]
        else:
            chosen = numbered(objects, model.objects, "object")
            on = torch.zeros(1, model.objects, device=device)
            on[0, chosen] = 1.0
            labels = [f"object {', '.join(map(str, chosen))}"]
        made = model.place(on, frame.expand(len(on), model.objects, 2, 3))
        return Painted(made.cpu(), labels, 1)

    @torch.no_grad()
    def move(
        self,
        pictures: Given,
        object: int | None = None,
        *,
        right: float = 0.0,
        down: float = 0.0,
        turn: float = 0.0,
        scale: float = 1.0,
        steps: int = 1,
    ) -> Painted:
        """Paints each picture with an object moved about its own middle: its parts follow, the rest stays.

        Args:
            object: which, by number from 0; the strongest of each picture if none is named.
            right: to the right, 1 being half a picture.
            down: downwards.
            turn: clockwise, in degrees.
            scale: above 1 enlarges.
            steps: pictures on the way, the last at the end of it.
        """
        if not 1 <= steps <= MOST_STEPS:
            raise GencapsError(f"steps is {steps}; ask for 1 to {MOST_STEPS:,} pictures on the way")
        model = self._able(Moves)
        motion(right, down, turn, scale)  # refused before pictures are read
        objects = self._able(Places).objects
        number = None if object is None else numbered(object, objects, "object")[0]
        x = self.pictures(pictures)
        which = model.strongest(x) if number is None else torch.full((len(x),), number, device=x.device)
        made = []
        for share in torch.linspace(1 / steps, 1, steps).tolist():
            by = motion(share * right, share * down, share * turn, scale**share).to(x.device)
            made.append(model.moved(x, which, by.expand(len(x), 2, 3)))
        labels = [f"object {i}" for i in which.tolist()]
        return Painted(torch.stack(made, 1).flatten(0, 1).cpu(), labels, steps)

    def _refuse_steps(self, steps: int) -> None:
        if not 0 <= steps <= MOST_STEPS:
            raise GencapsError(f"refine is {steps}; ask for 0 to {MOST_STEPS:,} steps")

    @torch.no_grad()
    def reconstruct(
        self, pictures: Given, *, sample: bool = False, refine: int = 0, seed: int = 0, progress: bool = False
    ) -> Painted:
        """Paints each picture again from its capsules: from their means, or from a sample of them.

        Args:
            sample: paints a sample.
            refine: steps of optimising the capsules of each picture first, for models that can.
            seed: same seed, same sample.
            progress: shows a bar on a terminal while capsules are optimised.
        """
        self._refuse_steps(refine)
        if refine and sample:
            raise GencapsError("both a sample and refined capsules were asked for: choose one")
        x = self.pictures(pictures)
        if refine:
            refiner: Any = self._able(Refines)
            with counting("refining", refine, progress) as each:
                made = refiner.reconstruct(x, refine=refine, each=each)
            return Painted(made.cpu(), self._seen(x), 1)
        noise = Noise(seed, x.device) if sample else None
        return Painted(self._able(Reconstructs).reconstruct(x, noise).cpu(), self._seen(x), 1)

    @torch.no_grad()
    def generate(
        self,
        classes: str | int | Iterable[Any] | None = None,
        *,
        attributes: Wishes | None = None,
        like: Given | None = None,
        capsule: int | Iterable[int] | None = None,
        domain: str | None = None,
        plain: bool = False,
        n: int = 8,
        seed: int = 0,
    ) -> Painted:
        """Paints ``n`` new pictures of each class asked for, or of the attributes asked for.

        Args:
            classes: by name or index; of all classes if none is named.
            attributes: ``"Eyeglasses=1,Smiling=0"`` or a mapping; the others are as ``like`` shows them, or as they
                were most often in training.
            like: pictures whose own attributes (or classes) are painted anew.
            capsule: of a product of experts, the capsules to draw from alone, by number from 0; all if none is named.
            domain: of a product of experts, ``"restricted"`` to what training visits (the default) or ``"full"``.
            plain: of a scene, draws objects alone, each part being where its object expects it.
            n: pictures of each. A model without labels, such as a GAN, paints ``n`` of whatever it likes.
            seed: same seed, same pictures.
        """
        if n < 1:
            raise GencapsError(f"n is {n}; ask for at least 1 picture of each class")
        noise = Noise(seed, self.model.device)
        if plain:
            if not isinstance(self.model, SamplesPlainly):
                raise GencapsError(f"this {self.model.paper} model draws no parts: plain is for scenes, leave it out")
            if any(asked is not None for asked in (classes, attributes, like, capsule, domain)):
                raise GencapsError("a scene paints what it likes: ask for nothing beside plain")
            return Painted.in_rows(self.model.sample_plainly(n, noise).cpu(), SAMPLES_A_ROW)
        if capsule is not None or domain is not None:
            if classes is not None or attributes is not None or like is not None:
                raise GencapsError("both a capsule and something to show were asked for: choose one")
            return self._drawn(capsule, domain or "restricted", n, noise)
        if isinstance(self.model, Samples) and not isinstance(self.model, Generates):
            if classes is not None or attributes is not None or like is not None:
                raise GencapsError(
                    f"this {self.model.paper} model paints what it likes: it knows no classes, leave them out"
                )
            # ten a row; a product of experts paints from each capsule in turn, so that a column is one capsule's
            most = self.model.experts if isinstance(self.model, Draws) else SAMPLES_A_ROW
            return Painted.in_rows(self.model.sample(n, noise).cpu(), most)
        y, labels = self._asked(classes, attributes, like)
        made = self._able(Generates).generate(y.repeat_interleave(n, 0), noise)
        return Painted(made.cpu(), labels, n)

    def _drawn(self, capsule: int | Iterable[int] | None, domain: str, n: int, noise: Noise) -> Painted:
        """Paints from single capsules, a row each."""
        model = self._able(Draws)
        chosen = range(model.experts) if capsule is None else self._experts(model, capsule)
        which = torch.tensor(list(chosen), device=self.model.device).repeat_interleave(n)
        return Painted(model.draw(which, noise, domain).cpu(), [f"capsule {j}" for j in chosen], n)

    def _experts(self, model: Draws, capsule: int | Iterable[int]) -> list[int]:
        """Looks capsules up by number."""
        return numbered(capsule, model.experts, "capsule")

    @torch.no_grad()
    def explore(self, capsule: int, *, steps: int = 8) -> Painted:
        """Walks through the middle of one capsule along each of its axes, a row an axis."""
        refuse_short(steps)
        model = self._able(Explores)
        assert isinstance(model, Draws)
        walk = model.explore(self._experts(model, capsule)[0], steps)
        return Painted(walk.flatten(0, 1).cpu(), [f"axis {d}" for d in range(len(walk))], steps)

    def _asked(
        self, classes: str | int | Iterable[Any] | None, attributes: Wishes | None, like: Given | None
    ) -> tuple[Tensor, list[str]]:
        """Gives the labels to paint, one a row, and what to call the rows."""
        device, of_classes = self.model.device, self.info.labels == "classes"
        if attributes is not None and of_classes:
            raise GencapsError("this model has classes, no attributes: ask for classes")
        if classes is not None and not of_classes:
            raise GencapsError(f"this model has attributes, no classes: ask for attributes, such as {self.names[0]}=1")
        if classes is not None and like is not None:
            raise GencapsError("both classes and a picture to be like were given: choose one")
        if like is not None:
            x = self.pictures(like)
            y, labels = self._able(Classifies).classify(x).label, self._seen(x)
        elif of_classes:
            chosen = list(range(len(self.names)) if classes is None else self.indices(classes))
            return torch.tensor(chosen, device=device), [self.names[i] for i in chosen]
        else:
            usual = getattr(self.model, "usual", None)
            y = torch.zeros(1, len(self.names), dtype=torch.long, device=device) if usual is None else usual()
            labels = [""]
        if attributes is not None:
            wishes = read_wishes(attributes, self.info)
            states = as_states(wishes, len(self.names), len(y), device)
            y = torch.where(states < 0, y.long(), states)
            labels = [", ".join(f"{self.names[g]}={s}" for g, s in wishes.items())] * len(y)
        return y, labels

    @torch.no_grad()
    def score(self, pictures: Given) -> Float[Tensor, "n"]:
        """Gives how real each picture looks to the model, 0 to 1."""
        return self._able(Scores).score(self.pictures(pictures)).cpu()

    @torch.no_grad()
    def edit(
        self,
        pictures: Given,
        wishes: Wishes,
        *,
        styles: int = 0,
        intensity: float | Iterable[float] = 1.0,
        sample: bool = False,
        seed: int = 0,
        turn: str | Mapping[str, float | int] | None = None,
    ) -> Painted:
        """Paints each picture with something changed and the rest kept; a row a picture.

        Args:
            wishes: ``"Eyeglasses=1,Smiling=0"`` or a mapping; of a model with classes the class to become.
            styles: how many styles of the change to draw; 0 paints it once, in its plainest form.
            intensity: how far to go, from 0 (as it is) to 1; several give a strip.
            sample: draws what is kept from its posterior instead of painting its mean: livelier, less exact.
            seed: same seed, same pictures.
            turn: numbers of the changed picture's capsules that are set by hand, as ``turn`` takes them.
        """
        editor = self._able(Edits)
        if styles < 0:
            raise GencapsError(f"styles is {styles}; ask for 0 (the plainest form) or more")
        shares = intensities(intensity)
        wanted = self.wishes(wishes)
        x, groups = self.pictures(pictures), 1 if self.info.labels == "classes" else len(self.names)
        every, device = max(1, styles), x.device
        states = as_states(wanted, groups, len(x) * every, device)
        numbers = None
        if turn is not None:
            names, dim = self._able(Turns).capsule_names, self.model.config.dim
            numbers = by_hand(torch.full((len(states), len(names), dim), torch.nan, device=device), turn, names)
        columns = [
            editor.edit(
                x.repeat_interleave(every, 0),
                states,
                # the same numbers at every intensity: one style grows stronger
                Noise(mix_seed(seed, "style"), device) if styles else None,
                Noise(mix_seed(seed, "kept"), device) if sample else None,
                float(share),
                numbers,
            )
            for share in shares
        ]
        made = torch.stack(columns, 1).flatten(0, 1)
        return Painted(made.cpu(), self._seen(x), every * len(shares))

    def wishes(self, given: Wishes) -> dict[int, int]:
        """Reads what is asked for as the state of each group; a model that cannot edit says so first."""
        self._able(Edits)
        return read_wishes(given, self.info)

    @torch.no_grad()
    def resample(
        self, pictures: Given, *, only: str | Iterable[str] | None = None, n: int = 8, seed: int = 0
    ) -> Painted:
        """Paints what each picture shows in ``n`` other styles: of all that it shows, or of some attributes only."""
        if n < 1:
            raise GencapsError(f"n is {n}; ask for at least 1 picture in another style")
        x = self.pictures(pictures)
        mask = None if only is None else marked(only, self.info, len(x) * n, x.device)
        made = self._able(Resamples).resample(x.repeat_interleave(n, 0), Noise(seed, x.device), mask)
        return Painted(made.cpu(), self._seen(x), n)

    @torch.no_grad()
    def interpolate(
        self, start: Given, end: Given, *, only: str | Iterable[str] | None = None, steps: int = 8
    ) -> Painted:
        """Walks from each start to its end picture in equal steps, in all that they show or in some attributes only."""
        refuse_short(steps)
        first, last = self.pictures(start), self.pictures(end)
        if len(first) != len(last):
            raise GencapsError(f"{len(first)} pictures to start from and {len(last)} to end at: give as many of both")
        mask = None if only is None else marked(only, self.info, len(first), first.device)
        walk = self._able(Interpolates).interpolate(first, last, steps, mask)
        ends = zip(self._seen(first), self._seen(last), strict=True)
        return Painted(walk.flatten(0, 1).cpu(), [f"{a} to {b}" if a or b else "" for a, b in ends], steps)

    @torch.no_grad()
    def dials(self, pictures: Given) -> Dials:
        """Gives the capsules of each picture as numbers that ``paint`` takes, after some of them were changed."""
        return _on_cpu(self._able(Turns).dials(self.pictures(pictures)))

    @torch.no_grad()
    def paint(self, values: Float[Tensor, "n capsules dim"], on: Float[Tensor, "n capsules"]) -> Painted:
        """Paints capsules that are given as numbers.

        Args:
            values: the numbers of every capsule.
            on: how far each capsule paints, 0 to 1.
        """
        device = self.model.device
        made = self._able(Turns).turn(values.to(device), on.to(device))
        return Painted(made.cpu(), [""] * len(made), 1)

    @torch.no_grad()
    def turn(self, pictures: Given, dials: str | Mapping[str, float | int]) -> Painted:
        """Paints each picture with some numbers of its capsules set by hand.

        Args:
            dials: ``{"7.0": 1.5}`` or ``"7.0=1.5,7.3=-2"``: the capsule's name, a dot, the number's place from 0.
        """
        model = self._able(Turns)
        x = self.pictures(pictures)
        values, on, _ = model.dials(x)
        made = model.turn(by_hand(values, dials, model.capsule_names), on)
        return Painted(made.cpu(), self._seen(x), 1)

    @torch.no_grad()
    def walk(self, n: int = 4, *, steps: int = 8, seed: int = 0) -> Painted:
        """Paints ``n`` walks, a row each, between new pictures of whatever the model likes; same seed, same walks."""
        if n < 1:
            raise GencapsError(f"n is {n}; ask for at least 1 walk")
        refuse_short(steps)
        walks = self._able(Walks).walk(n, steps, Noise(seed, self.model.device))
        return Painted(walks.flatten(0, 1).cpu(), [""] * n, steps)

    def indices(self, classes: str | int | Iterable[Any]) -> list[int]:
        """Looks classes up by name or by index."""
        listed = [classes] if isinstance(classes, str | int | Integral) else list(classes)
        if not listed:
            raise GencapsError(f"no class was named: name some of {', '.join(self.names)}")
        found = []
        for one in listed:
            if isinstance(one, str) and one in self.names:
                found.append(self.names.index(one))
            elif isinstance(one, Integral) and 0 <= int(one) < len(self.names):
                found.append(int(one))
            else:
                raise GencapsError(f"this model knows no class '{one}'{nearest(str(one), self.names)}")
        return found

    def save_pretrained(self, folder: str | Path, *, half: bool = False) -> Path:
        """Writes a model folder that ``gencaps.load`` reads; with ``half`` in half of the space.

        What training alone needs (an adversary) stays behind; the card tells how the model was made where it was
        loaded from its run.
        """
        run = None if self.origin is None else run_of(self.origin)
        made = "" if run is None else how_made(run)
        return save_pretrained(self.model, folder, model_card(self.model, made), half=half)


def _on_cpu(code: Any) -> Any:
    """Brings named tensors, or tuples of them, to the CPU."""
    if isinstance(code, Tensor):
        return code.cpu()
    parts = [_on_cpu(part) for part in code]
    return type(code)(*parts) if hasattr(code, "_fields") else tuple(parts)


def _few(text: str, most: int = 3) -> str:
    """Cuts a list of attributes to its first few."""
    names = text.split(", ")
    return text if len(names) <= most else f"{', '.join(names[:most])}, +{len(names) - most}"


def load(model: str | Path, device: str = "auto") -> Capsules:
    """Loads a run folder, a model folder, one that comes with the package, or a hub id."""
    return Capsules(from_pretrained(model, choose_device(device)), model)
