"""``gencaps save``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gencaps.errors import GencapsError


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "save",
        help="write a model as a folder of its own",
        description="Writes config.json, model.safetensors and a model card: all that it takes to load it elsewhere.",
    )
    parser.add_argument("model", metavar="MODEL", help="a run folder, a model folder or a hub id")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where it goes")
    parser.add_argument("--half", action="store_true", help="in half precision: half of the space")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Writes the model folder and says how large it is."""
    from gencaps.api import load

    if options.folder.exists() and any(options.folder.iterdir() if options.folder.is_dir() else [options.folder]):
        raise GencapsError(f"{options.folder} exists already: choose another folder")
    folder = load(options.model, "cpu").save_pretrained(options.folder, half=options.half)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"model:  {folder} ({size / 1e6:.1f} MB)")
