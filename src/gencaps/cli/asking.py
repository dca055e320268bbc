"""What the commands that ask a model share: their arguments, the pictures they take and what they show."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gencaps.errors import GencapsError

if TYPE_CHECKING:
    from torch import Tensor

    from gencaps.api import Capsules
    from gencaps.painted import Painted

MOST = 10_000
"""Pictures, of each class, or steps that can be asked for at once: more would fill the memory, and nobody sees them."""

SHOWN = 12
"""Labels of pictures that are printed."""


def count(text: str) -> int:
    """Reads a whole number of pictures or steps."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
    if number > MOST:
        raise argparse.ArgumentTypeError(f"{number} is more than {MOST:,}: give fewer")
    return number


def numbers(text: str) -> list[int]:
    """Reads whole numbers with commas between them."""
    return [count(word) for word in text.split(",")]


def number(text: str) -> float:
    """Reads a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None


def share(text: str) -> float:
    """Reads a number from 0 to 1."""
    value = number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 1")
    return value


INVERT = "swap dark and light first (for dark ink on white paper)"


def command(commands: Any, name: str, about: str, run: Any) -> argparse.ArgumentParser:
    """Adds a command that asks one model."""
    parser = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
    parser.add_argument("model", metavar="MODEL", help="a run folder, a model folder or a hub id")
    parser.add_argument("--device", default="auto", metavar="D", help="auto, cpu or cuda (default auto)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def add_pictures(parser: argparse.ArgumentParser) -> None:
    """Lets a command take pictures."""
    parser.add_argument("pictures", nargs="+", metavar="PICTURE", help="picture files, or folders of them")
    parser.add_argument("--invert", action="store_true", help=INVERT)


def add_out(parser: argparse.ArgumentParser) -> None:
    """Lets a command write a picture."""
    parser.add_argument("--out", type=Path, metavar="PNG", help="where the picture goes (.gif for a moving one)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="same seed, same picture")


def load_model(options: argparse.Namespace) -> Capsules:
    """Loads the model that is asked."""
    from gencaps.api import load

    return load(options.model, options.device)


def files_in(given: list[str]) -> list[Path]:
    """Lists picture files, and those in folders."""
    from gencaps.data.pictures import SUFFIXES

    found: list[Path] = []
    for word in given:
        path = Path(word)
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))
            if not inside:
                below = sorted(str(p) for p in path.iterdir() if p.is_dir())
                remedy = f"give a folder in it, such as {below[0]}" if below else "give another folder or a picture"
                raise GencapsError(f"{path} itself holds no pictures ({', '.join(SUFFIXES)}): {remedy}")
            found += inside
        else:
            found.append(path)
    return found


def read_pictures(model: Capsules, files: list[Path], invert: bool) -> Any:
    """Reads pictures as the model takes them."""
    x = model.pictures(files)
    _say_scaled(model, files)
    return 1.0 - x if invert else x


def _say_scaled(model: Capsules, files: list[Path]) -> None:
    """Says which pictures were scaled, cropped or changed in colour to fit the model."""
    from gencaps.data.pictures import read_header

    size, grey = model.info.size, model.info.channels == 1
    heads = [(file, read_header(file)) for file in files]
    other = [file for file, head in heads if (head.width, head.height, head.grey) != (size, size, grey)]
    if other:
        more = f" and {len(other) - 1} more were" if len(other) > 1 else " was"
        kind = "grey" if grey else "colour"
        print(f"note: {other[0]}{more} brought to the model's {size} x {size} px, {kind}", file=sys.stderr)


def beside(x: Tensor, *paintings: Painted) -> Painted:
    """Sets what was painted of pictures beside them, a row a picture."""
    import torch

    from gencaps.painted import Painted

    rows = [x.cpu()[:, None], *(painted.pictures.unflatten(0, (len(x), -1)) for painted in paintings)]
    columns = 1 + sum(painted.columns for painted in paintings)
    return Painted(torch.cat(rows, 1).flatten(0, 1), paintings[-1].labels, columns)


def show(painted: Painted, options: argparse.Namespace, **facts: Any) -> None:
    """Writes the picture where asked; otherwise draws it in the terminal."""
    if options.out is not None:
        from gencaps.figures import save_gif

        if options.out.suffix.lower() == ".gif":
            save_gif(painted.pictures, options.out)
        else:
            painted.save(options.out)
    said = {"labels": painted.labels, "columns": painted.columns, "pictures": len(painted.pictures), **facts}
    if options.json:
        print(json.dumps({**said, "out": None if options.out is None else str(options.out)}))
    elif options.out is not None:
        named = list(filter(None, painted.labels))
        more = [f"and {len(named) - SHOWN} more"] if len(named) > SHOWN else []
        print(f"wrote {options.out}{': ' if named else ''}{', '.join([*named[:SHOWN], *more])}")
    else:
        draw(painted)


def draw(painted: Painted) -> None:
    """Draws pictures with characters, in colour where the terminal takes it."""
    import shutil

    from gencaps.figures import terminal

    width = shutil.get_terminal_size((100, 24)).columns
    print(terminal(painted.pictures, painted.columns, width=width, color=sys.stdout.isatty()))
