"""Tells how a scene reads held-out training pictures, upright and turned, for several priors of the turn: for choosing.

    python benchmarks/scene_choice.py RUN --priors 0,30,60,100,200 --refine 200

The run's own held-out part is read (train.valid above 0), never the test part. The prior of the turn belongs to
inference alone, so one run answers for all of them.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gencaps.data.images import ImageSet
from gencaps.data.transforms import rotated
from gencaps.engine.evaluate import pixels
from gencaps.engine.run import Run
from gencaps.errors import GencapsError
from gencaps.metrics.generation import purity
from gencaps.metrics.probe import LinearProbe
from gencaps.metrics.specialisation import in_use
from gencaps.reproduce.training import load_trained

PROBED, HELD, BATCH = 10_000, 3_000, 500
ANGLES = (0.0, 45.0, 90.0, 135.0, 180.0)


def gathered(model: Any, images: ImageSet, refine: int = 0) -> tuple[Tensor, Tensor]:
    """Gives the logits of q(t0), and these with A0."""
    t0, both = [], []
    for x in images.x.split(BATCH):
        shown = pixels(x.to(model.device))
        objects = (model.refine(shown, refine) if refine else model.encode(shown)).objects
        t0.append(objects.presence_logit)
        both.append(torch.cat([objects.presence_logit, objects.pose.flatten(1)], 1))
    return torch.cat(t0), torch.cat(both)


def fitted(features: Tensor, images: ImageSet) -> LinearProbe:
    """Fits a probe on its own device."""
    return LinearProbe.fit(features, images.y.to(features.device), len(images.names))


@torch.no_grad()
def main() -> None:
    """Prints one line of JSON a prior."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--priors", default="0,30,60,100,200")
    parser.add_argument("--refine", type=int, default=0)
    options = parser.parse_args()
    trained = load_trained(Run.open(options.run))
    model, held = trained.model, trained.splits.valid
    if not len(held):
        raise SystemExit(f"{options.run} holds nothing out: train it with --train.valid 0.1")
    train = trained.splits.train[torch.arange(min(PROBED, len(trained.splits.train)))]
    held = held[torch.arange(min(HELD, len(held)))]
    for prior in map(float, options.priors.split(",")):
        model.config = replace(model.config, turn_prior=prior)
        probes = [fitted(features, train) for features in gathered(model, train)]
        said: dict[str, Any] = {"turn_prior": prior}
        for angle in ANGLES:
            seen = gathered(model, rotated(held, angle, 0) if angle else held)
            said[f"{angle:g}"] = [round(p.accuracy(f, held.y), 4) for p, f in zip(probes, seen, strict=True)]
            if not angle:
                best = seen[0].argmax(1).cpu()
                said |= {"in_use": in_use(best, seen[0].shape[1]), "purity": round(purity(best, held.y), 4)}
        if options.refine:
            refined = gathered(model, held, options.refine)[0]
            said["refined_t0"] = round(probes[0].accuracy(refined, held.y), 4)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    try:
        main()
    except GencapsError as error:
        raise SystemExit(f"scene_choice: {error}") from None
