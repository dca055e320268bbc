"""Chooses the settings of label spreading on training pictures alone, and says what it can reach at best.

    python benchmarks/spreading_choice.py mnist cifar10 --out docs/results/spreading_choice.json

The paper (Jaiswal et al., 2018) does not give them. Real training pictures stand in for the generated ones, so that no
generator has a say, and held-out training pictures for the test part. Beside each error stands that of the labelled
pictures alone.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from gencaps.data.images import ImageSet
from gencaps.data.splits import permutation
from gencaps.engine.devices import choose_device
from gencaps.engine.recipe import make_recipe
from gencaps.engine.run import environment
from gencaps.engine.train import load_splits
from gencaps.metrics.classification import accuracy
from gencaps.metrics.neighbors import nearest
from gencaps.metrics.spreading import UNLABELLED, predict_from, spread_over
from gencaps.reproduce.measures.probes import flat
from gencaps.reproduce.measures.spreading import LABELLED

NEIGHBORS, ALPHAS = (3, 5, 7, 10, 15, 25), (0.01, 0.2, 0.8)


def errors(x: torch.Tensor, y: torch.Tensor, new: torch.Tensor, truth: torch.Tensor, classes: int) -> list[list[float]]:
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


def measure(train: ImageSet, unlabelled: int, held: int, device: str) -> list[dict[str, Any]]:
    """Tries all settings for each number of labelled pictures."""
    order = permutation(len(train), 0, 0)
    x, y = flat(train.x[order], torch.device(device)), train.y[order].to(device)
    new, truth, x, y = x[:held], y[:held], x[held:], y[held:]
    others = x[LABELLED[-1] : LABELLED[-1] + unlabelled]
    rows = []
    for n in LABELLED:
        both = errors(torch.cat([x[:n], others]), y[:n], new, truth, len(train.names))
        alone = errors(x[:n], y[:n], new, truth, len(train.names))
        for k, errors_, alone_ in zip(NEIGHBORS, both, alone, strict=True):
            for alpha, error, without in zip(ALPHAS, errors_, alone_, strict=True):
                rows.append({"n": n, "neighbors": k, "alpha": alpha, "error": error, "labelled_only": without})
            said = "  ".join(f"{error:.4f} ({without:.4f})" for error, without in zip(errors_, alone_, strict=True))
            print(f"n {n:6d}, {k:2d} neighbours, error (labelled alone) at alpha {ALPHAS}: {said}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--unlabelled", type=int, default=25_000)
    parser.add_argument("--held", type=int, default=4_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = choose_device("auto")
    found: dict[str, Any] = {}
    for name in options.data:
        print(name)
        train = load_splits(make_recipe("gan", preset="best", data=name)).train
        found[name] = measure(train, options.unlabelled, options.held, device)
    if options.out:
        sizes = {"unlabelled": options.unlabelled, "held": options.held}
        options.out.write_text(json.dumps({**environment(device), **sizes, "rows": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
