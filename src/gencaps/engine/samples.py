"""Pictures of how training goes, drawn from fixed noise so that two epochs can be compared."""

from __future__ import annotations

import numpy as np
import torch

from gencaps.abilities import Generates, Reconstructs, Samples
from gencaps.data.images import Splits
from gencaps.engine.evaluate import pixels
from gencaps.engine.log import RunLog
from gencaps.engine.run import Run
from gencaps.figures import grid, save_picture
from gencaps.model import CapsuleModel
from gencaps.primitives.noise import Noise, mix_seed

ROWS, COLUMNS = 10, 10


def class_grid(model: CapsuleModel, rows: int, columns: int, noise: Noise) -> torch.Tensor:
    """Generates a row of pictures for each of the first classes: (rows, columns, channels, size, size)."""
    assert isinstance(model, Generates)
    labels = torch.arange(rows, device=model.device).repeat_interleave(columns)
    return model.generate(labels, noise).unflatten(0, (rows, columns))


def attribute_grid(model: CapsuleModel, splits: Splits, rows: int, columns: int, noise: Noise) -> torch.Tensor:
    """Generates a row of pictures with the attributes of each of the first training pictures."""
    assert isinstance(model, Generates)
    y = splits.train.y[:rows].to(model.device).repeat_interleave(columns, 0)
    return model.generate(y, noise).unflatten(0, (-1, columns))


@torch.no_grad()
def write_samples(model: CapsuleModel, splits: Splits, run: Run, log: RunLog, name: str, step: int) -> None:
    """Writes a grid of generated and one of reconstructed pictures into the run's samples folder."""
    was_training = model.training
    model.eval()
    noise, image = Noise(mix_seed(run.recipe.seed, "samples"), model.device), None
    if isinstance(model, Generates) and model.pictures.labels == "classes":
        rows = min(ROWS, len(model.pictures.names))
        made = class_grid(model, rows, COLUMNS, noise)
        image = grid(made.flatten(0, 1), COLUMNS, row_labels=model.pictures.names[:rows])
    elif isinstance(model, Generates):
        image = grid(attribute_grid(model, splits, ROWS, COLUMNS, noise).flatten(0, 1), COLUMNS)
    elif isinstance(model, Samples):
        image = grid(model.sample(ROWS * COLUMNS, noise), COLUMNS)
    if image is not None:
        save_picture(image, run.path / "samples" / f"{name}_generated.png")
        log.picture("generated", torch.from_numpy(np.array(image)), step)
    if isinstance(model, Reconstructs):
        part = splits.valid if len(splits.valid) else splits.train
        x = pixels(part.x[: ROWS * COLUMNS // 2].to(model.device))
        pairs = torch.stack([x, model.reconstruct(x)], 1).flatten(0, 1)
        image = grid(pairs, COLUMNS)
        save_picture(image, run.path / "samples" / f"{name}_reconstructed.png")
        log.picture("reconstructed", torch.from_numpy(np.array(image)), step)
    model.train(was_training)
