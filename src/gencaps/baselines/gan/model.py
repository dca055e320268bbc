"""A generator and a discriminator that play against each other."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from gencaps.baselines.gan.config import GANConfig
from gencaps.game import AdversarialGame, Codes, PerPicture, Terms
from gencaps.model import PictureInfo, Pictures
from gencaps.primitives.dcgan import dcgan_discriminator
from gencaps.primitives.diversity import batch_diversity


class ConvGAN(AdversarialGame):
    """Paints pictures from noise that a convolutional discriminator cannot tell from real ones.

    (Goodfellow et al., 2014) with the networks of (Radford et al., 2016); labels are never looked at.
    """

    paper = "gan"
    title = "Convolutional GAN"

    def __init__(self, config: GANConfig, pictures: PictureInfo) -> None:
        super().__init__(config, pictures)
        self.config: GANConfig = config
        self.discriminator = dcgan_discriminator(
            config.discriminator,
            pictures.channels,
            pictures.size,
            spectral=config.spectral,
            between=config.between,
        )

    def logit(self, x: Pictures) -> PerPicture:
        """Gives the log odds of each picture being real."""
        return self.discriminator(2 * x - 1).float()

    def tell_apart(self, x: Pictures, z: Codes) -> Terms:
        """Gives -log D(x) and -log(1 - D(G(z))), the discriminator's loss (Goodfellow et al., 2014), Eq. (1)."""
        with torch.no_grad():  # the generator waits while the discriminator moves
            fake = self.paint(z)
        return {"real": F.softplus(-self.logit(x)), "fake": F.softplus(self.logit(fake))}

    def deceive(self, x: Pictures, z: Codes) -> Terms:
        """Gives -log D(G(z)), what the generator minimises: the non-saturating loss of section 3."""
        fake = self.paint(z)
        return {"deceive": F.softplus(-self.logit(fake)), "diversity": batch_diversity(fake, x)}

    def score(self, x: Pictures) -> PerPicture:
        """Gives the discriminator's probability that each picture is real."""
        return self.logit(x).sigmoid()
