"""What is answered, as JSON or as a picture."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image
from pydantic import BaseModel, Field
from starlette.responses import Response
from torch import Tensor

from gencaps.abilities import Dials, Draws, Explained, Turns
from gencaps.api import Capsules
from gencaps.figures import gif, to_bytes
from gencaps.model import count_parameters
from gencaps.painted import Classification, Painted
from gencaps.service.whole import PNG as SIGNATURE

JSON, PNG, GIF = "application/json", "image/png", "image/gif"


class ModelInfo(BaseModel):
    """One model that can be asked."""

    id: str = Field(examples=["faces"])
    paper: str = Field(description="the system", examples=["variational"])
    title: str = Field(description="what the system is called")
    data: str = Field(description="what it was trained on")
    can: list[str] = Field(description="which of the questions it answers", examples=[["classify", "edit"]])
    labels: str = Field(description="classes: a picture shows one of the names; attributes: any number of them")
    names: list[str]
    size: int = Field(description="pixels a side")
    channels: int = Field(description="1: grey, 3: colour")
    parameters: int
    capsules: list[str] = Field(description="names of the capsules that encode gives and turn takes; empty: none")
    experts: int = Field(description="capsules that generate can draw from alone, and explore; 0: none")


class Models(BaseModel):
    """The models that can be asked."""

    models: list[ModelInfo]


class Seen(BaseModel):
    """What a picture shows."""

    label: str = Field(description="the class, or the attributes that are on")
    presence: dict[str, float] = Field(description="how surely each is there, 0 to 1")
    unknown: float | None = Field(description="how likely the picture shows nothing known; null: the model cannot tell")


class Painting(BaseModel):
    """Pictures that were painted."""

    labels: list[str] = Field(description="one a row: what was asked for or seen")
    columns: int = Field(description="how many pictures belong in a row")
    pictures: list[str] = Field(description="PNG files in base64, row by row")


class Encoded(BaseModel):
    """The capsules of a picture as numbers."""

    names: list[str]
    capsules: list[list[float]] = Field(description="the numbers of every capsule")
    on: list[float] = Field(description="how far each capsule paints, 0 to 1")
    presence: list[float] = Field(description="how surely each capsule is there, 0 to 1")


class Scored(BaseModel):
    """How real a picture looks."""

    score: float = Field(description="0: made by a model, 1: real")


class Explanation(BaseModel):
    """Who painted what: pictures to look at, and shares of every pixel."""

    pictures: list[str] = Field(
        description="PNG files in base64: as given, painted again, coloured by template, coloured by object"
    )
    objects: list[list[list[float]]] = Field(
        description="the share of every pixel that each object painted; the first is nobody's"
    )
    presence: list[float] = Field(description="how surely each object is there, 0 to 1")


class Examples(BaseModel):
    """Pictures to try a model with."""

    source: str = Field(description="where they come from: a test set, or the model itself where there is none here")
    labels: list[str] = Field(description="what each shows")
    pictures: list[str] = Field(description="PNG files in base64")


def about(id: str, capsules: Capsules, can: list[str]) -> ModelInfo:
    """Describes a model."""
    info, model = capsules.info, capsules.model
    return ModelInfo(
        id=id,
        paper=model.paper,
        title=model.title,
        data=info.data,
        can=can,
        labels=info.labels,
        names=list(info.names),
        size=info.size,
        channels=info.channels,
        parameters=count_parameters(model.parameters()),
        capsules=list(model.capsule_names) if isinstance(model, Turns) else [],
        experts=model.experts if isinstance(model, Draws) else 0,
    )


def seen(found: Classification) -> Seen:
    """Describes what one picture shows."""
    return Seen(
        label=found.label[0],
        presence=dict(zip(found.names, found.presence[0].tolist(), strict=True)),
        unknown=None if found.unknown is None else float(found.unknown[0]),
    )


def encoded(found: Dials, names: Sequence[str]) -> Encoded:
    """Describes the capsules of one picture."""
    values, on, presence = (part[0].tolist() for part in found)
    return Encoded(names=list(names), capsules=values, on=on, presence=presence)


def explanation(found: Explained, painted: Painted) -> Explanation:
    """Describes who painted what in one picture; shares to three digits, of which there are many."""
    objects = found.objects[0].nan_to_num().double().mul(1000).round().div(1000)
    return Explanation(
        pictures=in_base64(painted.pictures), objects=objects.tolist(),
        presence=found.presence[0].nan_to_num().tolist(),
    )  # fmt: skip


def in_base64(pictures: Float[Tensor, "n channels height width"]) -> list[str]:
    """Encodes pictures for JSON."""
    return [base64.b64encode(png(one)).decode() for one in to_bytes(pictures)]


def png(pixels: UInt8[np.ndarray, "height width channels"]) -> bytes:
    """Encodes a picture without loss; for small ones several times faster than Pillow, which every answer pays."""
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # before each line its filter: none
    lines[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 3)), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))
        for name, data in parts
    )


def sheet(image: Image.Image) -> bytes:
    """Encodes a sheet of pictures, which is worth packing well."""
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def render(answer: BaseModel | Painted, media_type: str) -> Response:
    """Writes an answer in the form asked for: of pictures JSON is every one alone, PNG one sheet, GIF one moving."""
    if isinstance(answer, Painted) and media_type == PNG:
        return Response(sheet(answer.sheet()), media_type=PNG)
    if isinstance(answer, Painted) and media_type == GIF:
        return Response(gif(answer.pictures), media_type=GIF)
    if isinstance(answer, Painted):
        pictures = in_base64(answer.pictures)
        answer = Painting(labels=answer.labels, columns=answer.columns, pictures=pictures)
    return Response(answer.model_dump_json(), media_type=JSON)
