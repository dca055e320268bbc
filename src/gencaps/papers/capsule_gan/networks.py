"""The capsule networks that look at pictures: the discriminator, section 4, and the BiGAN's encoder."""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor, nn

from gencaps.model import PictureInfo
from gencaps.papers.capsule_gan.config import CapsuleGANConfig
from gencaps.primitives.dcgan import halving_layers, halvings
from gencaps.primitives.layers import DenseCapsules, PrimaryCapsules
from gencaps.primitives.routing import Agreement, Over
from gencaps.primitives.squash import unsquash

Pictures = Float[Tensor, "batch channels height width"]


class CapsuleNetwork(nn.Module):
    """Sees capsules in a picture: convolutions, primary capsules, and output capsules by routing.

    The small CapsNet of (Jaiswal et al., 2018), section 4, for any size that halves to 4 to 7 pixels: the last halving
    makes the primary capsules, the ones before are convolutions.

    Note: section 4 gives no sizes. Halving convolutions as the rival's discriminator has them, instead of the 9 x 9
    ones of (Sabour et al., 2017), keep "the number of parameters in the discriminator low".

    Args:
        channels: of the picture.
        size: of the picture, pixels a side.
        width: channels of the first convolution; each after has twice as many.
        capsules: kinds of primary capsules.
        primary_dim: numbers in each of them.
        outputs: output capsules.
        dim: numbers in each of them.
        rounds: rounds of routing.
        over: what the coefficients sum to one over.
        agreement: how a vote is compared with the outcome.
        spectral: holds the spectral norm of the convolutions before the primary capsules at 1. These and routing stay
            free: a squash bounds what comes out of each, and short inputs it shortens to nearly nothing.
        between: 3 x 3 convolutions after each halving before the primary capsules.
        told: numbers that belong to the picture and scale and shift the channels that the primary capsules see.
    """

    def __init__(
        self,
        channels: int,
        size: int,
        width: int,
        capsules: int,
        primary_dim: int,
        outputs: int,
        dim: int,
        rounds: int,
        over: Over,
        agreement: Agreement,
        *,
        spectral: bool = False,
        between: int = 0,
        told: int = 0,
    ) -> None:
        super().__init__()
        steps = halvings(size) - 1
        self.body = nn.Sequential(*halving_layers(width, channels, steps, spectral=spectral, between=between))
        channels, size = (width << (steps - 1) if steps else channels), size >> steps
        self.told = nn.Linear(told, 2 * channels) if told else None
        self.primary = PrimaryCapsules(channels, capsules, primary_dim, 4, 2, 1)
        # over a single output every coefficient is softmax(b) = 1 in every round: further rounds repeat the first
        iterations = 1 if outputs == 1 and over == "outputs" else rounds
        self.routed = DenseCapsules(
            self.primary.count(size, size), primary_dim, outputs, dim, iterations, agreement, over
        )

    def see(
        self, x: Pictures, told: Float[Tensor, "batch told"] | None = None
    ) -> Float[Tensor, "batch capsules primary_dim"]:
        """Gives the primary capsules of pictures with values from -1 to 1."""
        maps = self.body(x)
        if self.told is not None:
            scale, shift = self.told(told)[:, :, None, None].chunk(2, 1)
            maps = maps * (1 + scale) + shift
        # routing keeps float32, but the first layers may run in half precision
        return self.primary(maps).float()

    def forward(
        self, x: Pictures, told: Float[Tensor, "batch told"] | None = None
    ) -> Float[Tensor, "batch outputs dim"]:
        """Gives the output capsules of pictures with values from -1 to 1."""
        return self.routed(self.see(x, told))


def capsule_network(
    config: CapsuleGANConfig, pictures: PictureInfo, outputs: int, *, spectral: bool = False, told: int = 0
) -> CapsuleNetwork:
    """Builds the capsule network that a config names, with so many output capsules."""
    return CapsuleNetwork(
        pictures.channels,
        pictures.size,
        config.discriminator,
        config.capsules,
        config.primary_dim,
        outputs,
        config.dim,
        config.rounds,
        config.over,
        config.agreement,
        spectral=spectral,
        between=config.between,
        told=told,
    )


class CapsuleEncoder(nn.Module):
    """Finds the z of a picture: as many routed capsules as hold its numbers, before their squash, then a linear layer.

    The encoder that (Jaiswal et al., 2018), sections 2 and 6, propose for a BiGAN.
    """

    def __init__(self, config: CapsuleGANConfig, pictures: PictureInfo) -> None:
        super().__init__()
        count = math.ceil(config.latent / config.dim)
        self.capsules = capsule_network(config, pictures, count)
        self.linear = nn.Linear(count * config.dim, config.latent)

    def forward(self, x: Pictures) -> Float[Tensor, "batch latent"]:
        """Gives z of pictures with values from -1 to 1."""
        return self.linear(unsquash(self.capsules(x)).flatten(1))
