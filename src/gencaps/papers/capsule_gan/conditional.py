"""A CapsuleGAN that can be asked for a class."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from gencaps.errors import GencapsError
from gencaps.game import Codes
from gencaps.model import Labelling, PictureInfo, Pictures
from gencaps.papers.capsule_gan.config import CapsuleGANConfig
from gencaps.papers.capsule_gan.margin_game import Lengths, MarginGame
from gencaps.primitives.noise import Noise


class ConditionalCapsuleGAN(MarginGame):
    """Paints the class that it is asked for; the discriminator owns one output capsule a class.

    The generator finds the class beside z, as a 1 among zeros: the weights of its first layer that the 1 meets are the
    class's embedding. Eq. (2) (Jaiswal et al., 2018) is over K capsules already: a real picture's T is 1 for its class,
    a generated one's is 0 for all, and the generator wants 1 for the class that it was asked for. So a good picture of
    another class than was asked for is no good answer.

    Note: departs from section 4, which knows no classes. A projection on the discriminator's features (Miyato and
    Koyama, 2018) would be the other choice; it adds to log odds, and a length has none. With K outputs routing over
    the outputs does something, too: primary capsules choose the class that they vote for.
    """

    title = "Conditional CapsuleGAN"

    def __init__(self, config: CapsuleGANConfig, pictures: PictureInfo) -> None:
        if pictures.labels != "classes":
            raise GencapsError(
                f"model.conditional needs pictures with one class each, and '{pictures.data}' has attributes: "
                "leave it false"
            )
        classes = len(pictures.names)
        super().__init__(config, pictures, outputs=classes, told=classes)
        self.classes = classes

    def asking(self, z: Float[Tensor, "batch latent"], y: Labelling) -> Codes:
        """Puts the class beside z."""
        return torch.cat([z, F.one_hot(y.long(), self.classes).to(z.dtype)], 1)

    def wanted(self, z: Codes) -> Lengths:
        """Gives T of what is to look real, Eq. (2): 1 for the capsule of the class that stands beside z."""
        return z[:, self.config.latent :]

    def codes(self, y: Labelling, noise: Noise) -> Codes:
        """Draws z ~ N(0, I) and asks for the training pictures' own classes."""
        return self.asking(noise.normal(len(y), self.config.latent), y)

    def draw(self, n: int, noise: Noise) -> Codes:
        """Draws z ~ N(0, I) and a class, each as likely as the other."""
        return self.codes(self.any_class(n, noise), noise)

    def any_class(self, n: int, noise: Noise) -> Labelling:
        """Draws n classes."""
        return (noise.uniform(n) * self.classes).long()

    def generate(self, y: Labelling, noise: Noise) -> Pictures:
        """Paints new pictures of the classes asked for."""
        return self.paint(self.codes(y, noise))

    def walk(self, n: int, steps: int, noise: Noise) -> Float[Tensor, "n steps channels height width"]:
        """Paints n walks from one draw of z to another, each within one class."""
        y = self.any_class(n, noise).repeat_interleave(steps)
        path = self.path(n, steps, noise).flatten(0, 1)
        return self.paint(self.asking(path, y)).unflatten(0, (n, steps))
