"""The judge: an independent classifier for each data set, never one of the models under test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from gencaps.baselines.resnet.model import ResNet
from gencaps.data.cache import cache_folder
from gencaps.data.catalog import ENTRIES
from gencaps.data.images import ImageSet
from gencaps.data.splits import split_record
from gencaps.engine.evaluate import evaluate, pixels
from gencaps.engine.recipe import Recipe, make_recipe, presets
from gencaps.engine.train import Trained, load_splits
from gencaps.metrics.classification import attribute_accuracy
from gencaps.reproduce.training import SMOKE_EPOCHS, ensure_trained

BATCH = 500


class Looked(NamedTuple):
    """What the judge makes of pictures."""

    features: Float[Tensor, "n features"]
    """What its last layer reads from: the features of judge-FD and judge-KID."""
    presence: Float[Tensor, "n names"]
    """How surely each class or attribute is there, 0 to 1."""
    label: Integer[Tensor, "n"] | Integer[Tensor, "n attributes"]


@dataclass(frozen=True, eq=False)
class Judge:
    """A classifier that was trained on the training part alone, and how far its word can be trusted."""

    model: ResNet
    data: str
    each: Float[Tensor, "names"]
    """Share of real test pictures read right, of each attribute; of classes one number, over all pictures."""
    path: Path

    @property
    def accuracy(self) -> float:
        """Share of real test pictures read right; over attributes, the mean of their shares."""
        return self.each.mean().item()

    @property
    def least(self) -> float:
        """The share of the attribute that it reads worst; the accuracy where there are classes."""
        return self.each.min().item()

    @property
    def note(self) -> str:
        """Says how far it can be trusted, beside every score that it gives."""
        worst = "" if self.model.pictures.labels == "classes" else f" (worst attribute {100 * self.least:.2f} %)"
        return f"the judge reads {100 * self.accuracy:.2f} % of real {self.data} test pictures right{worst}"

    @torch.no_grad()
    def look(self, x: Tensor) -> Looked:
        """Looks at pictures, values 0 to 1 or bytes, some hundred at a time, on its own device."""
        parts = [self._look(part) for part in _batches(x, self.model.device)]
        return Looked(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _look(self, x: Float[Tensor, "n channels height width"]) -> Looked:
        features = self.model.features(x)
        logits = self.model.head(features)
        if self.model.pictures.labels == "classes":
            return Looked(features, logits.softmax(1), logits.argmax(1))
        return Looked(features, logits.sigmoid(), (logits > 0).long())


def _batches(x: Tensor, device: torch.device) -> Iterator[Tensor]:
    for part in x.split(BATCH):
        part = part.to(device)
        yield pixels(part) if part.dtype == torch.uint8 else part.float()


def judge_recipe(data: str, *, size: int | None = None, seed: int = 0, smoke: bool = False) -> Recipe:
    """Gives the recipe of a set's judge: its own preset where there is one, else the small one."""
    known = presets("resnet")
    preset = "small" if smoke or data not in known else data
    # a set's own preset is taken as it is, so that the judge whose accuracy is claimed is the one that judges
    train: dict[str, object] = {"valid": 0.0, "samples_every": 0} if preset == "small" else {}
    if smoke:
        train["epochs"] = SMOKE_EPOCHS
    recipe = make_recipe("resnet", preset=preset, data=data, seed=seed, overrides={"train": train})
    entry = ENTRIES.get(data.partition(":")[0])
    # the set's own size said aloud must not make another judge
    if size is None or size == (recipe.train.size or (entry and entry.size)):
        return recipe
    return replace(recipe, train=replace(recipe.train, size=size))


def judge_path(recipe: Recipe, folder: Path | None = None) -> Path:
    """Names the judge's run folder by the content of its recipe and of its data, so that no other is taken for it."""
    content = recipe.to_yaml() + json.dumps(split_record(load_splits(recipe)), sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    name = "".join(letter if letter.isalnum() else "-" for letter in recipe.data)[-40:]
    return (folder or cache_folder() / "judges") / f"{name}-{digest}"


@torch.enable_grad()  # a measure that needs no gradients may be the first to ask
def get_judge(recipe: Recipe, *, folder: Path | None = None, device: str = "auto", quiet: bool = False) -> Judge:
    """Gives a judge from the cache, trained first where it is not there."""
    return as_judge(ensure_trained(recipe, judge_path(recipe, folder), device=device, quiet=quiet))


def as_judge(trained: Trained) -> Judge:
    """Takes a trained residual network as a judge; its accuracy is measured on the test part."""
    model, test = trained.model, trained.splits.test
    assert isinstance(model, ResNet)
    return Judge(model.eval(), trained.run.recipe.data, accuracies(model, test), trained.run.path)


def accuracies(model: ResNet, images: ImageSet) -> Float[Tensor, "names"]:
    """Gives the share read right of each attribute; of classes one number, over all pictures."""
    seen = evaluate(model, images)
    assert seen.predicted is not None
    if images.labels == "classes":
        assert seen.accuracy is not None
        return torch.tensor([seen.accuracy], dtype=torch.float64)
    return attribute_accuracy(seen.predicted, images.y)
