"""Looks at a trained model over a whole picture set."""

from __future__ import annotations

import time
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from gencaps.abilities import Classifies, Reconstructs
from gencaps.data.batches import iterate
from gencaps.data.images import ImageSet
from gencaps.errors import GencapsError
from gencaps.metrics.classification import accuracy, attribute_accuracy, confusion
from gencaps.model import CapsuleModel


class Evaluation(NamedTuple):
    """What was measured over a set; parts that a model cannot do are ``None``."""

    images: int
    seconds: float
    accuracy: float | None
    """Share of pictures told right; over attributes, the mean of their shares."""
    error_percent: float | None
    correct: int | None
    mse: float | None
    """Mean squared error of a reconstructed pixel, values 0 to 1."""
    confusion: Int[Tensor, "classes classes"] | None
    predicted: Integer[Tensor, "n"] | Integer[Tensor, "n attributes"] | None
    presence: Float[Tensor, "n entities"] | None

    def figures(self) -> dict[str, float | int | None]:
        """Gives the plain numbers, for JSON and logs."""
        names = ("accuracy", "error_percent", "correct", "images", "mse", "seconds")
        return {name: getattr(self, name) for name in names}


def pixels(x: Tensor) -> Tensor:
    """Turns bytes into numbers from 0 to 1."""
    return x.float().div_(255.0)


@torch.no_grad()
def evaluate(model: CapsuleModel, images: ImageSet, batch: int = 500) -> Evaluation:
    """Classifies and reconstructs every picture of a set once, in float32 and without noise."""
    if len(images) == 0:
        raise GencapsError(f"'{images.name}' has no pictures in the part asked for: choose another part")
    started_s = time.perf_counter()
    was_training, labels, presences = model.training, [], []
    model.eval()
    squared = torch.zeros((), device=model.device)
    for x, _ in iterate(images, batch, model.device):
        x = pixels(x)
        if isinstance(model, Classifies):
            seen = model.classify(x)
            labels.append(seen.label)
            presences.append(seen.presence)
        if isinstance(model, Reconstructs):
            squared += (model.reconstruct(x) - x).square().sum()
    model.train(was_training)
    right = table = predicted = presence = None
    if labels:
        predicted, presence = torch.cat(labels).cpu(), torch.cat(presences).cpu()
        if images.labels == "classes":
            right = accuracy(predicted, images.y)
            table = confusion(predicted, images.y, len(images.names))
        else:
            right = attribute_accuracy(predicted, images.y).mean().item()
    mse = squared.item() / images.x.numel() if isinstance(model, Reconstructs) else None
    return Evaluation(
        len(images),
        time.perf_counter() - started_s,
        right,
        None if right is None else 100.0 * (1.0 - right),
        None if table is None else int(table.trace()),
        mse,
        table,
        predicted,
        presence,
    )
