"""Makes the application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from gencaps import __version__
from gencaps.api import Capsules
from gencaps.errors import nearest
from gencaps.service.acts import ACTS
from gencaps.service.answers import Examples, Models
from gencaps.service.desk import Desk
from gencaps.service.documentation import EVERY, GUARDED, address, operation, refusals
from gencaps.service.guard import LOOPBACK, Guard
from gencaps.service.limits import Limits
from gencaps.service.meters import ROUTE, Metered
from gencaps.service.page import page_routes
from gencaps.service.problems import Problem


def make_app(
    models: Mapping[str, Capsules],
    *,
    key: str | None = None,
    hosts: Collection[str] = LOOPBACK,
    limits: Limits | None = None,
) -> FastAPI:
    """Makes an application that answers questions about some models.

    Args:
        models: by id.
        key: whoever asks must hold it; ``None`` asks for none and answers this machine alone.
        hosts: the names under which the service may be asked without a key.
        limits: how much is taken on at once.
    """
    desk = Desk(models, limits or Limits())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    # the usual pages of documentation are fetched from other hosts, which are never asked
    app = FastAPI(
        title="gencaps",
        version=__version__,
        description="Capsule networks that analyse, generate and edit pictures.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.desk = desk
    app.add_middleware(Metered, meters=desk.meters)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.include_router(_open_routes())
    guard = Guard(key, hosts)
    app.include_router(_guarded_routes(desk, guard))
    # plain routes: FastAPI takes as long to prepare a call as a small model to answer it
    # and one for all questions, before all others: an address is looked for route by route
    app.router.routes.insert(0, Route(EVERY, _endpoint(desk, guard), methods=["POST"], name="ask"))
    app.router.routes += page_routes()
    app.openapi = _documented(app)
    return app


def _open_routes() -> APIRouter:
    router = APIRouter()

    @router.get("/healthz", summary="Say that the service is ready")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    return router


def _guarded_routes(desk: Desk, guard: Guard) -> APIRouter:
    router = APIRouter(dependencies=[Depends(guard)])

    @router.get("/v1/models", summary="List the models and what they can do", responses=refusals(*GUARDED))
    async def models() -> Models:
        return desk.listed()

    @router.get(
        "/v1/models/{id}/examples",
        summary="Give pictures to try a model with",
        responses=refusals(*GUARDED, 404),
    )
    async def examples(id: str) -> Examples:
        return await desk.examples(id)

    @router.get(
        "/metrics",
        summary="Count requests, batches and seconds for Prometheus",
        response_class=Response,
        responses={
            200: {"description": "Counters", "content": {"text/plain": {"schema": {"type": "string"}}}},
            **refusals(*GUARDED),
        },
    )
    async def metrics() -> Response:
        return Response(desk.meters.text(), media_type=CONTENT_TYPE_LATEST)

    return router


def _endpoint(desk: Desk, guard: Guard) -> Callable[[Request], Awaitable[Response]]:
    known = {act.name: act for act in ACTS}

    async def endpoint(request: Request) -> Response:
        id, name = request.path_params["id"], request.path_params["act"]
        act = known.get(name)
        request.scope[ROUTE] = "unknown" if act is None else address(act)
        guard.check(request)
        if act is None:
            raise Problem(404, f"nothing is called '{name[:100]}'{nearest(name[:100], known)}")
        return await desk.answer(request, id, act)

    return endpoint


def _documented(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """Adds the questions to what FastAPI knows of the other addresses."""
    others = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = others()
            app.openapi_schema["paths"] |= {address(act): {"post": operation(act)} for act in ACTS}
        return app.openapi_schema

    return openapi


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return problem.response()


async def _no_route(request: Request, error: Exception) -> Response:
    """Says in our own form what the router refuses: unknown addresses and methods."""
    assert isinstance(error, HTTPException)
    problem = Problem(error.status_code, str(error.detail), remedy="see /openapi.json", headers=error.headers)
    return problem.response()


async def _unfit(request: Request, error: Exception) -> Response:
    return Problem(422, "the address cannot be read", field="id", remedy="see /openapi.json").response()


async def _failed(request: Request, error: Exception) -> Response:
    """Hides from the client what failed in here; the server writes it to its log."""
    return Problem(500, "the service failed", remedy="see its log; if it happens again, report it").response()


HANDLERS: dict[type[Exception], Callable[[Request, Exception], Any]] = {
    Problem: _refused,
    HTTPException: _no_route,
    RequestValidationError: _unfit,
    Exception: _failed,
}
