"""Serves the studio: a handful of files that are read once, so that no name in a request reaches the disk."""

from __future__ import annotations

from importlib import resources

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    # scripts, styles and questions are this service's own; pictures come within its answers
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def page_routes() -> list[Route]:
    """Makes the routes of the page, which holds nothing that a key would have to guard."""
    files = {
        file.name: (file.read_bytes(), KINDS[kind])
        for file in resources.files("gencaps.service").joinpath("studio").iterdir()
        if (kind := file.name[file.name.rfind(".") :]) in KINDS
    }

    def give(name: str) -> Response:
        if name not in files:
            raise HTTPException(404, f"the studio has no file '{name[:100]}'")
        content, kind = files[name]
        return Response(content, media_type=kind, headers=HEADERS)

    async def index(request: Request) -> Response:
        return give("index.html")

    async def part(request: Request) -> Response:
        return give(request.path_params["name"])

    return [Route("/", index, name="studio"), Route("/studio/{name}", part, name="studio-file")]
