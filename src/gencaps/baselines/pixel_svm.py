"""A reader of pictures that is no capsule model: a support vector machine on raw pixels."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gencaps.data.images import ImageSet

MOST = 2000
"""Pictures at most, to fit and to try it on: its cost grows with their square."""


class PixelSVM:
    """Judges generated pictures without having seen a model under test; fitted on training pictures alone."""

    def __init__(self, train: ImageSet) -> None:
        from sklearn.svm import SVC

        generator = torch.Generator().manual_seed(0)
        chosen = torch.randperm(len(train), generator=generator)[:MOST]
        self.machine = SVC(C=10.0)
        self.machine.fit(train.x[chosen].flatten(1).numpy() / 255.0, train.y[chosen].numpy())

    def read(self, x: Float[Tensor, "n channels height width"]) -> Int[Tensor, "n"]:
        """Names the class of each picture, values 0 to 1."""
        return torch.from_numpy(self.machine.predict(x.flatten(1).cpu().numpy()))

    def accuracy(self, images: ImageSet) -> float:
        """Gives the share of real pictures that it reads right: how far its word can be trusted."""
        some = images[:MOST]
        return (self.read(some.x / 255.0) == some.y).double().mean().item()
