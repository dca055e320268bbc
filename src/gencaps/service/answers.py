"""What is answered, as JSON or as a picture."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image
from pydantic import BaseModel, Field
from starlette.responses import Response
from torch import Tensor

from gencaps.api import Capsules, Classification, Painted
from gencaps.figures import to_bytes
from gencaps.model import count_parameters
from gencaps.service.whole import PNG as SIGNATURE

JSON, PNG = "application/json", "image/png"


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


class Explanation(BaseModel):
    """Who painted what: named arrays, as the paper's model gives them."""

    parts: dict[str, Any]


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
    )


def seen(found: Classification) -> Seen:
    """Describes what one picture shows."""
    return Seen(
        label=found.label[0],
        presence=dict(zip(found.names, found.presence[0].tolist(), strict=True)),
        unknown=None if found.unknown is None else float(found.unknown[0]),
    )


def explanation(found: Any) -> Explanation:
    """Writes the named tensors of one picture's explanation as lists of numbers."""
    fields = found._asdict() if hasattr(found, "_asdict") else {"explanation": found}
    return Explanation(parts={name: _plain(value) for name, value in fields.items()})


def _plain(value: Any) -> Any:
    """Turns tensors into lists of finite numbers; JSON knows no others."""
    return value[0].nan_to_num().tolist() if isinstance(value, Tensor) else [_plain(one) for one in value]


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
    """Writes an answer in the form asked for: of pictures PNG is one sheet, JSON every picture alone."""
    if isinstance(answer, Painted) and media_type == PNG:
        return Response(sheet(answer.sheet()), media_type=PNG)
    if isinstance(answer, Painted):
        pictures = [base64.b64encode(png(one)).decode() for one in to_bytes(answer.pictures)]
        answer = Painting(labels=answer.labels, columns=answer.columns, pictures=pictures)
    return Response(answer.model_dump_json(), media_type=JSON)
