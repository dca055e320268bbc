"""How much of the class a linear classifier reads off the latent variables."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.data.batches import iterate
from gencaps.data.images import ImageSet
from gencaps.data.transforms import rotated
from gencaps.engine.evaluate import pixels
from gencaps.metrics.probe import LinearProbe
from gencaps.metrics.rotation import ANGLES, rotation_sweep
from gencaps.reproduce.subject import Measured, Subject

BATCH = 1000
TRAIN_TURNS = 1
"""The seed of the angles that a probe's training pictures are turned by, where the model was trained on turned ones."""


def latents(model: Any, x: Tensor) -> Float[Tensor, "batch features"]:
    """Gives (mu, sigma) of a Gaussian posterior: what (Smith et al., 2021), Table 1, probe of a VAE."""
    posterior = model.encode(x)
    return torch.cat([posterior.mu.flatten(1), (posterior.log_var / 2).exp().flatten(1)], 1)


@torch.no_grad()
def probe(subject: Subject) -> Measured:
    """Fits a linear probe on the training latents and tests it on the test part, plain and turned by up to N degrees.

    The model and the probe see upright pictures alone, but where the model was trained on turned ones: then the
    probe's training pictures are turned alike (Smith et al., 2021), sections 5.2 and 5.3.
    """
    model, splits = subject.model, subject.splits
    degrees = subject.run.recipe.train.degrees
    train = rotated(splits.train, degrees, TRAIN_TURNS) if degrees else splits.train
    fitted = LinearProbe.fit(_all_latents(model, train), train.y.to(model.device), len(train.names))

    def read(x: Tensor) -> Tensor:
        x = x.to(model.device)
        return fitted.predict(latents(model, pixels(x) if x.dtype == torch.uint8 else x)).cpu()

    turned = rotation_sweep(read, splits.test.x, splits.test.y, ANGLES)
    return Measured({"test": turned[0.0], **{f"rotated-{angle:g}": share for angle, share in turned.items()}})


def _all_latents(model: Any, images: ImageSet) -> Float[Tensor, "n features"]:
    return torch.cat([latents(model, pixels(x)) for x, _ in iterate(images, BATCH, model.device)])
