"""``gencaps export``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gencaps.errors import GencapsError


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "export",
        help="write a model for other runtimes",
        description="Writes encoder.onnx (pictures to capsules) and decoder.onnx (capsules to pictures).",
    )
    parser.add_argument("model", metavar="MODEL", help="a run folder, a model folder or a hub id")
    parser.add_argument("--onnx", type=Path, required=True, metavar="FOLDER", help="where the two files go")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Writes both files and says how large they are."""
    from gencaps.api import load
    from gencaps.engine.export import export_onnx

    if options.onnx.exists() and not options.onnx.is_dir():
        raise GencapsError(f"{options.onnx} is a file: choose a folder")
    for file in export_onnx(load(options.model, "cpu").model, options.onnx):
        print(f"wrote {file} ({file.stat().st_size / 1e6:.1f} MB)")
