"""What does the work of routing: fused kernels where they run, plain torch everywhere."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Literal, get_args

import torch
from torch import Tensor

from gencaps.errors import GencapsError, nearest

Backend = Literal["auto", "fused", "plain"]
DEFAULT = os.environ.get("GENCAPS_ROUTING", "auto")
"""What is taken where nobody says: the environment's choice, read once."""


def can_fuse() -> bool:
    """Tells whether the kernels' compiler is there."""
    return find_spec("triton") is not None


def choose(
    u: Tensor, weight: Tensor, agreement: str, gradient: str, backend: str | None = None
) -> Literal["fused", "plain"]:
    """Chooses what does the work; refuses a choice that cannot be had.

    The kernels have no float64, no gradient through the rounds of the cosine, and do not travel in an exported graph.
    """
    wanted = backend or DEFAULT
    if wanted not in get_args(Backend):
        raise GencapsError(f"routing: backend '{wanted}' is not a choice{nearest(wanted, get_args(Backend))}")
    if wanted == "plain":
        return "plain"
    lacking = (
        "it needs Triton: pip install triton" if not can_fuse()
        else "it has no float64" if torch.float64 in (u.dtype, weight.dtype)
        else "it has no gradient through all rounds of the cosine" if (agreement, gradient) == ("cosine", "all")
        else None
    )  # fmt: skip
    if wanted == "fused":
        if lacking is not None:
            raise GencapsError(f"routing: backend 'fused' cannot be had here, {lacking}; give 'auto'")
        return "fused"
    return "fused" if lacking is None and u.is_cuda and not torch.compiler.is_exporting() else "plain"


def describe() -> str:
    """Says what does the work here."""
    if DEFAULT == "plain":
        return "plain torch (GENCAPS_ROUTING=plain)"
    if not can_fuse():
        return "plain torch (Triton is not installed)"
    return "fused kernels" if torch.cuda.is_available() else "plain torch (fused kernels need a GPU)"
