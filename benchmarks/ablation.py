"""Trains variants of a preset, one setting apart, and sets their figures side by side on held-out training pictures.

    python benchmarks/ablation.py mnist --only 0,2 --seed 0 --out rows.json

The test part is never touched: all figures are taken on a tenth of the training pictures.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from gencaps.engine.devices import choose_device
from gencaps.engine.evaluate import evaluate
from gencaps.engine.recipe import make_recipe
from gencaps.engine.run import environment
from gencaps.engine.train import start
from gencaps.metrics.generation import read_as_asked, spread
from gencaps.primitives.noise import Noise
from gencaps.reproduce.judge import get_judge, judge_recipe
from gencaps.reproduce.subject import generate
from gencaps.reproduce.training import overrides, training_seconds

WIDTHS, STRIDES = [32, 64, 64, 128, 128, 192, 192], [1, 1, 2, 1, 2, 1, 2]
STEPS: list[tuple[str, dict[str, Any]]] = [
    ("paper, last weights, straight pictures", {"train.ema": 0.0, "train.bend": 0.0}),
    ("labels paint", {"model.mask": "labels"}),
    ("flag", {"model.flag": True}),
    ("margin 60, reconstruction 4.5 x", {"model.margin": 60.0, "model.recon": "mean", "model.recon_weight": 3500.0}),
    ("cross entropy of presences", {"model.presence_weight": 10.0}),
    ("seven layers for three wide ones", {"model.widths": WIDTHS, "model.strides": STRIDES, "model.kernel": 3}),
    ("convolutional decoder", {"model.painter": "convolutional", "model.decoder": [32]}),
    ("averaged weights", {"train.ema": 0.999}),
    ("bent pictures", {"train.bend": 0.7}),
    ("adversary", {"model.adversarial_weight": 10.0}),
    ("adversary told the class", {"model.told": True}),
    ("encoder reads what is invented", {"model.reading_weight": 1.0}),
    (
        "turned by 15 degrees, scaled by 15 %, moved by 3 px, for 10, 10 and 2",
        {"train.degrees": 15.0, "train.scale": 0.15, "train.shift": 3.0},
    ),
    ("KL warm-up", {"model.warmup": 0.2}),
    ("routing between capsules", {"model.encoder": "routed"}),
    ("no augmentation", {"train.degrees": 0.0, "train.scale": 0.0, "train.shift": 0.0, "train.bend": 0.0}),
    ("lighter reconstruction", {"model.recon_weight": 1000.0}),
]
"""Each step is added to those before it, up to preset ``best``; the last four are tried on that one by one."""
KEPT = 13


def settings_of(step: int) -> dict[str, Any]:
    """Gives the settings of a step together with those that it stands on."""
    merged: dict[str, Any] = {}
    for place in [*range(min(step, KEPT - 1) + 1), *([step] if step >= KEPT else [])]:
        merged |= STEPS[place][1]
    return merged


@torch.no_grad()
def look(trained: Any, judge: Any, each: int) -> dict[str, float]:
    """Measures a model on the held-out part."""
    model, held = trained.model, trained.splits.valid
    classes = len(held.names)
    seen = evaluate(model, held)
    asked = torch.arange(classes).repeat_interleave(each)
    made = judge.look(generate(model, asked, Noise(0, model.device)))
    real = judge.look(held.x)
    asked, y = asked.to(made.label.device), held.y.to(made.label.device)
    of_class = spread(made.features, asked, real.features, y, classes)
    return {
        "error_percent": 100 * (1 - (seen.accuracy or 0.0)),
        "mse": seen.mse or 0.0,
        "read_as_asked_percent": 100 * read_as_asked(made.label, asked),
        "spread": of_class.min().item(),
        "seconds": training_seconds(trained.run),
    }


def main() -> None:
    """Runs the steps asked for and prints a row each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="mnist")
    parser.add_argument("--only", help="steps by number, such as 0,3,5")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--each", type=int, default=200, help="generated pictures of each class")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    judge = get_judge(judge_recipe(options.data), quiet=True)
    chosen = range(len(STEPS)) if options.only is None else [int(word) for word in options.only.split(",")]
    rows: list[dict[str, Any]] = []
    for step in chosen:
        settings = {**settings_of(step), "train.valid": 0.1, "train.epochs": options.epochs, "train.samples_every": 0}
        recipe = make_recipe(
            "variational", preset=options.preset, data=options.data, seed=options.seed, overrides=overrides(settings)
        )
        with tempfile.TemporaryDirectory() as folder:
            trained = start(recipe, Path(folder) / "run", quiet=True)
            assert trained is not None
            rows.append(
                {"step": step, "name": STEPS[step][0], "seed": options.seed, **look(trained, judge, options.each)}
            )
        print(
            {key: round(value, 4) if isinstance(value, float) else value for key, value in rows[-1].items()}, flush=True
        )
    if options.out:
        facts = {**environment(choose_device("auto")), "judge": judge.note, "rows": rows}
        options.out.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
