"""The one kind of error that a user is meant to read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_NAMED = 20
"""Names listed at most where none is near; a model may know a thousand classes."""


class GencapsError(Exception):
    """Says in one line what was given, why it cannot be used, and what to do instead.

    The command line prints the line without a traceback and exits with code 2.
    """


def refuse_below(settings: object, least: int, *names: str) -> None:
    """Refuses settings of a model, single ones or lists, that are below a bound."""
    for name in names:
        value = getattr(settings, name)
        if any(one < least for one in (value if isinstance(value, tuple) else (value,))):
            what = "each" if isinstance(value, tuple) else "it"
            raise GencapsError(f"model.{name} is {value}; {what} must be at least {least}")


def refuse_up_to_zero(settings: object, *names: str) -> None:
    """Refuses settings of a model that are not above 0."""
    for name in names:
        value = getattr(settings, name)
        if value <= 0:
            raise GencapsError(f"model.{name} is {value}; it must be above 0")


def nearest(word: str, known: Iterable[str]) -> str:
    """Offers the known word nearest to a mistyped one: `` (did you mean 'epochs'?)``, or all of them if few."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f" (did you mean '{close[0]}'?)"
    more = ", ..." if len(known) > MOST_NAMED else ""
    return f" (known: {', '.join(known[:MOST_NAMED])}{more})" if known else ""
