"""How much of the class a linear classifier reads off the latent variables."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.baselines.rbm import RBM
from gencaps.data.transforms import rotated
from gencaps.engine.evaluate import pixels
from gencaps.engine.probe import Features, latents, of_all
from gencaps.metrics.pca import PCA
from gencaps.metrics.probe import LinearProbe
from gencaps.metrics.rotation import ANGLES, rotation_sweep
from gencaps.reproduce.subject import Measured, Subject

UNITS, RBM_EPOCHS = 320, 20
"""Numbers in 20 capsules of 16, which what they are compared with has too."""
TRAIN_TURNS = 1
"""The seed of the angles that a probe's training pictures are turned by, where the model was trained on turned ones."""


def presences(model: Any, x: Tensor) -> Float[Tensor, "batch features"]:
    """Gives the logits of q(t0): what (Smith et al., 2021), section 5.1, probe of their capsules."""
    return model.encode(x).objects.presence_logit


def presences_and_poses(model: Any, x: Tensor) -> Float[Tensor, "batch features"]:
    """Gives the logits of q(t0) and the poses A0."""
    objects = model.encode(x).objects
    return torch.cat([objects.presence_logit, objects.pose.flatten(1)], 1)


def probe(subject: Subject) -> Measured:
    """Probes (mu, sigma)."""
    return probe_on(subject, latents)


def probe_presence(subject: Subject) -> Measured:
    """Probes t0."""
    return probe_on(subject, presences)


def probe_pose(subject: Subject) -> Measured:
    """Probes t0 and A0."""
    return probe_on(subject, presences_and_poses)


@torch.no_grad()
def probe_on(subject: Subject, features: Features) -> Measured:
    """Fits a linear probe on the training latents and tests it on the test part, plain and turned by up to N degrees.

    The model and the probe see upright pictures alone, but where the model was trained on turned ones: then the
    probe's training pictures are turned alike (Smith et al., 2021), sections 5.2 and 5.3.
    """
    model, splits = subject.model, subject.splits
    degrees = subject.run.recipe.train.degrees
    train = rotated(splits.train, degrees, TRAIN_TURNS) if degrees else splits.train
    fitted = LinearProbe.fit(of_all(model, train, features), train.y.to(model.device), len(train.names))

    def read(x: Tensor) -> Tensor:
        x = x.to(model.device)
        return fitted.predict(features(model, pixels(x) if x.dtype == torch.uint8 else x)).cpu()

    turned = rotation_sweep(read, splits.test.x, splits.test.y, ANGLES)
    return Measured({"test": turned[0.0], **{f"rotated-{angle:g}": share for angle, share in turned.items()}})


def probe_pca320(subject: Subject) -> Measured:
    """Fits the probe on the first 320 principal components of the pixels: the figure to compare with."""
    train, test, device = subject.splits.train, subject.splits.test, subject.model.device
    pca = PCA.fit(flat(train.x, device), UNITS)
    return _probed(subject, pca.encode(flat(train.x, device)), pca.encode(flat(test.x, device)))


def probe_rbm320(subject: Subject) -> Measured:
    """Fits the probe on the 320 units of a restricted Boltzmann machine: the figure to compare with."""
    train, test, device = subject.splits.train, subject.splits.test, subject.model.device
    rbm = RBM.fit(flat(train.x, device), UNITS, subject.noise("rbm"), epochs=subject.count(RBM_EPOCHS, 1))
    return _probed(subject, rbm.encode(flat(train.x, device)), rbm.encode(flat(test.x, device)))


def _probed(subject: Subject, features: Tensor, test: Tensor) -> Measured:
    train = subject.splits.train
    fitted = LinearProbe.fit(features, train.y.to(features.device), len(train.names))
    return Measured({"test": fitted.accuracy(test, subject.splits.test.y)})


def flat(x: Tensor, device: torch.device) -> Float[Tensor, "n features"]:
    """Gives pictures as rows of numbers from 0 to 1."""
    return pixels(x.to(device)).flatten(1)
