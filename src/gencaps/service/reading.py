"""Reads a request: its body within bounds, as JSON or multipart/form-data, and the form wanted for the answer."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from gencaps.service.answers import JSON
from gencaps.service.limits import BODY_BYTES
from gencaps.service.problems import Problem, invalid
from gencaps.service.questions import Question

MULTIPART = "multipart/form-data"
REST = "question"
"""The part of a form that holds, as JSON, all fields that are no pictures."""
Asked = TypeVar("Asked", bound=Question)


async def read(request: Request, question: type[Asked], most_s: float) -> Asked:
    """Reads what is asked; refuses what is too much, malformed or not known."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (JSON, MULTIPART):
        raise Problem(415, f"a request of type '{media_type}' cannot be read", remedy=f"send {JSON} or {MULTIPART}")
    try:
        body = await asyncio.wait_for(_body(request), most_s)
    except TimeoutError:
        raise Problem(408, f"the request did not arrive within {most_s:g} s", remedy="send it again") from None
    fields = _json(body, "the body") if media_type == JSON else await _form(request, body, question)
    try:
        return question.model_validate(fields)
    except ValidationError as error:
        raise invalid(error, question) from None


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_BYTES:
                most = BODY_BYTES >> 20
                raise Problem(413, f"the request has more than {most} MB", remedy=f"send at most {most} MB")
    except ClientDisconnect:
        raise Problem(400, "the request broke off", remedy="send all of it") from None
    return bytes(body)


def _json(text: bytes | str, what: str) -> dict[str, Any]:
    """Reads a JSON object of finite numbers."""
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"{what} is no JSON: {error}", field=None, remedy="send a JSON object") from None
    if not isinstance(value, dict):
        raise Problem(422, f"{what} is JSON, but no object", remedy='send a JSON object, such as {"seed": 7}')
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _finite(word: str) -> float:
    return float(word) if math.isfinite(float(word)) else _no_number(word)


async def _form(request: Request, body: bytes, question: type[Question]) -> dict[str, Any]:
    """Reads a form: each picture a file of its own, the other fields as one part of JSON."""

    async def replay() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    fields: dict[str, Any] = {}
    try:
        async with Request(request.scope, replay).form(max_files=4, max_fields=4) as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    _once(fields, name)
                    fields[name] = await value.read()
                elif name == REST:
                    for key, inner in _json(value, f"the part '{REST}'").items():
                        _once(fields, key)
                        fields[key] = inner
                else:
                    raise Problem(
                        422,
                        f"the form has a part '{name[:100]}', which is neither a file nor '{REST}'",
                        field=name[:100],
                        remedy=f"send pictures as files, and all other fields as JSON in the part '{REST}'",
                    )
    except (HTTPException, ValueError, KeyError) as error:
        said = error.detail if isinstance(error, HTTPException) else str(error)
        raise Problem(400, f"the form cannot be read: {said}", remedy=f"send well-formed {MULTIPART}") from None
    stray = [name for name, value in fields.items() if isinstance(value, bytes) and name not in question.pictures]
    if stray:
        wanted = " and ".join(question.pictures)
        raise Problem(422, f"there is no picture '{stray[0][:100]}'", field=stray[0][:100], remedy=f"name it {wanted}")
    return fields


def _once(fields: dict[str, Any], name: str) -> None:
    if name in fields:
        raise Problem(422, f"'{name[:100]}' is given twice", field=name[:100], remedy="give it once")


def wanted(request: Request, offered: Sequence[str]) -> str:
    """Chooses the form of the answer by the Accept header; the first that is offered where all are welcome."""
    return _chosen(",".join(request.headers.getlist("accept")) or "*/*", tuple(offered))


@lru_cache(256)
def _chosen(header: str, offered: tuple[str, ...]) -> str:
    best, best_weight = offered[0], 0.0
    for form in offered:
        weight = max((_weight(part, form) for part in header.split(",")), default=(0, 0.0))[1]
        if weight > best_weight:
            best, best_weight = form, weight
    if best_weight <= 0:
        raise Problem(
            406, f"the answer cannot be given as '{header}'", field="Accept", remedy=f"accept {' or '.join(offered)}"
        )
    return best


def _weight(part: str, form: str) -> tuple[int, float]:
    """Gives how exactly one media range names a form, and its weight; (0, 0) where it does not."""
    name, *parameters = (word.strip().lower() for word in part.split(";"))
    ranges = ["*/*", f"{form.partition('/')[0]}/*", form]
    if name not in ranges:
        return 0, 0.0
    quality = next((word[2:] for word in parameters if word.startswith("q=")), "1")
    try:
        return 1 + ranges.index(name), min(1.0, max(0.0, float(quality)))
    except ValueError:
        return 0, 0.0
