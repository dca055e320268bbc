"""Times training epochs of a CapsNet with our routing and with the usual one: ratios from one run.

    python benchmarks/capsnet_epoch.py [--preset paper --data mnist] [--out docs/results/capsnet_epoch.json]

Everything but routing is the same: the preset, its precision, the loader, the optimiser, and that steps are recorded on
a GPU, so that no way waits for Python. The usual routing (votes by a broadcast matmul: benchmarks/routing.py) is taken
as it is written, and once more compiled with the rest of the network. The first epoch of each, which compiles, is left
out. Settings go on as --model.X and --train.X.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from routing import usual
from torch import Tensor

from gencaps.engine.config import parse_overrides
from gencaps.engine.devices import choose_device
from gencaps.engine.recipe import make_recipe
from gencaps.engine.run import environment
from gencaps.engine.train import start
from gencaps.primitives import layers
from gencaps.primitives.routing import route

OURS, USUAL, COMPILED = "gencaps", "usual (broadcast votes)", "usual, compiled"


def routed_usually(u: Tensor, weight: Tensor, iterations: int = 3, **choices: Any) -> Tensor:
    """Routes by the usual way, in the arguments of ours; mixed precision is left out of routing, as in ours."""
    assert (choices["agreement"], choices["over"]) == ("dot", "outputs"), "the usual way has no other choices"
    with torch.autocast(u.device.type, enabled=False):
        return usual(u.float(), weight.float(), iterations)


WAYS: dict[str, Callable[..., Any]] = {
    OURS: route,
    USUAL: torch.compiler.disable(routed_usually),
    COMPILED: routed_usually,
}


def epoch_seconds(preset: str, data: str, device: str, overrides: dict[str, dict[str, object]]) -> list[float]:
    """Trains for some epochs and gives the seconds of all but the first."""
    quiet = {"epochs": 3, "samples_every": 0, "validate_every": 1000, **overrides.get("train", {})}
    recipe = make_recipe("capsnet", preset=preset, data=data, overrides={**overrides, "train": quiet})
    with tempfile.TemporaryDirectory() as folder:
        trained = start(recipe, Path(folder) / "run", device=device, quiet=True)
        assert trained is not None
        return [row["seconds"] for row in trained.run.rows() if row["split"] == "train"][1:]


def main() -> None:
    """Trains with each way in turn and writes their epochs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    options, rest = parser.parse_known_args()
    overrides = parse_overrides(rest, ("model", "train"))
    seconds: dict[str, list[float]] = {}
    for name, way in WAYS.items():
        layers.route = way
        seconds[name] = epoch_seconds(options.preset, options.data, options.device, overrides)
        print(name, seconds[name], flush=True)
    middle = {name: statistics.median(found) for name, found in seconds.items()}
    result = {
        **environment(choose_device(options.device)),
        "what": f"capsnet/{options.preset}/{options.data}",
        "epoch_seconds": seconds,
        "times_faster_than_usual": middle[USUAL] / middle[OURS],
        "times_faster_than_usual_compiled": middle[COMPILED] / middle[OURS],
    }
    print(json.dumps(result))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
