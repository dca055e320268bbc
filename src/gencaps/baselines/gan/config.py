"""The settings of the convolutional GAN."""

from __future__ import annotations

from dataclasses import dataclass

from gencaps.errors import refuse_below, refuse_up_to_zero


@dataclass(frozen=True)
class GANConfig:
    """A deep convolutional GAN with the non-saturating cross entropy."""

    latent: int = 100
    """Numbers in z."""
    width: int = 64
    """Channels of the generator's last hidden layer; each before has twice as many."""
    discriminator: int = 64
    """Channels of the discriminator's first layer; each after has twice as many."""
    between: int = 0
    """3 x 3 convolutions of both players after each layer that changes the size."""
    spectral: bool = False
    """Holds the spectral norm of the discriminator's layers at 1, instead of batch normalisation."""
    discriminator_rate: float = 1.0
    """The discriminator's learning rate, as a multiple of the run's (two time scales)."""

    def __post_init__(self) -> None:
        refuse_below(self, 1, "latent", "width", "discriminator")
        refuse_below(self, 0, "between")
        refuse_up_to_zero(self, "discriminator_rate")
