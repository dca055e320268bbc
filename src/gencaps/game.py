"""The game that CapsuleGAN and its convolutional rival play: one generator, and a discriminator of each one's own."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Player, Step, averaged
from gencaps.primitives.dcgan import dcgan_generator
from gencaps.primitives.noise import Noise

PerPicture = Float[Tensor, "batch"]
Codes = Float[Tensor, "batch code"]
"""What the generator paints from: z, and what it is told beside it."""
Terms = dict[str, Float[Tensor, "*batch"]]
COLLAPSED = 0.3
"""The diversity below which generated pictures are said to be too much alike."""
SETTLED = 0.1
"""The share of training before which nothing is said: a generator begins with pictures that are all alike."""


class AdversarialGame(CapsuleModel):
    """Lets a generator, which paints from noise, and a discriminator, which tells its pictures from real ones, play.

    Both models of (Jaiswal et al., 2018), section 5, are of this kind and have the same generator. A model adds its
    discriminator, after ``__init__``, and what the two players minimise.

    Args:
        config: has ``latent``, ``width``, ``between`` and ``discriminator_rate``.
        told: numbers that the generator is told beside z.
    """

    compiled = ("tell_apart", "deceive")
    # a discriminator follows the generator, and the mean of where it was judges no generator there is: on CIFAR-10 it
    # took 75 to 97 % of unseen real pictures for painted ones, where the last one was undecided
    unaveraged = ("discriminator",)
    discriminator: nn.Module

    def __init__(self, config: Any, pictures: PictureInfo, told: int = 0) -> None:
        super().__init__(config, pictures)
        self.generator = dcgan_generator(
            config.latent + told, config.width, pictures.channels, pictures.size, config.between
        )

    def steady(self, stage: str) -> bool:
        """Says that a step is always the same work."""
        return True

    def players(self, stage: str) -> dict[str, Player]:
        """Lets the discriminator move first, at its own rate."""
        return {
            "discriminator": Player(list(self.discriminator.parameters()), self.config.discriminator_rate),
            "generator": Player(list(self.generator.parameters())),
        }

    @abstractmethod
    def tell_apart(self, x: Pictures, z: Codes) -> Terms:
        """Gives what the discriminator minimises; the generator waits meanwhile."""

    @abstractmethod
    def deceive(self, x: Pictures, z: Codes) -> Terms:
        """Gives what the generator minimises, and ``diversity`` beside it, which it does not."""

    @property
    def weights(self) -> dict[str, float]:
        """What the generator's terms count, those that do not count 1."""
        return {"diversity": 0.0}

    def codes(self, y: Labelling, noise: Noise) -> Codes:
        """Draws what the generator paints from beside training pictures of these labels: z ~ N(0, I), label or not."""
        return self.draw(len(y), noise)

    def draw(self, n: int, noise: Noise) -> Codes:
        """Draws what the generator paints new pictures from: z ~ N(0, I)."""
        return noise.normal(n, self.config.latent)

    def paint(self, z: Codes) -> Pictures:
        """Paints z: G(z), values 0 to 1."""
        return self.generator(z).float().sigmoid()

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes the loss of the player whose turn it is."""
        z = self.codes(y, step.noise)
        if step.player == "generator":
            return averaged(self.deceive(x, z), self.weights)
        return averaged(self.tell_apart(x, z))

    def remarks(self, means: dict[str, float], progress: float) -> tuple[str, ...]:
        """Says so where an epoch's generated pictures were too much alike: the generator has collapsed."""
        if progress < SETTLED or means.get("generator.diversity", 1.0) >= COLLAPSED:
            return ()
        return (
            f"the generated pictures vary less than {COLLAPSED:g} times as much as real ones (generator.diversity in "
            "metrics.jsonl): the generator may have collapsed; try a smaller --train.learning_rate",
        )

    def sample(self, n: int, noise: Noise) -> Pictures:
        """Paints n new pictures from z ~ N(0, I)."""
        return self.paint(self.draw(n, noise))

    def walk(self, n: int, steps: int, noise: Noise) -> Float[Tensor, "n steps channels height width"]:
        """Paints n walks from one draw of z to another."""
        path = self.path(n, steps, noise)
        return self.paint(path.flatten(0, 1)).unflatten(0, (n, steps))

    def path(self, n: int, steps: int, noise: Noise) -> Float[Tensor, "n steps latent"]:
        """Draws two z and walks between them on ``cos(a) z_0 + sin(a) z_1``, a from 0 to a right angle.

        Unlike on a straight line, every step is itself a draw of N(0, I): none is nearer to 0 than the generator knows.
        """
        start, end = (noise.normal(n, 1, self.config.latent) for _ in range(2))
        angle = torch.linspace(0, math.pi / 2, steps, device=start.device)[:, None]
        return angle.cos() * start + angle.sin() * end
