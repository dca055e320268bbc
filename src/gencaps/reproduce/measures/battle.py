"""CapsuleGAN against the convolutional GAN: each one's samples before the other's discriminator."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.abilities import Scores
from gencaps.engine.evaluate import pixels
from gencaps.errors import GencapsError
from gencaps.metrics.adversarial import generative_adversarial_metric
from gencaps.model import CapsuleModel
from gencaps.reproduce.subject import BATCH, Measured, Subject, sample

SAMPLES = 10_000


def gam(subject: Subject) -> Measured:
    """Pits the first run's GAN against the second's by the generative adversarial metric.

    (Jaiswal et al., 2018), section 5.3: threshold 0.5, all test pictures, 10,000 samples of each.
    """
    capsule, gan = (trained.model for trained in subject.trained)
    test, n = subject.splits.test.x, subject.count(SAMPLES, 60)
    ours, theirs = (sample(model, n, subject.noise("gam")) for model in (capsule, gan))
    found = generative_adversarial_metric(
        scores(gan, ours), scores(capsule, theirs), scores(gan, test), scores(capsule, test)
    )
    values = {name: value for name, value in found._asdict().items() if isinstance(value, float)}
    said = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
    return Measured(values, (f"seed {subject.seed}: {said}; verdict {found.verdict}",))


@torch.no_grad()
def scores(model: CapsuleModel, x: Tensor) -> Float[Tensor, "n"]:
    """Asks a discriminator about pictures, values 0 to 1 or bytes, some hundred at a time."""
    if not isinstance(model, Scores):
        raise GencapsError(f"a {model.paper} model does not score pictures: this claim needs one that does")
    parts = (part.to(model.device) for part in x.split(BATCH))
    return torch.cat([model.score(pixels(part) if part.dtype == torch.uint8 else part) for part in parts])
