# SPDX-License-Identifier: MIT
"""The ASGI app: routes behind a gate.

Starlette rather than Litestar: four packages instead of twenty-two and a fifth of the import time,
for some thirty routes whose types are msgspec structs anyway. Routing, gzip, streaming and the
lifespan of the app are Starlette's; `openapi.py` adds what OpenAPI needs beyond msgspec's schemas
in one page.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping

import msgspec
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from byrote.service.http.endpoint import JSON, RouteApp
from byrote.service.http.gate import Gate, problem, refused
from byrote.service.http.openapi import describe
from byrote.service.routes.table import ENDPOINTS
from byrote.service.routes.workers import VERBS
from byrote.service.service import Service

GZIP_FROM = 2_048


class _ByMethod:
    """The routes of one path."""

    __name__ = "routes"  # Starlette requires one.

    def __init__(self, entries: Mapping[str, RouteApp]) -> None:
        self.entries = dict(entries)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await self.entries[method](scope, receive, send)


def build_app(service: Service, *, version: str) -> Starlette:
    """The app of one service; it lives as long as the app's lifespan."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with service.running():
            yield

    paths: dict[str, dict[str, RouteApp]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method] = RouteApp(service, endpoint)
    described = msgspec.json.encode(describe(ENDPOINTS, version=version))

    async def openapi(request: Request) -> Response:
        grant = await service.keyring.grant(request.headers.get("authorization"))
        with service.requests.take(grant.token.id):
            await service.keyring.spend(grant)
        return Response(described, media_type=JSON)

    async def livez(_request: Request) -> Response:
        # Needs neither a token nor the database: shows only that this process answers.
        status = "stopping" if service.stopping else "ok"
        return Response(msgspec.json.encode({"status": status}), media_type=JSON)

    context = service.context
    app = Starlette(
        routes=[
            *[Route(_slashed(p), _ByMethod(e), methods=list(e)) for p, e in paths.items()],
            Route("/openapi.json", openapi),
            Route("/livez", livez),
        ],
        middleware=[
            Middleware(Gate, lambda: context.ids(1)[0], context.clock),
            Middleware(GZipMiddleware, minimum_size=GZIP_FROM, compresslevel=4),
        ],
        exception_handlers={HTTPException: _problem},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


class _WorkerName(PathConvertor):
    """A name at the end of a path: it may contain slashes, but does not end in another route."""

    regex = ".*" + "".join(f"(?<!{verb})" for verb in VERBS)


register_url_convertor("byrote_worker", _WorkerName())


def _slashed(path: str) -> str:
    # Names of queues and workers may have slashes in them.
    if path.endswith("{worker}"):
        return path.replace("{worker}", "{worker:byrote_worker}")
    return path.replace("{name}", "{name:path}").replace("{worker}", "{worker:path}")


async def _problem(request: Request, error: Exception) -> Response:
    allow = (getattr(error, "headers", None) or {}).get("Allow")
    if allow:
        request.scope["byrote.allow"] = allow
    return problem(refused(error, request.scope), request.scope)
