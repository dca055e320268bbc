"""``gencaps train``."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

from gencaps.errors import GencapsError
from gencaps.systems import SYSTEMS


def add_parser(commands: Any, words: list[str]) -> None:
    """Adds the command; with ``--help`` and a paper, the help lists every setting."""
    asked = words[:1] == ["train"] and bool({"-h", "--help"} & set(words))
    parser = commands.add_parser(
        "train",
        help="train a model, or go on with a run",
        description="Trains a model into a run folder, evaluates it on the test part and writes report.html.",
        epilog=_settings(words) if asked else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paper", nargs="?", choices=list(SYSTEMS), metavar="PAPER", help=", ".join(SYSTEMS))
    parser.add_argument("--data", metavar="SET", help="digits, mnist, ..., folder:PATH (gencaps data list)")
    parser.add_argument("--seed", type=int, metavar="N", help="fixes everything random (default 0)")
    parser.add_argument("--out", type=Path, metavar="RUN", help="the run folder to make")
    parser.add_argument("--preset", metavar="NAME", help="a named recipe (default small)")
    parser.add_argument("--config", type=Path, metavar="YAML", help="a recipe of your own")
    parser.add_argument(
        "--resume", type=Path, metavar="RUN", help="go on with a run that was stopped, as it was started"
    )
    parser.add_argument("--device", default="auto", metavar="D", help="auto, cpu or cuda (default auto)")
    parser.add_argument("--devices", type=int, default=1, metavar="N", help="processes on this machine")
    parser.add_argument("--no-report", action="store_true", help="write no report.html")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.set_defaults(run=run)
    parser.hints = _hints  # --epochs is likelier meant as --train.epochs than as another option


def _hints() -> list[str]:
    from gencaps.engine.recipe import TrainConfig
    from gencaps.systems import config_type

    sections = [("train", TrainConfig), *(("model", config_type(paper)) for paper in SYSTEMS)]
    return [f"--{section}.{name}" for section, cls in sections for name in cls.__dataclass_fields__]


def _settings(words: list[str]) -> str:
    from gencaps.engine.config import field_help, plain, type_name
    from gencaps.engine.recipe import make_recipe, presets

    papers = [word for word in words if word in SYSTEMS]
    if not papers:
        return f"gencaps train {next(iter(SYSTEMS))} --help lists every setting and preset."
    known = presets(papers[0])
    lines = ["presets:", *(f"  --preset {name:<10} {about}" for name, about in known.items())]
    shown = next((word for word in words if word in known), "small")
    recipe = make_recipe(papers[0], preset=shown)
    for section, settings in (("model", recipe.model), ("train", recipe.train)):
        lines += ["", f"settings of {section}, with what preset '{shown}' gives them (in YAML, under '{section}:'):"]
        hints = get_type_hints(type(settings))
        for name, value in plain(settings).items():
            choices = f", {type_name(hints[name])}" if get_origin(hints[name]) is Literal else ""
            given = "null" if value is None else str(value).lower() if isinstance(value, bool) else value
            text = f"{field_help(type(settings))[name]} ({given}{choices})"
            first = f"--{section}.{name:<16} {text}"
            lines += textwrap.wrap(first, 110, initial_indent="  ", subsequent_indent=" " * 27)
    return "\n".join(lines)


def run(options: argparse.Namespace) -> int:
    """Starts a run, or goes on with one."""
    if options.resume is not None:
        given = [w for w in ("paper", "data", "seed", "out", "preset", "config") if getattr(options, w) is not None]
        if given or options.settings:
            extra = options.settings[0] if options.settings else options.paper or f"--{given[0]}"
            raise GencapsError(f"--resume goes on with a run as it was started: leave out {extra}")
    elif options.paper is None:
        raise GencapsError(f"which paper is to be trained? gencaps train {next(iter(SYSTEMS))} --out RUN")
    elif options.out is None:
        raise GencapsError(f"where should the run go? gencaps train {options.paper} --out RUN")

    # DDP's hints on parameters without gradient are not for our users; read when torch is imported
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

    from gencaps.engine.config import parse_overrides
    from gencaps.engine.interrupt import Interrupted
    from gencaps.engine.recipe import make_recipe
    from gencaps.engine.train import resume, start

    where = {"device": options.device, "devices": options.devices, "quiet": options.quiet}
    try:
        if options.resume is not None:
            trained = resume(options.resume, **where)
        else:
            recipe = make_recipe(
                options.paper,
                preset=options.preset,
                config=options.config,
                data=options.data,
                seed=options.seed,
                overrides=parse_overrides(options.settings, ("model", "train")),
            )
            trained = start(recipe, options.out, **where)
        if trained is None:  # a helper process of a run on several devices
            return 0
        from gencaps.cli.finish import finish

        finish(trained, report=not options.no_report, quiet=options.quiet)
    except Interrupted as stopped:
        if os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) == "0":  # of several processes one says so
            print(stopped, file=sys.stderr)
        return 130
    except KeyboardInterrupt:  # before the first step, or after the last
        folder = options.resume or options.out
        if not (folder / "config.yaml").exists():
            raise
        from gencaps.engine.run import resume_command

        print(f"stopped; go on with: {resume_command(folder)}", file=sys.stderr)
        return 130
    return 0
