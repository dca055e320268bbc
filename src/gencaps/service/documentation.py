"""What OpenAPI says about each question."""

from __future__ import annotations

import base64
from typing import Any

import torch

from gencaps.figures import to_bytes
from gencaps.service.acts import Act, forms
from gencaps.service.answers import JSON, png
from gencaps.service.problems import MEDIA_TYPE, Complaint
from gencaps.service.reading import MULTIPART, REST

REFUSALS = {
    400: "The body cannot be read",
    401: "The API key is missing or wrong",
    403: "Another host's name, or a page of another site",
    404: "There is no such model",
    406: "The answer has no such form",
    408: "The request took too long to arrive",
    413: "Too many bytes",
    415: "Neither JSON nor a form, or no PNG, JPEG or WebP",
    422: "A field cannot be used; field and remedy say which and what to do",
    503: "Too many requests at once; Retry-After says when to come again",
}
GUARDED = (401, 403)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Documents refusals."""
    content = {MEDIA_TYPE: {"schema": Complaint.model_json_schema()}}
    found: dict[int | str, dict[str, Any]] = {s: {"description": REFUSALS[s], "content": content} for s in statuses}
    if 503 in found:
        found[503]["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}}}
    return found


EVERY = "/v1/models/{id}/{act}"
"""The path of every question."""


def address(act: Act) -> str:
    """Gives the path of a question."""
    return EVERY.replace("{act}", act.name)


def operation(act: Act) -> dict[str, Any]:
    """Documents a question."""
    return {
        "summary": act.about,
        "description": act.question.__doc__,
        "operationId": act.name,
        "security": [{"HTTPBearer": []}],
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string", "title": "Id"}}],
        "requestBody": request_body(act),
        "responses": {str(status): one for status, one in responses(act).items()},
    }


def responses(act: Act) -> dict[int | str, dict[str, Any]]:
    """Documents every answer to a question."""
    content: dict[str, Any] = {JSON: {"schema": act.answer.model_json_schema()}}
    content |= {form: {"schema": {"type": "string", "format": "binary"}} for form in forms(act)[1:]}
    return {200: {"description": act.about, "content": content}, **refusals(*REFUSALS)}


def request_body(act: Act) -> dict[str, Any]:
    """Documents the two ways to ask, each with an example."""
    schema = act.question.model_json_schema()
    files = [name for name in act.question.pictures if name in schema["properties"]]
    needed = set(schema.get("required", ()))
    rest = {name: one for name, one in schema["properties"].items() if name not in files}
    binary = {"type": "string", "format": "binary"}
    parts: dict[str, Any] = {
        name: binary | {"description": schema["properties"][name]["description"].replace(", in base64", "")}
        for name in files
    }
    if rest:
        others: dict[str, Any] = {"type": "object", "properties": rest, "additionalProperties": False}
        parts[REST] = others | ({"required": sorted(needed & set(rest))} if needed & set(rest) else {})
    required = [name for name in parts if name in needed or (name == REST and needed & set(rest))]
    form: dict[str, Any] = {"type": "object", "properties": parts, "additionalProperties": False}
    if required:
        form["required"] = required
    example = {**{name: EXAMPLE for name in files if name in needed}, **act.example}
    return {
        "required": True,
        "content": {
            JSON: {"schema": schema, "example": example},
            MULTIPART: {"schema": form, "encoding": {REST: {"contentType": JSON}} if rest else {}},
        },
    }


EXAMPLE = base64.b64encode(png(to_bytes(torch.linspace(0, 1, 64).reshape(1, 1, 8, 8))[0])).decode()
"""A small picture."""
