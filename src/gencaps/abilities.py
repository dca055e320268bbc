"""What models can do, one protocol each: what the API, the commands and the service ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Integer
from torch import Tensor

from gencaps.model import CapsuleModel, Labelling, Pictures
from gencaps.primitives.noise import Noise


class Classified(NamedTuple):
    """What a model sees in each picture."""

    presence: Float[Tensor, "batch entities"]
    """How surely each entity is there, 0 to 1."""
    label: Labelling
    """The class chosen, or each attribute as 0 or 1."""


@runtime_checkable
class Classifies(Protocol):
    """Says which entities a picture shows."""

    def classify(self, x: Pictures) -> Classified: ...


@runtime_checkable
class Doubts(Protocol):
    """Says how likely a picture shows nothing that the model knows, 0 to 1."""

    def doubt(self, x: Pictures) -> Float[Tensor, "batch"]: ...


@runtime_checkable
class Encodes(Protocol):
    """Gives the capsules of a picture as named tensors."""

    def encode(self, x: Pictures) -> Any: ...


@runtime_checkable
class Reconstructs(Protocol):
    """Paints a picture again from its capsules; with noise from a sample of them, without from their means."""

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures: ...


@runtime_checkable
class Generates(Protocol):
    """Paints new pictures of the classes or attributes asked for."""

    def generate(self, y: Labelling, noise: Noise) -> Pictures: ...


@runtime_checkable
class Samples(Protocol):
    """Paints new pictures of whatever it likes: what a system without labels can do."""

    def sample(self, n: int, noise: Noise) -> Pictures: ...


@runtime_checkable
class SamplesPlainly(Protocol):
    """Paints new pictures whose parts all are as their objects expect them."""

    def sample_plainly(self, n: int, noise: Noise) -> Pictures: ...


@runtime_checkable
class Walks(Protocol):
    """Walks between new pictures of whatever it likes."""

    def walk(self, n: int, steps: int, noise: Noise) -> Float[Tensor, "n steps channels height width"]: ...


@runtime_checkable
class Draws(Protocol):
    """Paints from one capsule alone, on the whole sphere of its directions or on the half that training visits."""

    @property
    def experts(self) -> int: ...

    def draw(self, capsule: Integer[Tensor, "batch"], noise: Noise, domain: Any = ...) -> Pictures: ...


@runtime_checkable
class Explores(Protocol):
    """Walks along each axis of one capsule."""

    def explore(self, capsule: int, steps: int) -> Float[Tensor, "dim steps channels height width"]: ...


@runtime_checkable
class Scores(Protocol):
    """Says how likely each picture is a real one, 0 to 1."""

    def score(self, x: Pictures) -> Float[Tensor, "batch"]: ...


@runtime_checkable
class Resamples(Protocol):
    """Paints the same entities in other styles, drawn from the prior: all of them, or only the marked groups."""

    def resample(self, x: Pictures, noise: Noise, only: Bool[Tensor, "batch groups"] | None = None) -> Pictures: ...


@runtime_checkable
class Edits(Protocol):
    """Paints a picture with some entities changed (``wanted``, -1 where kept) and the rest left alone."""

    def edit(
        self,
        x: Pictures,
        wanted: Integer[Tensor, "batch groups"],
        style: Noise | None = None,
        noise: Noise | None = None,
        intensity: float = 1.0,
        numbers: Float[Tensor, "batch capsules dim"] | None = None,
    ) -> Pictures: ...


@runtime_checkable
class Interpolates(Protocol):
    """Walks from one picture to another through the capsules."""

    def interpolate(
        self, start: Pictures, end: Pictures, steps: int, only: Bool[Tensor, "batch groups"] | None = None
    ) -> Float[Tensor, "batch steps channels height width"]: ...


class Dials(NamedTuple):
    """A picture's capsules as numbers that can be turned by hand."""

    values: Float[Tensor, "batch capsules dim"]
    on: Float[Tensor, "batch capsules"]
    """How far each capsule paints, 0 to 1."""
    presence: Float[Tensor, "batch capsules"]
    """How surely each capsule is there, 0 to 1."""


@runtime_checkable
class Turns(Protocol):
    """Gives a picture's capsules as plain numbers, and paints such numbers."""

    @property
    def capsule_names(self) -> tuple[str, ...]: ...

    def dials(self, x: Pictures) -> Dials: ...

    def turn(self, values: Float[Tensor, "batch capsules dim"], on: Float[Tensor, "batch capsules"]) -> Pictures: ...


@runtime_checkable
class Refines(Protocol):
    """Optimises a picture's capsules by themselves, from the networks' answer on."""

    def refine(
        self, x: Pictures, steps: int, *, layers: int | None = None, each: Callable[[], None] | None = None
    ) -> Any: ...


class Explained(NamedTuple):
    """Who painted what: shares of each pixel, which add up to 1 over the painters."""

    picture: Pictures
    """The picture painted again."""
    templates: Float[Tensor, "batch templates_and_ground height width"]
    """By template; the last is the black ground."""
    objects: Float[Tensor, "batch slots height width"]
    """By object, through whose part each template is; the first share is nobody's."""
    presence: Float[Tensor, "batch objects"]
    """How surely each object is there, 0 to 1."""


@runtime_checkable
class Explains(Protocol):
    """Says which of its parts, and which of its objects, painted which pixel."""

    def explain(self, x: Pictures) -> Explained: ...


class Parsed(NamedTuple):
    """How pictures are read: the capsules of every layer, the top first, and whose part each of them is."""

    picture: Pictures
    """The picture painted again."""
    presence: tuple[Float[Tensor, "batch _"], ...]
    """How surely each capsule is there, 0 to 1."""
    whose: tuple[Float[Tensor, "batch _ _"], ...]
    """Between each layer and the one below: how surely each child is each parent's; the first slot is nobody's."""
    painted: tuple[Float[Tensor, "batch _ channels height width"], ...]
    """What each capsule painted of the picture, itself or by its parts."""


@runtime_checkable
class Parses(Protocol):
    """Reads a picture as objects and their parts."""

    def parse(self, x: Pictures) -> Parsed: ...


@runtime_checkable
class Places(Protocol):
    """Paints objects where they are put."""

    @property
    def objects(self) -> int: ...

    def place(self, on: Float[Tensor, "batch objects"], frame: Float[Tensor, "batch objects 2 3"]) -> Pictures: ...


@runtime_checkable
class Moves(Protocol):
    """Paints pictures with their objects moved about their own middles; parts follow."""

    def moved(self, x: Pictures, which: Integer[Tensor, "batch"], by: Float[Tensor, "batch 2 3"]) -> Pictures: ...

    def strongest(self, x: Pictures) -> Integer[Tensor, "batch"]: ...


@runtime_checkable
class ShowsTemplates(Protocol):
    """Has learned the pictures of its simplest parts."""

    def template_sheet(self) -> Pictures: ...


ABILITIES: dict[str, type] = {
    "classify": Classifies,
    "encode": Encodes,
    "reconstruct": Reconstructs,
    "generate": Generates,
    "sample": Samples,
    "draw": Draws,
    "explore": Explores,
    "walk": Walks,
    "score": Scores,
    "edit": Edits,
    "resample": Resamples,
    "interpolate": Interpolates,
    "refine": Refines,
    "explain": Explains,
    "parse": Parses,
    "place": Places,
    "move": Moves,
    "show templates": ShowsTemplates,
    "turn": Turns,
}


def abilities(model: CapsuleModel) -> tuple[str, ...]:
    """Lists what a model can do, by the protocols that it meets."""
    return tuple(name for name, protocol in ABILITIES.items() if isinstance(model, protocol))
