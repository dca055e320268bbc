"""A generator and a discriminator that play against each other."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from gencaps.baselines.gan.config import GANConfig
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Player, Step, averaged
from gencaps.primitives.dcgan import dcgan_discriminator, dcgan_generator
from gencaps.primitives.noise import Noise

Latent = Float[Tensor, "batch latent"]


class ConvGAN(CapsuleModel):
    """Paints pictures from noise that a convolutional discriminator cannot tell from real ones.

    (Goodfellow et al., 2014) with the networks of (Radford et al., 2016); labels are never looked at.
    """

    paper = "gan"
    title = "Convolutional GAN"
    compiled = ("tell_apart", "deceive")

    def __init__(self, config: GANConfig, pictures: PictureInfo) -> None:
        super().__init__(config, pictures)
        self.config: GANConfig = config
        self.generator = dcgan_generator(config.latent, config.width, pictures.channels, pictures.size)
        self.discriminator = dcgan_discriminator(
            config.discriminator, pictures.channels, pictures.size, spectral=config.spectral
        )

    def players(self, stage: str) -> dict[str, Player]:
        """Lets the discriminator move first."""
        return {
            "discriminator": Player(list(self.discriminator.parameters()), self.config.discriminator_rate),
            "generator": Player(list(self.generator.parameters())),
        }

    def paint(self, z: Latent) -> Pictures:
        """Paints z: G(z), values 0 to 1."""
        return self.generator(z).float().sigmoid()

    def logit(self, x: Pictures) -> Float[Tensor, "batch"]:
        """Gives the log odds of each picture being real."""
        return self.discriminator(2 * x - 1).float()

    def tell_apart(self, x: Pictures, z: Latent) -> tuple[Float[Tensor, "batch"], Float[Tensor, "batch"]]:
        """Gives -log D(x) and -log(1 - D(G(z))), the discriminator's loss (Goodfellow et al., 2014), Eq. (1)."""
        with torch.no_grad():  # the generator waits while the discriminator moves
            fake = self.paint(z)
        return F.softplus(-self.logit(x)), F.softplus(self.logit(fake))

    def deceive(self, z: Latent) -> Float[Tensor, "batch"]:
        """Gives -log D(G(z)), what the generator minimises: the non-saturating loss of section 3."""
        return F.softplus(-self.logit(self.paint(z)))

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes the loss of the player whose turn it is."""
        z = step.noise.normal(len(x), self.config.latent)
        if step.player == "generator":
            return averaged({"deceive": self.deceive(z)})
        real, fake = self.tell_apart(x, z)
        return averaged({"real": real, "fake": fake})

    def sample(self, n: int, noise: Noise) -> Pictures:
        """Paints n new pictures from z ~ N(0, I)."""
        return self.paint(noise.normal(n, self.config.latent))

    def score(self, x: Pictures) -> Float[Tensor, "batch"]:
        """Gives the discriminator's probability that each picture is real."""
        return self.logit(x).sigmoid()
