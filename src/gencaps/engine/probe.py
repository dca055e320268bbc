"""What a linear classifier reads off the latent variables of a trained model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.abilities import Encodes
from gencaps.data.batches import iterate
from gencaps.data.images import ImageSet, Splits
from gencaps.data.splits import permutation
from gencaps.engine.evaluate import pixels
from gencaps.errors import GencapsError
from gencaps.metrics.probe import LinearProbe

BATCH = 1000
Features = Callable[[Any, Tensor], Tensor]
"""What is probed of a model: numbers for each picture."""


def latents(model: Any, x: Tensor) -> Float[Tensor, "batch features"]:
    """Gives all numbers of a picture's capsules, of a scene's objects, or (mu, sigma) of a Gaussian posterior.

    (mu, sigma) is what (Smith et al., 2021), Table 1, probe of a VAE.
    """
    code = model.encode(x)
    if hasattr(code, "objects"):
        return presences_and_poses(code)
    if hasattr(code, "log_var"):
        return torch.cat([code.mu.flatten(1), (code.log_var / 2).exp().flatten(1)], 1)
    return code.pose.flatten(1)


def presences_and_poses(code: Any) -> Float[Tensor, "batch features"]:
    """Gives the logits of q(t0) and the poses A0 of a scene's objects. (Smith et al., 2021), section 5.1."""
    return torch.cat([code.objects.presence_logit, code.objects.pose.flatten(1)], 1)


@torch.no_grad()
def of_all(
    model: Any, images: ImageSet, features: Features = latents, batch: int = BATCH
) -> Float[Tensor, "n features"]:
    """Gives the latent variables of a whole set, or other features, so many pictures at a time."""
    return torch.cat([features(model, pixels(x)) for x, _ in iterate(images, batch, model.device)])


def probe_accuracy(model: Any, splits: Splits, labels: int, seed: int = 0) -> tuple[float, int]:
    """Fits a probe on so many labelled training pictures; gives its accuracy on the test part and the labels used.

    Args:
        model: what encodes.
        splits: the data.
        labels: how many labels are told, at least one of each class; all where there are fewer.
        seed: draws which.
    """
    train, test = splits.train, splits.test
    if train.labels != "classes":
        raise GencapsError(f"'{train.name}' has attributes: a probe reads classes, choose data with classes")
    if not isinstance(model, Encodes):
        raise GencapsError(f"a {model.paper} model does not encode: there is nothing to fit a probe on")
    if labels < len(train.names):
        raise GencapsError(f"--labels is {labels}; tell at least {len(train.names)}, one for each class")
    chosen = train[permutation(len(train), seed)[:labels]]
    features = of_all(model, chosen)
    fitted = LinearProbe.fit(features, chosen.y.to(features.device), len(train.names))
    return fitted.accuracy(of_all(model, test), test.y), len(chosen)
