"""Trains the paper's MNIST network over several seeds and writes what it measured.

    python benchmarks/training.py --out docs/results/mnist_paper.json [--seeds 3] [-- --model.X ...]

Time an epoch, share of time waiting for data, test error: the figures of one recipe on one machine. The first
epoch, which compiles, is left out of the times. Needs MNIST ($GENCAPS_DATA or ``gencaps data get mnist``).
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from gencaps.engine.config import parse_overrides
from gencaps.engine.evaluate import evaluate
from gencaps.engine.recipe import Recipe, make_recipe
from gencaps.engine.run import environment
from gencaps.engine.train import start


def measure(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Trains one recipe and reads its figures off the run."""
    trained = start(recipe, folder)
    assert trained is not None
    rows = [row for row in trained.run.rows() if row["split"] == "train"][1:]
    seen = evaluate(trained.model, trained.splits.test)
    return {
        "seed": recipe.seed,
        "error_percent": seen.error_percent,
        "test_mse": seen.mse,
        "epoch_s_median": statistics.median(row["seconds"] for row in rows),
        "epoch_s_worst": max(row["seconds"] for row in rows),
        "wait_share": sum(r["wait_share"] * r["seconds"] for r in rows) / sum(r["seconds"] for r in rows),
        "wait_share_worst": max(row["wait_share"] for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--seeds", type=int, default=3)
    options, settings = parser.parse_known_args()
    overrides = parse_overrides([word for word in settings if word != "--"], ("model", "train"))
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            recipe = make_recipe("variational", preset=options.preset, data="mnist", seed=seed, overrides=overrides)
            runs.append(measure(recipe, Path(folder) / str(seed)))
            print(json.dumps(runs[-1]), flush=True)
    errors = [run["error_percent"] for run in runs]
    found = {
        "what": f"variational capsules, preset {options.preset}, MNIST, {recipe.train.epochs} epochs",
        "error_percent": {"mean": statistics.mean(errors), "sd": statistics.stdev(errors) if errors[1:] else None},
        "runs": runs,
        "recipe": recipe.to_yaml(),
        "command": shlex.join(["python", "benchmarks/training.py", *sys.argv[1:]]),
        **environment("cuda" if recipe.train.precision != "32" else "cpu"),
    }
    options.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
