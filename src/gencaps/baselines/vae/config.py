"""The settings of the variational autoencoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gencaps.errors import GencapsError, refuse_below


@dataclass(frozen=True)
class VAEConfig:
    """A variational autoencoder of dense layers."""

    latent: int = 10
    """Numbers in z; 10 is what (Smith et al., 2021), section 4, call simple."""
    hidden: tuple[int, ...] = (512, 256)
    """Widths of the encoder's hidden layers, and of the decoder's in reverse."""
    likelihood: Literal["mse", "bernoulli"] = "bernoulli"
    """Half squared error, or Bernoulli cross entropy."""
    kl_weight: float = 1.0
    """Weight of the KL to the prior; 1 is the bound."""

    def __post_init__(self) -> None:
        refuse_below(self, 1, "latent", "hidden")
        if self.kl_weight < 0:
            raise GencapsError(f"model.kl_weight is {self.kl_weight}; it must not be negative")
