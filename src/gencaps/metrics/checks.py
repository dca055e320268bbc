"""What a metric refuses to measure, said in one line."""

from __future__ import annotations

from jaxtyping import Float, Integer, Shaped
from torch import Tensor

from gencaps.errors import GencapsError

ROUNDING = 1e-6
"""How far a probability in float32 may stand outside 0 to 1."""


def refuse_shape(x: Tensor, axes: str, name: str) -> None:
    """Refuses a tensor that has not one axis for each word of ``axes``: "n features"."""
    if x.ndim != len(axes.split()):
        raise GencapsError(f"{name} have the shape {tuple(x.shape)}; give ({', '.join(axes.split())})")


def refuse_uneven(a: Tensor, b: Tensor, a_name: str, b_name: str) -> None:
    """Refuses two tensors whose shapes differ in the axes that both have: they do not belong together."""
    shared = min(a.ndim, b.ndim)
    if a.shape[:shared] != b.shape[:shared]:
        raise GencapsError(
            f"{a_name} have the shape {tuple(a.shape)} and {b_name} {tuple(b.shape)}; give as many of both"
        )


def refuse_fractions(y: Tensor, name: str) -> None:
    """Refuses labels that are not kept as whole numbers."""
    if y.is_floating_point():
        raise GencapsError(f"{name} are of {y.dtype}, which are no classes; give whole numbers (argmax, or .long())")


def refuse_unpaired(
    read: Tensor, true: Tensor, axes: str = "n", names: tuple[str, str] = ("the predictions", "the labels")
) -> None:
    """Refuses two sets of labels that cannot be compared one by one."""
    for y, name in zip((read, true), names, strict=True):
        refuse_shape(y, axes, name)
        refuse_fractions(y, name)
    refuse_uneven(read, true, *names)


def refuse_unusable(features: Shaped[Tensor, "n *rest"], name: str, least: int = 1, *, what: str = "features") -> None:
    """Refuses features that are not finite, or of fewer than ``least`` samples.

    Args:
        features: one row a sample.
        name: the set that they are of, as the message says it: "the generated set".
        least: samples that the metric needs.
        what: what the rows hold, as the message says it.
    """
    if len(features) < least:
        have = "1 sample" if len(features) == 1 else f"{len(features)} samples"
        raise GencapsError(f"{name} has {have} and this metric needs at least {least}; pass more pictures")
    bad = int((~features.isfinite()).sum())
    if bad:
        hold = "hold 1 value that is" if bad == 1 else f"hold {bad} values that are"
        raise GencapsError(
            f"the {what} of {name} {hold} not finite; check the pictures and the weights they were computed with"
        )


def refuse_unlike(a: Shaped[Tensor, "n features_a"], b: Shaped[Tensor, "m features_b"]) -> None:
    """Refuses two sets of features of different widths: they were not made by one network."""
    refuse_shape(a, "n features", "the features of one set")
    refuse_shape(b, "n features", "the features of the other set")
    if a.shape[1] != b.shape[1]:
        raise GencapsError(
            f"one set has {a.shape[1]} features a sample and the other {b.shape[1]}; compute both with the same network"
        )


def refuse_labels(y: Integer[Tensor, "*shape"], classes: int, name: str) -> None:
    """Refuses labels that are not among 0 to classes - 1."""
    refuse_fractions(y, f"the labels of {name}")
    if classes < 1:
        raise GencapsError(f"{name} cannot have {classes} classes; give at least 1")
    if y.numel() == 0:
        return
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= classes:
        raise GencapsError(
            f"the labels of {name} run from {low} to {high}; with {classes} classes give 0 to {classes - 1}"
        )


def refuse_improbable(p: Float[Tensor, "n classes"], name: str) -> None:
    """Refuses presences or probabilities that are none: not finite, outside 0 to 1, or of no sample."""
    refuse_shape(p, "n classes", f"the presences of {name}")
    refuse_unusable(p, name, what="presences")
    low, high = p.min().item(), p.max().item()
    if low < -ROUNDING or high > 1 + ROUNDING:
        raise GencapsError(f"the presences of {name} run from {low:g} to {high:g}; give values from 0 to 1, not logits")
