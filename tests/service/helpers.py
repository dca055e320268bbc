"""What the tests of the service share."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy as np
from PIL import Image

HOST = "http://127.0.0.1:8765"


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """Encodes a picture as a file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def text(data: bytes) -> str:
    """Writes bytes as base64."""
    return base64.b64encode(data).decode()


def pixels(data: bytes | str) -> np.ndarray:
    """Reads the pixels of a PNG, in bytes or in base64, as whole numbers."""
    raw = base64.b64decode(data) if isinstance(data, str) else data
    return np.asarray(Image.open(io.BytesIO(raw))).astype(int)


def complaint(response: Any, status: int, field: str | None = None, *words: str) -> dict[str, Any]:
    """Holds where a response is a refusal in the form that is documented; gives what it says."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    said = json.loads(response.content)
    assert set(said) == {"type", "title", "status", "detail", "field", "remedy"}
    assert said["status"] == status
    assert said["field"] == field, said
    assert said["detail"]
    assert said["remedy"]
    assert "\n" not in said["detail"] + said["remedy"]
    assert "Traceback" not in response.text
    assert all(word in said["detail"] + said["remedy"] for word in words), said
    return said
