"""A CapsuleGAN that finds the z of a picture, too: what (Jaiswal et al., 2018), section 6, wishes for."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.game import Codes, Terms
from gencaps.model import PictureInfo, Pictures, Player
from gencaps.papers.capsule_gan.config import CapsuleGANConfig
from gencaps.papers.capsule_gan.margin_game import Lengths, MarginGame
from gencaps.papers.capsule_gan.networks import CapsuleEncoder
from gencaps.primitives.diversity import batch_diversity
from gencaps.primitives.losses import length_margin_loss
from gencaps.primitives.noise import Noise
from gencaps.primitives.squash import length


class Code(NamedTuple):
    """Where a picture lies among those that the generator paints."""

    z: Float[Tensor, "batch latent"]


class CapsuleBiGAN(MarginGame):
    """Trains a capsule network E that encodes beside the generator that paints; the discriminator sees pairs.

    (x, E(x)) is to look real and (G(z), z) painted; once D cannot tell the two kinds of pairs apart, E undoes G
    (Donahue et al., 2017). Generator and encoder are one player. The margin loss takes the place of cross entropy, as
    in (Jaiswal et al., 2018), Eq. (3).
    """

    title = "CapsuleGAN with an encoder"

    def __init__(self, config: CapsuleGANConfig, pictures: PictureInfo) -> None:
        super().__init__(config, pictures, paired=config.latent)
        self.encoder = CapsuleEncoder(config, pictures)

    def players(self, stage: str) -> dict[str, Player]:
        """Lets the discriminator move first, then generator and encoder together."""
        players = super().players(stage)
        both = [*self.generator.parameters(), *self.encoder.parameters()]
        return {**players, "generator": players["generator"]._replace(parameters=both)}

    def encode(self, x: Pictures) -> Code:
        """Finds the z of pictures: E(x)."""
        return Code(self.encoder(2 * x - 1).float())

    def lengths(self, x: Pictures, z: Codes | None = None) -> Lengths:
        """Measures D(x, z), how surely the pair is of a real picture and its code; without z, of E(x)."""
        return length(self.discriminator(2 * x - 1, self.encode(x).z if z is None else z))

    def tell_apart(self, x: Pictures, z: Codes) -> Terms:
        """Gives L_M(D(x, E(x)), T = 1) and L_M(D(G(z), z), T = 0), what the discriminator minimises.

        (Donahue et al., 2017), section 3, with the margin loss in the place of cross entropy.
        """
        with torch.no_grad():  # generator and encoder wait while the discriminator moves
            fake, seen = self.paint(z), self.encode(x).z
        return self.margins(self.lengths(x, seen), self.lengths(fake, z), self.wanted(z))

    def deceive(self, x: Pictures, z: Codes) -> Terms:
        """Gives L_M(D(G(z), z), T = 1) and L_M(D(x, E(x)), T = 0), what generator and encoder minimise.

        (Donahue et al., 2017), section 3.4: the labels are swapped.

        And ``||G(E(x)) - x||^2`` of a pixel, which counts ``cycle_weight`` times, as the game says little of which z
        belongs to which picture: ALICE, (Li et al., 2017), section 3.2.

        Note: departs from Eq. (2) of (Jaiswal et al., 2018) in that the encoder's part is not weighed down by lambda:
        it is there to keep D's own capsules from shrinking, and D waits here.
        """
        fake, wanted, seen = self.paint(z), self.wanted(z), self.encode(x).z
        terms = {
            "deceive": length_margin_loss(self.lengths(fake, z), wanted),
            "encode": length_margin_loss(self.lengths(x, seen), torch.zeros_like(wanted), down_weight=1.0),
            "diversity": batch_diversity(fake, x),
        }
        if self.config.cycle_weight == 0:
            return terms
        return {**terms, "cycle": (self.paint(seen) - x).square().mean((1, 2, 3))}

    @property
    def weights(self) -> dict[str, float]:
        """What the terms count: that of a picture painted again, too."""
        return {**super().weights, "cycle": self.config.cycle_weight}

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        """Paints G(E(x)); there is nothing random in it."""
        return self.paint(self.encode(x).z)

    def interpolate(
        self, start: Pictures, end: Pictures, steps: int, only: Tensor | None = None
    ) -> Float[Tensor, "batch steps channels height width"]:
        """Walks in a straight line between two pictures' z."""
        if only is not None:
            raise GencapsError("a CapsuleGAN has no capsules for single attributes: walk in all of them")
        share = torch.linspace(0, 1, steps, device=start.device)[:, None]
        path = torch.lerp(self.encode(start).z[:, None], self.encode(end).z[:, None], share)
        return self.paint(path.flatten(0, 1)).unflatten(0, (len(start), steps))
