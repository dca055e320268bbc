"""The settings of the residual network."""

from __future__ import annotations

from dataclasses import dataclass

from gencaps.errors import GencapsError, refuse_below


@dataclass(frozen=True)
class ResNetConfig:
    """A residual network for classes or attributes; the defaults are ResNet-18."""

    width: int = 64
    """Channels of the first stage; each stage after has twice as many."""
    blocks: tuple[int, ...] = (2, 2, 2, 2)
    """Residual blocks of each stage; every stage but the first halves the picture."""
    stem_stride: int = 1
    """Stride of the first convolution; 2 makes large pictures four times cheaper."""
    smoothing: float = 0.0
    """Label smoothing: the share of the target that is spread evenly."""
    dropout: float = 0.0
    """Share of the features dropped before the last layer."""

    def __post_init__(self) -> None:
        refuse_below(self, 1, "width", "stem_stride")
        if not self.blocks or any(count < 1 for count in self.blocks):
            raise GencapsError(f"model.blocks is {self.blocks}; give one stage or more, each of at least 1 block")
        for name in ("smoothing", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise GencapsError(f"model.{name} is {getattr(self, name)}; it must be from 0 to below 1")
