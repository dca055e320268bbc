"""What the tests of the studio share: pixels out of the page."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from gencaps.figures import to_bytes


def pixels(source: str) -> np.ndarray:
    """Reads the pixels of an image's data URL."""
    data = base64.b64decode(source.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(data))).astype(int)


def shown(page: Any, selector: str) -> np.ndarray:
    """Reads the pixels of a picture in the page."""
    return pixels(page.locator(selector).first.get_attribute("src"))


def alike(found: np.ndarray, wanted: Tensor) -> bool:
    """Says whether pixels are those of a picture; a batch may add up in another order, by one grey level."""
    picture = to_bytes(wanted[None])[0].squeeze()
    # until the answer is there, a page may show another kind of picture
    return found.shape == picture.shape and bool(np.abs(found - picture).max() <= 1)


def until_alike(page: Any, selector: str, wanted: Tensor) -> None:
    """Waits until a picture in the page is the one wanted."""
    for _ in range(200):
        if alike(shown(page, selector), wanted):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{selector} never became what was wanted")


def given(page: Any, title: str = "The picture") -> np.ndarray:
    """Reads the picture that a panel was given."""
    return shown(page, f"section[aria-label='{title}'] figure img")


def as_image(found: np.ndarray) -> Image.Image:
    """Makes a picture of pixels, for the API."""
    return Image.fromarray(found.astype(np.uint8))


def slide(page: Any, label: str, value: float) -> None:
    """Moves a slider as a hand does."""
    page.get_by_label(label, exact=True).evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input', { bubbles: true })); }", value
    )
