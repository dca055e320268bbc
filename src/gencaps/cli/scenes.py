"""The commands for scenes of objects: move one, put one somewhere, show the templates."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gencaps.cli.asking import (
    add_out,
    add_pictures,
    beside,
    command,
    count,
    files_in,
    load_model,
    number,
    numbers,
    read_pictures,
    show,
)
from gencaps.errors import GencapsError


def add_parsers(commands: Any) -> None:
    """Adds the commands."""
    move = command(commands, "move", "move an object of pictures; its parts follow", run_move)
    add_pictures(move)
    move.add_argument("--object", type=count, metavar="I", help="which object, from 0 (default: the strongest)")
    _motion(move)
    move.add_argument("--steps", type=count, default=1, metavar="N", help="pictures on the way (1)")
    add_out(move)

    place = command(commands, "place", "paint an object where it is put", run_place)
    place.add_argument("--object", type=numbers, metavar="I,J", help="which objects, from 0 (default: each alone)")
    _motion(place)
    add_out(place)

    templates = command(commands, "templates", "paint the templates that were learned", run_templates)
    add_out(templates)


def _motion(parser: argparse.ArgumentParser) -> None:
    shares = {"right": "to the right", "down": "downwards"}
    for name, way in shares.items():
        parser.add_argument(f"--{name}", type=number, metavar="X", help=f"{way}, 1 is half a picture (0)")
    parser.add_argument("--turn", type=number, metavar="DEGREES", help="clockwise (0)")
    parser.add_argument("--scale", type=number, metavar="X", help="above 1 enlarges (1)")


def _wanted(options: argparse.Namespace) -> dict[str, float]:
    given = {name: getattr(options, name) for name in ("right", "down", "turn", "scale")}
    return {name: value for name, value in given.items() if value is not None}


def run_move(options: argparse.Namespace) -> None:
    """Paints each picture as given, painted again, and with an object moved."""
    model, files = load_model(options), files_in(options.pictures)
    motion = _wanted(options)
    if not motion:
        raise GencapsError("nothing was asked for: give --right, --down, --turn or --scale")
    x = read_pictures(model, files, options.invert)
    made, rebuilt = model.move(x, options.object, steps=options.steps, **motion), model.reconstruct(x)
    ends = made.pictures[made.columns - 1 :: made.columns]
    for file, label, moved in zip(files, made.labels, (ends != rebuilt.pictures).flatten(1).any(1), strict=True):
        if not moved:
            said = f"note: {label} has no part in {file}: nothing moved; leave --object out for the strongest"
            print(said, file=sys.stderr)
    show(beside(x, rebuilt, made), options, **motion)


def run_place(options: argparse.Namespace) -> None:
    """Paints objects where they are put, in their plainest form."""
    show(load_model(options).place(options.object, **_wanted(options)), options)


def run_templates(options: argparse.Namespace) -> None:
    """Paints all templates on black."""
    show(load_model(options).templates(), options)
