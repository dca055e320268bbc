"""``gencaps push``."""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import Any

from gencaps.errors import GencapsError


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "push",
        help="publish a model on the hub",
        description="Uploads a model folder to the Hugging Face hub, from which its id loads it anywhere.",
    )
    parser.add_argument("model", metavar="MODEL", help="a run folder, a model folder or a hub id")
    parser.add_argument("id", metavar="OWNER/NAME", help="where it goes on the hub")
    parser.add_argument("--private", action="store_true", help="for you alone")
    parser.add_argument("--half", action="store_true", help="in half precision: half of the space")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Uploads config.json, model.safetensors and the model card."""
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", options.id):
        raise GencapsError(f"'{options.id}' is no place on the hub: write OWNER/NAME")
    try:
        from huggingface_hub import HfApi  # pyright: ignore[reportMissingImports] (an extra)
    except ImportError:
        raise GencapsError("publishing needs the package huggingface_hub: pip install 'gencaps[hub]'") from None
    from gencaps.api import load

    model, hub = load(options.model, "cpu"), HfApi()
    with tempfile.TemporaryDirectory() as folder:
        written = model.save_pretrained(Path(folder) / "model", half=options.half)
        try:
            hub.create_repo(options.id, private=options.private, exist_ok=True)
            hub.upload_folder(repo_id=options.id, folder_path=written, commit_message="Upload a gencaps model")
        except Exception as error:  # network, name and rights all come as different classes
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise GencapsError(
                f"{options.id} was not published: {reason}; hf auth login tells the hub who you are"
            ) from None
    print(f"published {options.id}: gencaps.load({options.id!r}) loads it anywhere")
