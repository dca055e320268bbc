"""The settings of CapsuleGAN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gencaps.errors import GencapsError, refuse_below, refuse_up_to_zero


@dataclass(frozen=True)
class CapsuleGANConfig:
    """A GAN whose discriminator is a capsule network; the defaults are the paper read literally, without tricks."""

    latent: int = 100
    """Numbers in z."""
    width: int = 64
    """Channels of the generator's last hidden layer; each before has twice as many."""
    discriminator: int = 64
    """Channels of the discriminator's first convolution; each after has twice as many."""
    between: int = 0
    """3 x 3 convolutions of both players after each layer that changes the size."""
    capsules: int = 8
    """Kinds of primary capsules."""
    primary_dim: int = 8
    """Numbers in a primary capsule."""
    dim: int = 16
    """Numbers in the output capsule, whose length says how real a picture is."""
    rounds: int = 3
    """Rounds of routing; over the outputs, with one output capsule, they change nothing and are left out."""
    over: Literal["outputs", "inputs"] = "outputs"
    """What routing coefficients sum to one over: the outputs (Sabour et al.; with one capsule all are 1) or the
    inputs."""
    agreement: Literal["dot", "cosine"] = "cosine"
    """How a vote is compared with the outcome: by inner product (Sabour et al.) or cosine (section 3.2)."""
    down_weight: float = 0.5
    """Lambda of the margin loss, Eq. (2): what the discriminator gives for a short capsule of a painted picture. Where
    it cannot tell, a capsule is 0.63 long at 0.5, which reads as real, and 0.5 long at 1."""
    spectral: bool = False
    """Holds the spectral norm of the convolutions before the primary capsules at 1, instead of batch normalisation."""
    discriminator_rate: float = 1.0
    """The discriminator's learning rate, as a multiple of the run's (two time scales)."""
    conditional: bool = False
    """Paints the class that it is asked for; the discriminator has one output capsule a class."""
    bigan: bool = False
    """Trains an encoder beside the generator, which gives each picture its z (Donahue et al., 2017)."""

    cycle_weight: float = 10.0
    """With ``bigan``: weight of the squared error of a picture that is encoded and painted again (Li et al., 2017); 0
    leaves encoding to the game alone."""

    def __post_init__(self) -> None:
        refuse_below(self, 1, "latent", "width", "discriminator", "capsules", "primary_dim", "dim", "rounds")
        refuse_below(self, 0, "between", "cycle_weight")
        refuse_up_to_zero(self, "discriminator_rate", "down_weight")
        if self.conditional and self.bigan:
            raise GencapsError("model.conditional and model.bigan are both true; choose one of them")
