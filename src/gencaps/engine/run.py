"""A run folder: everything that a training run was told and everything that it made."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gencaps import __version__
from gencaps.engine.recipe import Recipe, read_recipe
from gencaps.errors import GencapsError
from gencaps.files import remedy, write_atomically


@dataclass(frozen=True)
class Run:
    """A folder with config.yaml, facts.json, metrics.jsonl, samples/, state.pt and the model that came of it."""

    path: Path
    recipe: Recipe

    @staticmethod
    def refuse_used(path: Path) -> None:
        """Refuses to make a run where there is something already: it is never written over."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            unfinished = (path / "config.yaml").exists() and not (path / "evaluation.json").exists()
            what = f"{resume_command(path)} goes on with it, or " if unfinished else ""
            raise GencapsError(f"{path} exists already: {what}choose another --out")

    @classmethod
    def create(cls, path: Path, recipe: Recipe) -> Run:
        """Makes the folder of a new run, or nothing where its config cannot be written."""
        cls.refuse_used(path)
        try:
            (path / "samples").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GencapsError(f"cannot make the folder {path}: {error.strerror}; {remedy(error)}") from None
        try:
            write_atomically(path / "config.yaml", recipe.to_yaml())
        except GencapsError:
            (path / "samples").rmdir()
            path.rmdir()
            raise
        return cls(path, recipe)

    @classmethod
    def open(cls, path: Path) -> Run:
        """Opens the folder of a run that was started before."""
        if not path.is_dir():
            if path.exists():
                raise GencapsError(f"{path} is not a run folder: give the folder that gencaps train made")
            raise GencapsError(f"there is no run folder {path}: gencaps train PAPER --out {path} makes one")
        if not (path / "config.yaml").is_file():
            raise GencapsError(
                f"{path} is not a run folder: it has no config.yaml; give the folder that gencaps train made"
            )
        return cls(path, read_recipe(path / "config.yaml"))

    @property
    def metrics(self) -> Path:
        """One JSON line per epoch and part."""
        return self.path / "metrics.jsonl"

    def rows(self) -> list[dict[str, Any]]:
        """Reads metrics.jsonl up to a line torn by a kill."""
        if not self.metrics.exists():
            return []
        rows = []
        for line in self.metrics.read_text(errors="replace").splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                break
            if not isinstance(row, dict) or not isinstance(row.get("step"), int):
                break
            rows.append(row)
        return rows

    def facts(self) -> dict[str, Any]:
        """Reads what was recorded about the run: command, versions, device, split."""
        path = self.path / "facts.json"
        try:
            facts = json.loads(path.read_text()) if path.exists() else {}
        except (ValueError, RecursionError):
            facts = None
        if not isinstance(facts, dict):
            raise GencapsError(f"{path} is damaged: delete it, and the run is used without its record")
        return facts

    def record(self, **facts: Any) -> None:
        """Adds to what is recorded about the run."""
        write_atomically(self.path / "facts.json", json.dumps({**self.facts(), **facts}, indent=2) + "\n")


def environment(device: str) -> dict[str, str]:
    """Names the versions and the machine behind a figure."""
    import torch

    name = torch.cuda.get_device_name() if device.startswith("cuda") else f"CPU, {torch.get_num_threads()} threads"
    return {
        "gencaps": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": name,
        "commit": _commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def resume_command(folder: Path) -> str:
    """Gives the command that goes on with a run, as it can be typed."""
    return f"gencaps train --resume {shlex.quote(str(folder))}"


def command_line() -> str:
    """Gives the command that was typed."""
    return shlex.join(["gencaps", *sys.argv[1:]])


def _commit() -> str:
    here = Path(__file__).resolve().parent
    if "GENCAPS_COMMIT" in os.environ:  # a copy of the tree without its history
        return os.environ["GENCAPS_COMMIT"]
    try:
        done = subprocess.run(
            ["git", "-C", str(here.parent), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if not done.stdout.strip():
        return "unknown"
    changed = subprocess.run(
        ["git", "-C", str(here.parent), "status", "--porcelain", "--untracked-files=no", "."],
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() + ("-dirty" if changed.stdout.strip() else "")
