"""The words of the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, NoReturn

from gencaps import __version__
from gencaps.cli import answer, data, evaluate, export, info, probe, push, reproduce, save, scenes, serve, train
from gencaps.errors import GencapsError, nearest
from gencaps.systems import SYSTEMS

SETTING = re.compile(r"--(model|train)\..+")


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line and offer the nearest right word."""

    hints: Callable[[], list[str]] | None = None
    """Gives more words that a mistyped option may have meant."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **options})

    def parse_known_args(self, *arguments: Any, **options: Any) -> Any:
        """Refuses what it does not know at once: the parser above would offer other commands' options."""
        found, unknown = super().parse_known_args(*arguments, **options)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        wrong = re.search(r"^(?:argument (--\S+: )?[^:]*:? ?)?invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if unknown:
            known = [option for action in self._actions for option in action.option_strings]
            what = "option" if unknown[1].startswith("-") else "word"
            message = f"unknown {what} '{unknown[1]}'{_offer(unknown[1], [*known, *(self.hints or list)()])}"
        elif wrong:
            known = [word.strip(" '") for word in wrong[3].split(",")]
            message = f"{wrong[1] or ''}there is no '{wrong[2]}'{nearest(wrong[2], known)}"
        message = re.sub(r"invalid int value: ('[^']*')", r"\1 is not a whole number", message)
        paper = f" {next(iter(SYSTEMS))}" if self.hints else ""  # settings are listed with their paper
        raise GencapsError(f"{message}; {self.prog}{paper} --help lists what there is")


def _offer(word: str, known: list[str]) -> str:
    offer = nearest(word, known)
    return offer if "did you mean" in offer else ""


def take_settings(words: list[str]) -> tuple[list[str], list[str]]:
    """Takes ``--model.X VALUE`` and ``--train.X VALUE`` out of the words, wherever they stand."""
    rest, settings, remaining = [], [], list(words)
    while remaining:
        word = remaining.pop(0)
        if SETTING.fullmatch(word) is None:
            rest.append(word)
            continue
        settings.append(word)
        if "=" not in word:
            if not remaining or remaining[0].startswith("--"):
                raise GencapsError(f"{word} needs a value: {word} VALUE")
            settings.append(remaining.pop(0))
    return rest, settings


def make_parser(words: list[str]) -> Parser:
    """Builds the whole parser; the settings of a paper are listed only when its help is asked for."""
    parser = Parser(
        prog="gencaps",
        description="One model that analyses, generates and edits pictures, built from capsules.",
        epilog="Start with: gencaps train variational --data digits --out runs/digits",
    )
    parser.add_argument("--version", action="version", version=f"gencaps {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", required=True, parser_class=Parser
    )
    train.add_parser(commands, words)
    evaluate.add_parser(commands)
    probe.add_parser(commands)
    answer.add_parsers(commands)
    scenes.add_parsers(commands)
    save.add_parser(commands)
    export.add_parser(commands)
    push.add_parser(commands)
    data.add_parser(commands)
    reproduce.add_parsers(commands)
    serve.add_parser(commands)
    info.add_parser(commands)
    completion = commands.add_parser("completion", help="print a shell's completion script", description=_COMPLETION)
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    completion.set_defaults(run=lambda options: print(_completion(parser, options.shell)))
    return parser


_COMPLETION = 'For bash: eval "$(gencaps completion bash)"; put the line into ~/.bashrc to keep it.'


def _completion(parser: Parser, shell: str) -> str:
    import shtab

    return shtab.complete(parser, shell)
