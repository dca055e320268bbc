"""Says where the time of a training step goes: the host, the device, and the kernels that take most.

    python benchmarks/profile_steps.py variational/best/mnist capsnet/paper/mnist --out docs/results/profile_h200.json

Each word is SYSTEM/PRESET/DATA. Steps are timed without a profiler first, then looked at with one. Settings go on as
--model.X and --train.X, and hold for all of them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import yaml
from torch.profiler import ProfilerActivity, profile

from gencaps import data
from gencaps.engine.config import parse_overrides
from gencaps.engine.devices import choose_device, make_fabric
from gencaps.engine.fit import Training
from gencaps.engine.interrupt import Stop
from gencaps.engine.recipe import make_recipe
from gencaps.engine.run import Run, environment
from gencaps.engine.team import Team
from gencaps.engine.train import load_splits

WARM_UP, TIMED, LOOKED_AT, SHOWN = 12, 100, 10, 8


def measure(word: str, overrides: dict[str, dict[str, object]], folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Times the steps of every stage of a recipe."""
    system, preset, name = word.split("/", 2)
    recipe = make_recipe(system, preset=preset, data=name, overrides=overrides)
    fabric = make_fabric(device, 1, recipe.train.precision)
    splits = load_splits(recipe)
    run = Run.create(folder / word.replace("/", "-"), recipe)
    run.record(recipe=yaml.safe_load(recipe.to_yaml()), split=data.split_record(splits))
    training = Training(run, splits, fabric, resumed=None, log=None, stop=Stop())
    for place in range(len(training.model.stages())):
        yield measure_stage(training, place, word)


def measure_stage(training: Training, place: int, word: str) -> dict[str, Any]:
    """Times the steps of a stage, then looks at some of them with the profiler."""
    stage, device = training.model.stages()[place], training.fabric.device
    training.position.stage, training.recorded = place, None
    team = Team.of(training.model, stage, training.config, 10_000, training.fabric)
    training.model.train()
    batches = iter(())
    at = training.position

    def steps(count: int) -> None:
        nonlocal batches
        for _ in range(count):
            batch = next(batches, None)
            if batch is None:
                batches = training.batches.epoch(at.epoch)
                at.epoch += 1
                batch = next(batches)
            training.take_step(stage, team, batch.x, batch.y, 0.5)
            if training.average is not None:
                training.average.update_parameters(training.model)
            at.step += 1
        if device.type == "cuda":
            torch.cuda.synchronize()

    began = time.perf_counter()
    steps(WARM_UP)
    first_s = time.perf_counter() - began
    began = time.perf_counter()
    steps(TIMED)
    step_ms = (time.perf_counter() - began) / TIMED * 1000
    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
    with profile(activities=kinds) as looked:
        steps(LOOKED_AT)
    # the optimiser's own row stands for kernels that have theirs
    rows = [
        row
        for row in looked.key_averages()
        if row.device_type.name == device.type.upper() and not row.key.startswith("Optimizer.")
    ]
    spent: dict[str, float] = defaultdict(float)
    for row in rows:  # kernels that differ only far down their names are one
        spent[row.key[:80]] += row.self_device_time_total if device.type == "cuda" else row.self_cpu_time_total
    most = sorted(spent, key=lambda key: -spent[key])[:SHOWN]
    busy_ms = sum(spent.values()) / LOOKED_AT / 1000
    return {
        "what": f"{word} {stage.name}",
        "batch": training.batches.batch,
        "first_steps_s": round(first_s, 1),
        "step_ms": round(step_ms, 3),
        "busy_ms": round(busy_ms, 3),
        "busy_share": round(busy_ms / step_ms, 3),
        "launches": round(sum(row.count for row in rows) / LOOKED_AT, 1),
        "most": {key: round(spent[key] / LOOKED_AT / 1000, 3) for key in most},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", help="SYSTEM/PRESET/DATA")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    options, rest = parser.parse_known_args()
    rows: list[dict[str, Any]] = []
    about = {**environment(choose_device(options.device)), "settings": " ".join(rest)}
    with tempfile.TemporaryDirectory() as folder:
        for word in options.what:
            for row in measure(word, parse_overrides(rest, ("model", "train")), Path(folder), options.device):
                rows.append(row)
                print(json.dumps(row), flush=True)
                if options.out:
                    options.out.write_text(json.dumps({**about, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
