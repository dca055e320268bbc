"""The commands for scenes of objects: move one, put one somewhere, show the templates."""

from __future__ import annotations

import argparse
from typing import Any

from gencaps.cli.answer import _command, _count, _files, _load, _numbers, _out, _pictures, _read, _show
from gencaps.errors import GencapsError


def add_parsers(commands: Any) -> None:
    """Adds the commands."""
    move = _command(commands, "move", "move an object of pictures; its parts follow", run_move)
    _pictures(move)
    move.add_argument("--object", type=_count, metavar="I", help="which object, from 0 (default: the strongest)")
    _motion(move)
    move.add_argument("--steps", type=_count, default=1, metavar="N", help="pictures on the way (1)")
    _out(move)

    place = _command(commands, "place", "paint an object where it is put", run_place)
    place.add_argument("--object", type=_numbers, metavar="I,J", help="which objects, from 0 (default: each alone)")
    _motion(place)
    _out(place)

    templates = _command(commands, "templates", "paint the templates that were learned", run_templates)
    _out(templates)


def _motion(parser: argparse.ArgumentParser) -> None:
    shares = {"right": "to the right", "down": "downwards"}
    for name, way in shares.items():
        parser.add_argument(f"--{name}", type=_number, metavar="X", help=f"{way}, 1 is half a picture (0)")
    parser.add_argument("--turn", type=_number, metavar="DEGREES", help="clockwise (0)")
    parser.add_argument("--scale", type=_number, metavar="X", help="above 1 enlarges (1)")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None


def _wanted(options: argparse.Namespace) -> dict[str, float]:
    given = {name: getattr(options, name) for name in ("right", "down", "turn", "scale")}
    return {name: value for name, value in given.items() if value is not None}


def run_move(options: argparse.Namespace) -> None:
    """Paints each picture as given, painted again, and with an object moved."""
    import torch

    from gencaps.api import Painted

    model, files = _load(options), _files(options.pictures)
    motion = _wanted(options)
    if not motion:
        raise GencapsError("nothing was asked for: give --right, --down, --turn or --scale")
    x = _read(model, files, options.invert)
    made = model.move(x, options.object, steps=options.steps, **motion)
    rows = torch.cat([x.cpu()[:, None], model.reconstruct(x).pictures[:, None], _rows(made, len(x))], 1)
    _show(Painted(rows.flatten(0, 1), made.labels, 2 + made.columns), options, **motion)


def _rows(painted: Any, n: int) -> Any:
    return painted.pictures.unflatten(0, (n, -1))


def run_place(options: argparse.Namespace) -> None:
    """Paints objects where they are put, in their plainest form."""
    _show(_load(options).place(options.object, **_wanted(options)), options)


def run_templates(options: argparse.Namespace) -> None:
    """Paints all templates on black."""
    _show(_load(options).templates(), options)
