"""Chooses the settings of label spreading on training pictures alone, and says what it can reach at best.

    python benchmarks/spreading_choice.py mnist cifar10 --out docs/results/spreading_choice.json
    python benchmarks/spreading_choice.py runs/gan runs/capsule_gan --unlabelled 50000

The paper (Jaiswal et al., 2018) does not give them. Held-out training pictures stand in for the test part. For a data
set, real training pictures stand in for the generated ones; for a run of a GAN, trained with --train.valid 0.1, its own
pictures are spread over, and what it never saw is held out. Beside each error stands that of the labelled ones alone.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gencaps.data.splits import permutation
from gencaps.engine.devices import choose_device
from gencaps.engine.recipe import make_recipe
from gencaps.engine.run import Run, environment
from gencaps.engine.train import load_splits
from gencaps.metrics.classification import accuracy
from gencaps.metrics.neighbors import nearest
from gencaps.metrics.spreading import UNLABELLED, predict_from, spread_over
from gencaps.primitives.noise import Noise
from gencaps.reproduce.measures.probes import flat
from gencaps.reproduce.measures.spreading import LABELLED
from gencaps.reproduce.subject import sample
from gencaps.reproduce.training import load_trained

NEIGHBORS, ALPHAS = (1, 3, 5, 7, 10, 15, 25, 50, 100), (0.01, 0.2, 0.8)


class Problem(NamedTuple):
    """Labelled pictures to take from, pictures without labels, and pictures to tell."""

    x: Tensor
    y: Tensor
    others: Tensor
    new: Tensor
    truth: Tensor
    classes: int


def of_data(name: str, unlabelled: int, held: int, device: str) -> Problem:
    """Takes all three from a set's training part."""
    train = load_splits(make_recipe("gan", preset="best", data=name)).train
    order, most = permutation(len(train), 0, 0), max(LABELLED)
    x, y = flat(train.x[order], torch.device(device)), train.y[order].to(device)
    new, truth, x, y = x[:held], y[:held], x[held:], y[held:]
    return Problem(x[:most], y[:most], x[most : most + unlabelled], new, truth, len(train.names))


def of_run(folder: Path, unlabelled: int, device: str) -> Problem:
    """Lets a GAN paint, and holds out its validation part."""
    trained = load_trained(Run.open(folder), device)
    train, valid, there = trained.splits.train, trained.splits.valid, trained.model.device
    order = permutation(len(train), 0, 0)[: max(LABELLED)]
    others = sample(trained.model, unlabelled, Noise(0, there)).flatten(1)
    x, y = flat(train.x[order], there), train.y[order].to(there)
    return Problem(x, y, others, flat(valid.x, there), valid.y.to(there), len(train.names))


def errors(x: Tensor, y: Tensor, new: Tensor, truth: Tensor, classes: int) -> list[list[float]]:
    """Gives the share of new points told wrong, for every number of neighbours and every alpha."""
    known = torch.full((len(x),), UNLABELLED, device=x.device)
    known[: len(y)] = y
    among, asked = (nearest(points, x, min(NEIGHBORS[-1], len(x))).ids for points in (x, new))
    table = []
    for k in NEIGHBORS:
        spreads = [spread_over(among[:, :k], known, classes, alpha=alpha) for alpha in ALPHAS]
        told = [predict_from(spread, asked[:, :k], known).labels for spread in spreads]
        table.append([1 - accuracy(labels, truth) for labels in told])
    return table


def measure(problem: Problem) -> list[dict[str, Any]]:
    """Tries all settings for each number of labelled pictures."""
    rows = []
    for n in LABELLED:
        x, y = problem.x[:n], problem.y[:n]
        both = errors(torch.cat([x, problem.others]), y, *problem[3:])
        alone = errors(x, y, *problem[3:])
        for k, errors_, alone_ in zip(NEIGHBORS, both, alone, strict=True):
            for alpha, error, without in zip(ALPHAS, errors_, alone_, strict=True):
                rows.append({"n": n, "neighbors": k, "alpha": alpha, "error": error, "labelled_only": without})
            said = "  ".join(f"{error:.4f} ({without:.4f})" for error, without in zip(errors_, alone_, strict=True))
            print(f"n {n:6d}, {k:3d} neighbours, error (labelled alone) at alpha {ALPHAS}: {said}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", help="data sets, or folders of runs")
    parser.add_argument("--unlabelled", type=int, default=25_000)
    parser.add_argument("--held", type=int, default=4_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = choose_device("auto")
    found: dict[str, Any] = {}
    for name in options.what:
        print(name)
        if (Path(name) / "config.yaml").exists():
            problem = of_run(Path(name), options.unlabelled, device)
        else:
            problem = of_data(name, options.unlabelled, options.held, device)
        found[name] = measure(problem)
    if options.out:
        sizes = {"unlabelled": options.unlabelled, "held": options.held}
        options.out.write_text(json.dumps({**environment(device), **sizes, "rows": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
