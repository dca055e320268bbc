"""What many tests say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gencaps.errors import GencapsError


def refused(call: Callable[[], object], *words: str) -> None:
    """The call is refused on one line that says these words."""
    with pytest.raises(GencapsError) as caught:
        call()
    said = str(caught.value)
    assert "\n" not in said
    assert all(word in said for word in words), said
