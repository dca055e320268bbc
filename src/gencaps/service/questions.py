"""What can be asked: the fields of each request, with their bounds."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from gencaps.service.limits import UPLOAD_BYTES
from gencaps.service.upload import check_bytes

BASE64_LONGEST = 4 * -(-UPLOAD_BYTES // 3)
PREFIX_LONGEST = 100
"""Of ``data:image/png;base64,`` and the like."""


def from_base64(given: Any) -> bytes:
    """Reads a picture in base64, with or without the head of a data URL; bytes of an upload stay as they are."""
    if isinstance(given, bytes):
        return given
    if not isinstance(given, str):
        raise ValueError("give the picture in base64")
    head, comma, body = given[:PREFIX_LONGEST].partition(",")
    if comma and head.startswith("data:"):
        given = body + given[PREFIX_LONGEST:]
    if len(given) > BASE64_LONGEST:
        check_bytes(UPLOAD_BYTES + 1, "the picture")
    try:
        return base64.b64decode(given.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("this is not base64") from None


_SCHEMA: dict[str, Any] = {"type": "string", "format": "byte"}
Picture = Annotated[bytes, BeforeValidator(from_base64), WithJsonSchema(_SCHEMA)]
Name = Annotated[str, Field(max_length=100)]
Dial = Annotated[float, Field(ge=-1000, le=1000)]
Shift = Annotated[float, Field(ge=-2, le=2)]
Share = Annotated[float, Field(ge=0, le=1)]

_PICTURE = "a PNG, JPEG or WebP of at most 10 MB and 32 megapixels, in base64"
_SAMPLE = "paint from a sample of the capsules instead of their means"


class Question(BaseModel):
    """What is asked; fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    pictures: ClassVar[tuple[str, ...]] = ()
    """The fields that hold pictures; in multipart/form-data they are files."""


class Seeded(Question):
    """A question whose answer is drawn."""

    seed: int = Field(0, ge=0, le=2**53 - 1, description="a whole number from 0: same seed, same picture")


class Classify(Question):
    """Asks what a picture shows."""

    pictures = ("picture",)
    picture: Picture = Field(description=_PICTURE)


class Explain(Classify):
    """Asks who painted what in a picture."""


class Encode(Classify):
    """Asks for the capsules of a picture as numbers, which ``turn`` paints."""


class Score(Classify):
    """Asks how real a picture looks."""


class Fit(Classify):
    """Asks for a picture as the model sees it: cropped to a square, scaled, grey or in colour."""


class Turn(Question):
    """Asks for a picture of capsules that are given as numbers."""

    capsules: list[Annotated[list[Dial], Field(min_length=1, max_length=256)]] = Field(
        min_length=1, max_length=256, description="the numbers of every capsule, as encode gives them"
    )
    on: list[Share] = Field(min_length=1, max_length=256, description="how far each capsule paints, 0 to 1")


class Move(Classify):
    """Asks for a picture with an object moved; its parts follow."""

    object: int = Field(0, ge=0, le=999, description="the number of the object, from 0")
    right: Shift = Field(0.0, description="how far to the right, -2 to 2; the canvas is 2 wide")
    down: Shift = Field(0.0, description="how far down, -2 to 2; the canvas is 2 high")


class Walk(Seeded):
    """Asks for walks between new pictures of whatever the model likes."""

    n: int = Field(1, ge=1, le=8, description="walks, 1 to 8")
    steps: int = Field(8, ge=2, le=32, description="pictures in a walk, 2 to 32")


class Explore(Question):
    """Asks for walks along the axes of one capsule."""

    capsule: int = Field(0, ge=0, le=999, description="the number of the capsule, from 0")
    steps: int = Field(8, ge=2, le=16, description="pictures in a walk, 2 to 16")


class Reconstruct(Seeded):
    """Asks for a picture painted again from its capsules."""

    pictures = ("picture",)
    picture: Picture = Field(description=_PICTURE)
    sample: bool = Field(False, description=_SAMPLE)


class Generate(Seeded):
    """Asks for new pictures of classes, of attributes, or of whatever the model likes."""

    pictures = ("like",)
    classes: list[Name | int] | None = Field(
        None, min_length=1, max_length=64, description="classes by name or index; all of them where none is named"
    )
    attributes: dict[Name, bool | int] | None = Field(
        None, min_length=1, max_length=200, description="attributes by name, 1 or 0; the others as they mostly are"
    )
    capsules: list[Annotated[int, Field(ge=0, le=999)]] | None = Field(
        None, min_length=1, max_length=64, description="of a product of experts: draw from these capsules alone, from 0"
    )
    domain: Literal["restricted", "full"] | None = Field(
        None, description="of a product of experts: the directions that training visits, or all"
    )
    like: Picture | None = Field(None, description=f"take class or attributes of this picture: {_PICTURE}")
    n: int = Field(8, ge=1, le=64, description="pictures of each class, 1 to 64")


class Edit(Seeded):
    """Asks for a picture with something changed and the rest kept."""

    pictures = ("picture",)
    picture: Picture = Field(description=_PICTURE)
    wishes: Annotated[str, Field(max_length=2000)] | int | Annotated[dict[Name, bool | int], Field(max_length=200)] = (
        Field(description='what to change: {"Hat": 1} or "Hat=1"; of a model with classes the class to become')
    )
    styles: int = Field(0, ge=0, le=16, description="styles of the change to draw, 0 (the plainest form) to 16")
    intensity: Share | Annotated[list[Share], Field(min_length=1, max_length=16)] = Field(
        1.0, description="how far to go, from 0 to 1; several give a strip"
    )
    sample: bool = Field(False, description=_SAMPLE)
    turn: Annotated[dict[Name, Dial], Field(max_length=1000)] | None = Field(
        None, description='numbers of the changed capsules set by hand: {"Hat on.0": 1.5}'
    )


class Interpolate(Question):
    """Asks for a walk from one picture to another."""

    pictures = ("start", "end")
    start: Picture = Field(description=_PICTURE)
    end: Picture = Field(description=_PICTURE)
    only: list[Name] | None = Field(
        None, min_length=1, max_length=200, description="walk in these attributes only, by name; all where left out"
    )
    steps: int = Field(8, ge=2, le=32, description="pictures in the walk, 2 to 32")
