"""The command line. Nothing heavy is imported until a command needs it."""

from __future__ import annotations

import sys

from gencaps.cli.parser import make_parser, take_settings
from gencaps.errors import GencapsError


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; what a user did wrong is said in one line and ends with exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        words, settings = take_settings(words)
        parser = make_parser(words)
        options = parser.parse_args(words)
        if settings and options.command != "train":
            raise GencapsError(f"{settings[0]} is a setting of training: only gencaps train takes it")
        options.settings = settings
        return options.run(options) or 0
    except GencapsError as error:
        print(f"gencaps: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("gencaps: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone; there is nobody to tell
        return 1


def run() -> None:
    """Is what the ``gencaps`` command calls."""
    sys.exit(main())
