"""``gencaps data list | get | show``: what sets there are, fetch one, look at one."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Adds the ``data`` command and its three verbs."""
    parser = subparsers.add_parser(
        "data",
        help="list, fetch and look at data sets",
        description="Lists the data sets, fetches one, or draws one on a contact sheet.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="list | get | show", required=True)

    listing = verbs.add_parser("list", help="every data set, and whether it is here")
    listing.add_argument("--json", action="store_true", help="print JSON instead of a table")
    listing.set_defaults(run=run_list)

    get = verbs.add_parser("get", help="download a data set into the user's cache")
    get.add_argument("name", metavar="NAME", help="mnist, fashion_mnist, cifar10, ...")
    get.set_defaults(run=run_get)

    show = verbs.add_parser("show", help="write a contact sheet and count the pictures of each class")
    show.add_argument("spec", metavar="SPEC", help="a data set's name, or folder:PATH")
    show.add_argument("--out", default="sheet.png", metavar="PNG", help="where the sheet goes (sheet.png)")
    show.add_argument("--size", type=int, metavar="N", help="resize the pictures to N pixels")
    show.add_argument("--n", type=int, default=64, metavar="N", help="pictures on the sheet (64)")
    show.set_defaults(run=run_show)


def run_list(args: argparse.Namespace) -> None:
    """Prints every set as a table or as JSON."""
    from gencaps.data import rows

    found = rows()
    if args.json:
        import json

        print(json.dumps([row._asdict() for row in found], indent=2))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("name", "pictures", "size", "labels", "licence", "where"):
        table.add_column(head, justify="right" if head in ("pictures", "size") else "left", overflow="fold")
    for row in found:
        table.add_row(
            row.name,
            f"{row.pictures:,}",
            f"{row.size}x{row.size}x{row.channels}",
            f"{row.classes} {row.labels}",
            row.license,
            Text(row.where, "green" if row.here else "yellow"),
        )
    table.add_row("folder:PATH", "", "32 to 128", "yours", "", "a subfolder a class, or a CSV of attributes")
    # a pipe has no width of its own
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def run_get(args: argparse.Namespace) -> None:
    """Downloads a set unless it is here, and says where it lies."""
    from gencaps.data import get

    folder = get(args.name, progress=True)
    print(f"{args.name} needs no files" if folder is None else f"{args.name} is in {folder}")


def run_show(args: argparse.Namespace) -> None:
    """Writes a contact sheet of the training part and prints the counts of every part."""
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from gencaps.data import counts, load
    from gencaps.data.sheet import contact_sheet
    from gencaps.errors import GencapsError
    from gencaps.figures import check_picture, save_picture

    out = Path(args.out)
    if args.n < 1:
        raise GencapsError(f"--n {args.n}: a sheet needs at least 1 picture")
    check_picture(out)  # before the data is loaded, which may take minutes
    splits = load(args.spec, size=args.size, valid=0.0, progress=True)
    save_picture(contact_sheet(splits.train, args.n), out)

    parts = {"train": splits.train, "test": splits.test}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("class" if splits.train.labels == "classes" else "attribute")
    for part in parts:
        table.add_column(part, justify="right")
    numbers = [counts(part) for part in parts.values()]
    for name in splits.train.names:
        table.add_row(name, *(f"{number[name]:,}" for number in numbers))
    table.add_row("pictures", *(f"{len(part):,}" for part in parts.values()), style="bold")
    console = Console()
    console.print(table)
    for note in splits.train.notes:
        console.print(f"note: {note}", highlight=False, markup=False)
    shape = " x ".join(str(side) for side in reversed(splits.train.x.shape[1:]))
    console.print(f"{splits.train.name}: {shape}; sheet in {out}", highlight=False, markup=False)
