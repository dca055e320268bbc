"""How much of the class a linear classifier reads off the latent variables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.baselines.rbm import RBM
from gencaps.data.images import ImageSet
from gencaps.data.transforms import rotated
from gencaps.engine.evaluate import pixels
from gencaps.engine.probe import of_all
from gencaps.metrics.pca import PCA
from gencaps.metrics.probe import LinearProbe
from gencaps.metrics.rotation import ANGLES
from gencaps.reproduce.subject import Measured, Subject

UNITS, RBM_EPOCHS = 320, 20
"""Numbers in 20 capsules of 16, which what they are compared with has too."""
SWEEP = {f"rotated-{angle:g}": angle for angle in ANGLES}
TEST_TURNS, TRAIN_TURNS = 0, 1
"""Seeds of the angles: of test pictures, and of a probe's training pictures where its model saw turned ones."""


def presences(model: Any, x: Tensor) -> Float[Tensor, "batch features"]:
    """Gives the logits of q(t0): what (Smith et al., 2021), section 5.1, probe of their capsules."""
    return model.encode(x).objects.presence_logit


def probe(subject: Subject) -> Measured:
    """Probes all latent variables."""
    return probe_on(subject, {"": slice(None)}, SWEEP)


def probe_alike(subject: Subject) -> Measured:
    """Probes all latent variables on test pictures that are turned as the training ones were, and no others."""
    return probe_on(subject, {"": slice(None)}, _as_trained(subject))


def probe_scene(subject: Subject) -> Measured:
    """Probes t0, and t0 with A0, of the same codes."""
    return probe_on(subject, _of_scene(subject), SWEEP)


def probe_scene_one_side(subject: Subject) -> Measured:
    """Probes t0, and t0 with A0, where pictures are read as they are given, from one side: what turns bring."""
    model = subject.model
    whole, model.config = model.config, replace(model.config, turns=1)
    try:
        return probe_scene(subject)
    finally:
        model.config = whole


def probe_scene_alike(subject: Subject) -> Measured:
    """Probes t0, and t0 with A0, on test pictures that are turned as the training ones were, and no others."""
    return probe_on(subject, _of_scene(subject), _as_trained(subject))


def _as_trained(subject: Subject) -> dict[str, float]:
    return {"test": subject.run.recipe.train.degrees}


def _of_scene(subject: Subject) -> dict[str, slice]:
    return {"t0-": slice(subject.model.config.capsules[0]), "t0-a0-": slice(None)}


@torch.no_grad()
def probe_on(subject: Subject, parts: dict[str, slice], angles: dict[str, float]) -> Measured:
    """Fits a linear probe on the training latents and tests it on the test part, turned by up to so many degrees.

    The model and the probe see upright pictures alone, but where the model was trained on turned ones: then the
    probe's training pictures are turned alike (Smith et al., 2021), sections 5.2 and 5.3.

    Args:
        parts: which of the latent variables are probed, each by itself, under names that quantities begin with.
        angles: how far test pictures are turned at most, under names that quantities end with.
    """
    model, test = subject.model, subject.splits.test
    train = all_turned(subject.splits.train, subject.run.recipe.train.degrees, TRAIN_TURNS)
    found, y = of_all(model, train), train.y.to(model.device)
    fitted = {name: LinearProbe.fit(found[:, part], y, len(train.names)) for name, part in parts.items()}
    values = {}
    for how, angle in angles.items():
        seen = of_all(model, all_turned(test, angle, TEST_TURNS))
        values |= {f"{name}{how}": fitted[name].accuracy(seen[:, parts[name]], test.y) for name in parts}
    return Measured(values)


def all_turned(images: ImageSet, degrees: float, seed: int) -> ImageSet:
    """Turns every picture by an angle of its own, up to so many degrees; none where that is 0."""
    return rotated(images, degrees, seed) if degrees else images


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
