"""What any of the four systems offers to the engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from gencaps.data.images import ImageSet, Labels
from gencaps.primitives.noise import Noise

Pictures = Float[Tensor, "batch channels height width"]
"""Pictures as numbers from 0 to 1."""
Labelling = Integer[Tensor, "batch"] | Integer[Tensor, "batch attributes"]


@dataclass(frozen=True)
class PictureInfo:
    """What the pictures look like that a model was built for."""

    channels: int
    """1 for grey, 3 for colour."""
    size: int
    """Pixels a side; pictures are square."""
    names: tuple[str, ...]
    """The classes, or the attributes."""
    labels: Labels = "classes"
    """Whether a picture has one class or many attributes."""
    data: str = ""
    """The data set that the model was trained on."""

    @classmethod
    def of(cls, images: ImageSet) -> PictureInfo:
        """Reads it off a picture set."""
        return cls(images.x.shape[1], images.x.shape[2], images.names, images.labels, images.name)


class Losses(NamedTuple):
    """What one player minimises, already averaged over the batch, and the named parts it is made of."""

    total: Float[Tensor, ""]
    terms: dict[str, Float[Tensor, ""]]


class Stage(NamedTuple):
    """A part of training that runs to its end before the next begins."""

    name: str
    epochs: int | None = None
    """How many epochs it takes; ``None`` takes the run's own number."""


class Player(NamedTuple):
    """A part of the model that is optimised against its own loss, in turn with the others."""

    parameters: list[nn.Parameter]
    rate: float = 1.0
    """Multiplies the run's learning rate (two time scales)."""
    optimizer: Literal["adam", "adamw", "sgd"] | None = None
    """Replaces the run's optimizer; ``None`` keeps it."""


class Step(NamedTuple):
    """Where in training a loss is asked for."""

    noise: Noise
    """The step's random numbers."""
    player: str = "model"
    """Whose loss."""
    stage: str = "all"
    """Which stage runs."""
    progress: float | Float[Tensor, ""] = 1.0
    """The share of the stage that is done, 0 to 1, for warm-ups; on the device where steps are recorded."""

    def done(self, x: Tensor) -> Float[Tensor, ""]:
        """Gives the share of the stage that is done as a number beside x, without a look from the host."""
        return self.progress if isinstance(self.progress, Tensor) else x.new_full((), self.progress)


class CapsuleModel(nn.Module):
    """A trainable system of capsules: the one thing that the engine knows about.

    A system beyond that offers what it can do by having the methods of the protocols below; the API,
    the command line and the studio ask for those and say plainly what a model cannot do.
    """

    paper: ClassVar[str] = ""
    """The room's name under ``gencaps.papers`` or ``gencaps.baselines``."""
    title: ClassVar[str] = ""
    """What the system is called in texts for people."""
    compiled: ClassVar[tuple[str, ...]] = ()
    """The methods, tensors in and tensors out, that a run may compile; what they give lives for one player's turn."""

    unaveraged: ClassVar[tuple[str, ...]] = ()
    """The parts that ``train.ema`` leaves as they are: their last weights are kept."""

    teachers: ClassVar[tuple[str, ...]] = ()
    """The parts that training alone needs; a model that is saved to travel leaves them behind."""

    def __init__(self, config: Any, pictures: PictureInfo) -> None:
        super().__init__()
        self.config = config
        self.pictures = pictures

    @classmethod
    def variant(cls, config: Any) -> type[CapsuleModel]:
        """Chooses the class that settings ask for, where what a system can do depends on them."""
        return cls

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def stages(self) -> tuple[Stage, ...]:
        """Lists the stages in the order in which they are trained."""
        return (Stage("all"),)

    def players(self, stage: str) -> dict[str, Player]:
        """Lists the players of a stage in the order in which they move."""
        return {"model": Player(list(self.parameters()))}

    def begin(self, stage: str, x: Pictures, noise: Noise) -> None:
        """Is called once before the first step of a stage, with its first pictures."""
        return

    @abstractmethod
    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes what the step's player minimises on a batch."""

    def steady(self, stage: str) -> bool:
        """Whether a step of a stage does the same work however far training is, without a look from the host.

        Such a step is recorded once on a GPU, as a CUDA graph, and replayed. ``losses`` must then not decide anything
        by a tensor's value, and take how far training is from ``step.done``.
        """
        return False

    def remarks(self, means: dict[str, float], progress: float) -> tuple[str, ...]:
        """Says in a line each what a user should know of an epoch, by the means of its loss terms.

        Each line stays the same while it holds: it is said once, when it begins to hold.

        Args:
            means: the loss terms' means over the epoch, named as in the run's metrics.
            progress: the share of the stage that is done, 0 to 1.
        """
        return ()

    def forward(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Is how the engine asks for the losses: mixed precision and DDP work on ``forward`` alone."""
        return self.losses(x, y, step)


def averaged(terms: dict[str, Tensor], weights: Mapping[str, float | Tensor] | None = None) -> Losses:
    """Averages per-example terms over the batch, once, and adds them up with their weights."""
    means = {name: values.float().mean() for name, values in terms.items()}
    weights = weights or {}
    total = torch.stack([weights.get(name, 1.0) * mean for name, mean in means.items()]).sum()
    return Losses(total, means)


def count_parameters(parameters: Iterable[nn.Parameter]) -> int:
    """Counts the numbers that training may change."""
    return sum(p.numel() for p in parameters if p.requires_grad)
