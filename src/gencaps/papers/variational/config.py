"""The settings of variational capsules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gencaps.errors import GencapsError


@dataclass(frozen=True)
class VariationalConfig:
    """Variational capsules for classes; the defaults are the network of section 4.2 (Huang et al., 2018)."""

    dim: int = 16
    """Numbers in a capsule."""
    widths: tuple[int, ...] = (256, 256, 256)
    """Channels of the encoder's convolutions."""
    strides: tuple[int, ...] = (1, 2, 2)
    """Strides of the encoder's convolutions."""
    kernel: int = 5
    """Side of the encoder's filters; odd."""
    norm: Literal["batch", "group", "none"] = "batch"
    """Normalisation after each convolution; the paper's is batch."""
    decoder: tuple[int, ...] = (512, 1024)
    """Widths of the decoder's hidden layers."""
    margin: float = 20.0
    """m in Eq. (3): the KL beyond which an absent capsule is left in peace."""
    down_weight: float = 0.5
    """lambda in Eq. (3): the weight of the absent capsules."""
    recon_weight: float = 1.0
    """alpha in Eq. (6): the weight of the reconstruction; 0 trains the encoder alone."""
    recon: Literal["sum", "mean"] = "sum"
    """Whether the error is added up over the pixels (the paper) or averaged: then one weight fits every size."""
    likelihood: Literal["mse", "bernoulli"] = "mse"
    """Half squared error, Eq. (4), or Bernoulli cross entropy."""
    mask: Literal["least-kl", "labels"] = "labels"
    """Which capsule paints in training: the one of least KL (the paper) or the label's."""
    flag: bool = False
    """Hands the decoder a 1 beside the active capsule, so that one near 0 still says which it is."""

    def __post_init__(self) -> None:
        for name in ("dim", "kernel"):
            if getattr(self, name) < 1:
                raise GencapsError(f"model.{name} is {getattr(self, name)}; it must be at least 1")
        if self.kernel % 2 == 0:
            raise GencapsError(f"model.kernel is {self.kernel}; it must be odd")
        for name in ("widths", "strides", "decoder"):
            if any(value < 1 for value in getattr(self, name)):
                raise GencapsError(f"model.{name} is {getattr(self, name)}; each must be at least 1")
        if len(self.widths) != len(self.strides) or not self.widths:
            raise GencapsError(
                f"model.widths has {len(self.widths)} entries and model.strides {len(self.strides)}; "
                "give each convolution one of both"
            )
        if self.margin <= 0:
            raise GencapsError(f"model.margin is {self.margin}; it must be above 0")
        for name in ("down_weight", "recon_weight"):
            if getattr(self, name) < 0:
                raise GencapsError(f"model.{name} is {getattr(self, name)}; it must not be negative")
