"""The settings of the capsule network."""

from __future__ import annotations

from dataclasses import dataclass

from gencaps.errors import GencapsError, refuse_below


@dataclass(frozen=True)
class CapsNetConfig:
    """The capsule network with dynamic routing; the defaults are the network of (Sabour et al., 2017), section 4."""

    channels: int = 256
    """Filters of the first convolution."""
    kernel: int = 9
    """Side of both convolutions' filters."""
    capsules: int = 32
    """Kinds of primary capsules."""
    primary_dim: int = 8
    """Numbers in a primary capsule."""
    stride: int = 2
    """Stride of the primary capsules' convolution."""
    dim: int = 16
    """Numbers in a class's capsule."""
    iterations: int = 3
    """Rounds of routing."""
    decoder: tuple[int, ...] = (512, 1024)
    """Widths of the decoder's hidden layers."""
    recon_weight: float = 0.0005
    """Weight of the squared error summed over the pixels; 0 trains without a decoder."""

    def __post_init__(self) -> None:
        refuse_below(self, 1, "channels", "kernel", "capsules", "primary_dim", "stride", "dim", "iterations", "decoder")
        if self.recon_weight < 0:
            raise GencapsError(f"model.recon_weight is {self.recon_weight}; it must not be negative")
