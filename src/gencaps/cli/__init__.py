"""The command line. Nothing heavy is imported until a command needs it."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from gencaps.cli.parser import make_parser, take_settings
from gencaps.errors import GencapsError
from gencaps.files import remedy


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; what a user did wrong is said in one line and ends with exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        words, settings = take_settings(words)
        parser = make_parser(words)
        options = parser.parse_args(words or ["--help"])
        if settings and options.command != "train":
            raise GencapsError(f"{settings[0]} is a setting of training: only gencaps train takes it")
        options.settings = settings
        code = options.run(options) or 0
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk or a closed pipe can still be told
        return code
    except GencapsError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        print("gencaps: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 1  # whoever read our output has gone; there is nobody to tell
    except OSError as error:
        named = f"{error.filename}: " if error.filename else "cannot print: "
        return _refuse(f"{named}{error.strerror or error}; {remedy(error)}")
    except (MemoryError, RuntimeError) as error:
        # torch says so in a RuntimeError, whose class is not worth importing torch for
        if isinstance(error, RuntimeError) and not any(text in str(error) for text in _NO_MEMORY):
            raise
        return _refuse(
            "there is not enough memory: ask for fewer or smaller pictures, or train with a smaller --train.batch"
        )


_NO_MEMORY = ("out of memory", "not enough memory", "allocate memory")


def _refuse(text: str) -> int:
    print(f"gencaps: {' '.join(text.splitlines())}", file=sys.stderr)  # a file's name may hold a line break
    return 2


def run() -> None:
    """Is what the ``gencaps`` command calls."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # None where the caller closed it
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue]
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, note)
    try:
        code = main()
    except Exception:
        if not asked:
            raise
        print("gencaps: interrupted", file=sys.stderr)  # a package broken off in its import may raise anything
        code = 130
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        # what cannot be printed is dropped, or Python would try again at its end and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
