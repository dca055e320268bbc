"""What a report shows; any part may be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor


class Hard(NamedTuple):
    """A test picture that the model got wrong, or nearly."""

    picture: Float[Tensor, "channels height width"]
    true: str
    """The name of its class."""
    predicted: str
    """The name of the class that the model chose."""
    presence: float
    """How surely the model saw the class that it chose, 0 to 1."""


class ReportContent(NamedTuple):
    """Everything on the page; a section whose part is ``None`` or empty is left out."""

    title: str
    """Such as ``Variational capsules on digits``."""
    lead: str
    """One sentence that says what was trained."""
    headline: Sequence[tuple[str, str, str]] = ()
    """Name, value and a note: ``("Test accuracy", "98.9 %", "356 of 360 held-out pictures")``."""
    metrics: Sequence[Mapping[str, Any]] = ()
    """The rows of ``metrics.jsonl``; each has ``split`` (train or valid), ``epoch``, ``step`` if known."""
    names: tuple[str, ...] = ()
    """The classes."""
    confusion: Int[Tensor, "classes classes"] | Float[Tensor, "classes classes"] | None = None
    """Counts; rows are the true class, columns the predicted one."""
    real: Float[Tensor, "n channels height width"] | None = None
    reconstructed: Float[Tensor, "n channels height width"] | None = None
    """The real pictures painted again, in the same order."""
    samples: Float[Tensor, "classes draws channels height width"] | None = None
    """Generated pictures of each class."""
    asked: bool = True
    """Whether each row of samples was painted for a class; else the model painted what it liked."""
    interpolations: Float[Tensor, "strips steps channels height width"] | None = None
    hardest: Sequence[Hard] = ()
    config: str = ""
    """The YAML of the run."""
    command: str = ""
    """The exact command."""
    versions: Mapping[str, str] = {}
    """gencaps, torch, python, device, commit, date."""
    split: Mapping[str, Any] = {}
    """How the data was divided."""
