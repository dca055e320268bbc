"""``gencaps serve``: answers questions about models over HTTP."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from gencaps.errors import GencapsError

PORT = 8765
KEY = "GENCAPS_API_KEY"


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "serve",
        help="open the studio: look at models in a browser, and ask them over HTTP",
        description="Opens the studio over the models that come along, those in runs/, and those given.",
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="run folders, model folders or hub ids to add")
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="runs to serve, too (runs)")
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="address (127.0.0.1: this machine alone)")
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=f"port ({PORT}; 0: any that is free)")
    parser.add_argument("--api-key", metavar="KEY", help=f"what clients must hold; better in the variable {KEY}")
    parser.add_argument("--no-browser", action="store_true", help="open no browser")
    parser.add_argument("--device", default="auto", metavar="D", help="auto, cpu or cuda (default auto)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Loads the models and answers until it is told to stop."""
    try:
        from gencaps.service import run as service
        from gencaps.service.app import make_app
        from gencaps.service.models import gather
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("gencaps"):
            raise
        raise GencapsError(f"serving needs the package {error.name}: pip install 'gencaps[serve]'") from None
    key = os.environ.get(KEY) if options.api_key is None else options.api_key
    service.check_address(options.host, key)
    with service.listen(options.host, options.port) as door:
        models = gather(options.models, options.device, options.runs)
        service.run(
            make_app(models, key=key, hosts=service.known_hosts(options.host)), door, browser=not options.no_browser
        )
