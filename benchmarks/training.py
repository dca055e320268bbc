"""Trains one recipe over several seeds and writes what it measured.

    python benchmarks/training.py --preset paper --data mnist --out docs/results/mnist_paper.json
    python benchmarks/training.py --preset small --data digits --out docs/results/digits_small.json

Test error, the share of generated pictures that a pixel SVM reads as asked, time an epoch, share of time waiting
for data. The first epoch, which compiles, is left out of the times. Settings go on as --model.X and --train.X.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gencaps.engine.config import parse_overrides
from gencaps.engine.devices import choose_device
from gencaps.engine.evaluate import evaluate
from gencaps.engine.recipe import Recipe, make_recipe
from gencaps.engine.run import environment
from gencaps.engine.train import start
from gencaps.primitives.noise import Noise
from gencaps.report.collect import judged_share


def measure(recipe: Recipe, folder: Path, device: str) -> dict[str, Any]:
    """Trains one recipe and reads its figures off the run."""
    trained = start(recipe, folder, device=device, quiet=True)
    assert trained is not None
    rows = [row for row in trained.run.rows() if row["split"] == "train"][1:]
    seen = evaluate(trained.model, trained.splits.test)
    with torch.no_grad():
        share, trust, made = judged_share(trained.model, trained.splits, Noise(0, trained.model.device), each=100)
    return {
        "seed": recipe.seed,
        "error_percent": seen.error_percent,
        "test_mse": seen.mse,
        "generated_read_as_asked": share,
        "generated": made,
        "judge_accuracy": trust,
        "epoch_s_median": statistics.median(row["seconds"] for row in rows),
        "epoch_s_worst": max(row["seconds"] for row in rows),
        "wait_share": sum(r["wait_share"] * r["seconds"] for r in rows) / sum(r["seconds"] for r in rows),
        "wait_share_worst": max(row["wait_share"] for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--data", default="digits")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, default=3)
    options, settings = parser.parse_known_args()
    overrides = parse_overrides([word for word in settings if word != "--"], ("model", "train"))
    runs, recipe = [], make_recipe("variational", preset=options.preset, data=options.data, overrides=overrides)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            runs.append(measure(replace(recipe, seed=seed), Path(folder) / str(seed), options.device))
            print(json.dumps(runs[-1]), flush=True)
    errors, shares = ([run[name] for run in runs] for name in ("error_percent", "generated_read_as_asked"))
    found = {
        "what": f"variational capsules, preset {options.preset}, {options.data}, {recipe.train.epochs} epochs",
        "error_percent": {"mean": statistics.mean(errors), "sd": statistics.stdev(errors) if errors[1:] else None},
        "generated_read_as_asked": statistics.mean(shares),
        "runs": runs,
        "recipe": recipe.to_yaml(),
        "command": shlex.join(["python", "benchmarks/training.py", *sys.argv[1:]]),
        **environment(choose_device(options.device)),
    }
    options.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
