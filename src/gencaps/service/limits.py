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
SMALL_BYTES, SMALL_PIXELS = 2**17, 2**16
"""A picture within both is decoded in less time than another thread takes to begin."""
PICTURES = 256
"""Pictures painted for one request."""


@dataclass(frozen=True)
class Limits:
    """How requests share the machine."""

    batch: int = 64
    """Pictures that run through a model together."""
    wait_s: float = 0.005
    """How long a batch waits for as many requests as the last one had; a lone request never waits."""
    queue: int = 128
    """Requests inside at once; more are answered 503."""
    decoders: int = 2
    """Large pictures decoded at once, beside the model: 32 megapixels with transparency take 400 MB."""
    upload_s: float = 30.0
    """How long a request may take to arrive."""
