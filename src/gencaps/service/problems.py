"""What went wrong, as application/problem+json (RFC 9457): one line, the field and the remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response

from gencaps.errors import GencapsError, nearest

MEDIA_TYPE = "application/problem+json"
LONGEST_LINE = 400


class Complaint(BaseModel):
    """Says why a request was refused."""

    type: str = Field(description="always about:blank: the status says what kind of problem it is")
    title: str = Field(description="the status in words")
    status: int
    detail: str = Field(description="one line: what was given and why it cannot be used")
    field: str | None = Field(description="the part of the request that is wrong, where one is")
    remedy: str = Field(description="what to do instead")


class Problem(Exception):
    """A refusal on its way to the client."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        field: str | None = None,
        remedy: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.field, self.headers = status, field, dict(headers or {})
        self.detail = _one_line(detail)
        self.remedy = _one_line(remedy or remedy_in(self.detail))

    def response(self) -> Response:
        """Renders it; every character beyond ASCII is escaped, so that any text can be told."""
        body = Complaint(
            type="about:blank",
            title=HTTPStatus(self.status).phrase,
            status=self.status,
            detail=self.detail,
            field=self.field,
            remedy=self.remedy,
        )
        return Response(json.dumps(body.model_dump()), self.status, self.headers, MEDIA_TYPE)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 3] + "..."


def remedy_in(line: str) -> str:
    """Finds the remedy in a line of ``GencapsError``: what stands in the last bracket, or after the last ; or :."""
    offered = re.search(r"\(((?:did you mean|known:).*)\)$", line)
    if offered:
        return offered[1]
    parts = re.split(r"[;:] ", line)
    return parts[-1] if len(parts) > 1 else "see /openapi.json for what can be asked"


def refusal(error: GencapsError, field: str | None = None) -> Problem:
    """Turns what a user can do wrong into a refusal of the request."""
    return Problem(422, str(error), field=field)


@contextmanager
def naming(field: str) -> Iterator[None]:
    """Says which field is meant by what is refused inside."""
    try:
        yield
    except GencapsError as error:
        raise refusal(error, field) from None


def invalid(error: ValidationError, model: type[BaseModel]) -> Problem:
    """Tells the first thing that is wrong with the fields of a request, by the field's name."""
    first: Any = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = [str(part) for part in first["loc"]]
    top, known = place[0] if place else "the request", list(model.model_fields)
    if first["type"] == "extra_forbidden":
        offer = nearest(top, known)
        return Problem(422, f"there is no field '{top[:100]}'{offer}", field=top[:100], remedy=f"leave it out{offer}")
    about = (model.model_fields[top].description if top in known else None) or "see /openapi.json"
    # beneath a field of several types come the types' names: the field is what the client knows
    path = top if len(place) < 2 or not place[1].isdigit() else f"{top}.{place[1]}"
    said = first["msg"].removeprefix("Value error, ")
    return Problem(422, f"{path}: {said}", field=path, remedy=f"{top}: {about}")
