"""``gencaps info``: what is installed here, or what a model is and can do."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "info",
        help="say what is here, or what a model can do",
        description="Without MODEL: versions, devices, papers and presets. With MODEL: what it is and can do.",
    )
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a run folder, a model folder or a hub id")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Prints facts, one a line."""
    facts = about_model(options.model) if options.model else about_here()
    if options.json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for key, text in value.items():
                print(f"  {key:<12} {text}")
        else:
            print(f"{name:<14} {', '.join(map(str, value)) if isinstance(value, list) else value}")


def about_here() -> dict[str, Any]:
    """Gathers versions, devices and presets."""
    from gencaps.engine.devices import choose_device
    from gencaps.engine.pretrained import shipped
    from gencaps.engine.recipe import presets
    from gencaps.engine.run import environment
    from gencaps.primitives.routing_backend import describe as routing_here
    from gencaps.systems import SYSTEMS

    facts: dict[str, Any] = {k: v for k, v in environment(choose_device("auto")).items() if k != "date"}
    facts["routing"] = routing_here()
    facts["models that come along"] = list(shipped())
    for paper in SYSTEMS:
        facts[f"presets of {paper}"] = presets(paper)
    return facts


def about_model(name: str) -> dict[str, Any]:
    """Gathers what a model is, what it can do and how its run went."""
    from gencaps.abilities import abilities
    from gencaps.engine.pretrained import from_pretrained, run_of
    from gencaps.model import count_parameters

    model, run = from_pretrained(name), run_of(name)
    facts: dict[str, Any] = {
        "model": name,
        "paper": model.paper,
        "data": model.pictures.data,
        "pictures": f"{model.pictures.size} x {model.pictures.size}, {model.pictures.channels} channel(s)",
        model.pictures.labels: list(model.pictures.names),
        "parameters": count_parameters(model.parameters()),
        "can": list(abilities(model)),
    }
    if run is not None:
        facts |= {"trained by": run.facts().get("command", "unknown"), "seed": run.recipe.seed}
    return facts
