"""``gencaps probe``."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "probe",
        help="fit a linear classifier on a model's capsules",
        description="Fits a linear probe on the capsules of N labelled training pictures; tests it on the test part.",
    )
    parser.add_argument("model", metavar="MODEL", help="a run folder, a model folder or a hub id")
    parser.add_argument("--labels", type=int, default=1000, metavar="N", help="labels that are told (1000)")
    parser.add_argument("--data", metavar="SET", help="another set than the one it was trained on")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="draws whose labels are told")
    parser.add_argument("--device", default="auto", metavar="D", help="auto, cpu or cuda (default auto)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Prints the probe's test accuracy."""
    from gencaps.cli.evaluate import load_with_data
    from gencaps.engine.probe import probe_accuracy

    model, spec, splits = load_with_data(options)
    accuracy, used = probe_accuracy(model, splits, options.labels, options.seed)
    if options.json:
        print(json.dumps({"model": str(options.model), "data": spec, "labels": used, "accuracy": accuracy}))
        return
    print(f"{options.model} on {spec}: {used} labels, {len(splits.test)} test pictures")
    print(f"linear probe: accuracy {100 * accuracy:.2f} %")
