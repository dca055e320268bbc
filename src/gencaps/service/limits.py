"""How much the service takes on at once."""

from __future__ import annotations

from dataclasses import dataclass

UPLOAD_BYTES = 10 * 2**20
"""One picture, as it is sent."""
BODY_BYTES = 32 * 2**20
"""One request: two pictures in base64, and room for the rest."""
LONGEST = 16_384
"""Pixels along the longer side of a picture."""
THINNEST = 100
"""How many times longer than wide a picture may be."""
PICTURES = 256
"""Pictures painted for one request."""


@dataclass(frozen=True)
class Limits:
    """How requests share the machine."""

    batch: int = 64
    """Pictures that run through a model together."""
    wait_s: float = 0.003
    """How long a batch waits for requests that are on their way; a lone request never waits."""
    queue: int = 128
    """Requests inside at once; more are answered 503."""
    threads: int = 16
    """Requests that are decoded, asked and painted at once."""
    decoders: int = 2
    """Pictures decoded at once: 32 megapixels with transparency take 400 MB."""
    upload_s: float = 30.0
    """How long a request may take to arrive."""
