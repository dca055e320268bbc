"""The game of CapsuleGAN: lengths of capsules instead of log odds, the margin loss instead of cross entropy."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.game import AdversarialGame, Codes, PerPicture, Terms
from gencaps.model import PictureInfo, Pictures
from gencaps.papers.capsule_gan.config import CapsuleGANConfig
from gencaps.papers.capsule_gan.networks import capsule_network
from gencaps.primitives.diversity import batch_diversity
from gencaps.primitives.losses import length_margin_loss
from gencaps.primitives.squash import length

Lengths = Float[Tensor, "batch outputs"]


class MarginGame(AdversarialGame):
    """Plays with a capsule network as the discriminator (Jaiswal et al., 2018), section 4.

    Args:
        outputs: output capsules of the discriminator.
        told: numbers that the generator is told beside z.
        paired: numbers that the discriminator sees with each picture.
    """

    paper = "capsule_gan"

    def __init__(
        self, config: CapsuleGANConfig, pictures: PictureInfo, outputs: int = 1, told: int = 0, paired: int = 0
    ) -> None:
        super().__init__(config, pictures, told)
        self.config: CapsuleGANConfig = config
        self.discriminator = capsule_network(config, pictures, outputs, spectral=config.spectral, told=paired)

    def lengths(self, x: Pictures) -> Lengths:
        """Measures the output capsules: D(x), how surely a picture is real, 0 to 1 (section 4)."""
        return length(self.discriminator(2 * x - 1))

    def wanted(self, z: Codes) -> Lengths:
        """Gives T of what is to look real, Eq. (2): 1 for the one output capsule."""
        return z.new_ones(len(z), 1)

    def tell_apart(self, x: Pictures, z: Codes) -> Terms:
        """Gives L_M(D(x), T = 1) and L_M(D(G(z)), T = 0), what the discriminator minimises.

        (Jaiswal et al., 2018), Eq. (3), with the margin loss of Eq. (2).
        """
        with torch.no_grad():  # the generator waits while the discriminator moves
            fake = self.paint(z)
        return self.margins(self.lengths(x), self.lengths(fake), self.wanted(z))

    def margins(self, real: Lengths, fake: Lengths, wanted: Lengths) -> Terms:
        """Gives the discriminator's two margin losses, Eq. (2): T as wanted of real pictures, 0 of painted ones."""
        down = self.config.down_weight
        return {
            "real": length_margin_loss(real, wanted, down_weight=down),
            "fake": length_margin_loss(fake, torch.zeros_like(wanted), down_weight=down),
        }

    def deceive(self, x: Pictures, z: Codes) -> Terms:
        """Gives L_M(D(G(z)), T = 1), what the generator minimises (Jaiswal et al., 2018), section 4."""
        fake = self.paint(z)
        return {
            "deceive": length_margin_loss(self.lengths(fake), self.wanted(z)),
            "diversity": batch_diversity(fake, x),
        }

    def score(self, x: Pictures) -> PerPicture:
        """Gives how real each picture looks: the length of the longest output capsule."""
        return self.lengths(x).amax(1)
