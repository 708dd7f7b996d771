# SPDX-License-Identifier: MIT
"""What every request goes through: who asks, may they, is it whole, is it sound, how long it took.

Nothing is parsed before the token was looked at and the size is known. Every way out is either the
answer or a problem; whatever is neither is a fault of ours, and is logged under the request's id.
"""

import asyncio
import contextlib
import logging
import math
import re
from collections.abc import Callable
from typing import Any

import msgspec
import psycopg
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from byrote.core.errors import ByroteError
from byrote.core.ports import Clock
from byrote.service.access import Grant
from byrote.service.call import Answer, Call, Endpoint
from byrote.service.service import Service
from byrote.store.sync import Interrupted
from byrote.wire import problems
from byrote.wire.problems import FieldError, Refused, problem_of, refusal_of
from byrote.wire.terms import PATH_TYPES

_log = logging.getLogger("byrote.service")
access_log = logging.getLogger("byrote.access")

_AT = re.compile(r"^(?P<message>.*) - at `(?P<path>[^`]*)`$", re.DOTALL)
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_encode = msgspec.json.Encoder().encode
JSON = "application/json"


class Entry:
    """One route as an ASGI app."""

    def __init__(self, service: Service, endpoint: Endpoint) -> None:
        self._service = service
        self._endpoint = endpoint
        self._decode = None if endpoint.body is None else msgspec.json.Decoder(endpoint.body).decode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        grant = await self._service.keyring.grant(request.headers.get("authorization"))
        scope["byrote.token"] = grant.token.name
        grant.check_role(self._endpoint.roles)
        call = await self._call(request, grant)
        watch = (
            asyncio.ensure_future(_hang_up(receive, call.gone)) if self._endpoint.waits else None
        )
        try:
            answer = await self._answer(call)
        finally:
            if watch is not None:
                watch.cancel()
        if not isinstance(answer, Response):
            answer = Response(_encode(answer), self._endpoint.status, media_type=JSON)
        await answer(scope, receive, send)

    async def _answer(self, call: Call) -> Answer:
        if self._endpoint.waits or self._endpoint.streams:
            return await self._endpoint.handler(call)
        try:
            async with asyncio.timeout(self._service.options.request_s):
                return await self._endpoint.handler(call)
        except TimeoutError:
            raise problems.Unavailable("This took too long.", retry_after_s=5) from None

    async def _call(self, request: Request, grant: Grant) -> Call:
        raw = await self._read(request)
        return Call(
            self._service,
            grant,
            request.scope["byrote.id"],
            request.client.host if request.client else None,
            _checked(request.path_params),
            _query(request.query_params, self._endpoint.query),
            None if self._decode is None else _decoded(self._decode, raw),
            raw,
            request.headers,
            asyncio.get_running_loop().create_future(),
            request.stream if self._endpoint.streams else None,
        )

    async def _read(self, request: Request) -> bytes:
        if self._decode is None:
            return b""
        kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if kind != JSON or "content-encoding" in request.headers:
            raise problems.NotJson("Send plain JSON, as `Content-Type: application/json`.")
        options = self._service.options
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > options.body_max:
            raise _too_large(options.body_max)
        try:
            async with asyncio.timeout(options.body_s):
                return await _whole(request, options.body_max)
        except TimeoutError:
            raise problems.TooSlow("The body did not arrive in time.") from None


async def _hang_up(receive: Receive, gone: asyncio.Future[None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    if not gone.done():
        gone.set_result(None)


async def _whole(request: Request, limit: int) -> bytes:
    """The body. Starlette's own limit would answer with a page of its own, not with a problem."""
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise _too_large(limit)
    return b"".join(parts)


def _too_large(limit: int) -> problems.TooLarge:
    return problems.TooLarge(
        f"A body has at most {limit:,} bytes here. Send less at once, or a reference to it."
    )


def _checked(params: dict[str, str]) -> dict[str, str]:
    for name, kind in PATH_TYPES.items():
        if name in params:
            params[name] = params[name].lower()
            try:
                msgspec.convert(params[name], kind)
            except msgspec.ValidationError:
                raise problems.NotFound(f"{params[name][:100]!r} is no {name}.") from None
    return params


def _query(params: QueryParams, kind: type) -> Any:
    twice = [key for key in params if len(params.getlist(key)) > 1]
    if twice:
        raise problems.Invalid(f"{twice[0]}: give it once.")
    known = kind.__struct_fields__  # type: ignore[attr-defined]  # Queries are structs.
    if strange := [key for key in params if key not in known]:
        allowed = ", ".join(known) or "none"
        raise problems.Invalid(f"No parameter {strange[0][:100]!r}; there are: {allowed}.")
    try:
        return msgspec.convert(dict(params), kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None


def _decoded(decode: Callable[[bytes], Any], raw: bytes) -> Any:
    try:
        return decode(raw)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise problems.BadRequest(f"The body is not sound JSON: {error}.") from None
    except RecursionError:
        raise problems.BadRequest("The body is nested too deep.") from None


def _invalid(error: msgspec.ValidationError) -> problems.Invalid:
    said = str(error)
    if found := _AT.match(said):
        field = FieldError(found["path"], found["message"])
        return problems.Invalid(f"{field.path}: {field.message}.", errors=(field,))
    return problems.Invalid(f"{said}.", errors=(FieldError("$", said),))


class Gate:
    """The outermost layer: ids, limits, the access log, and every error as a problem."""

    def __init__(
        self, app: ASGIApp, service: Service, new_id: Callable[[], str], clock: Clock
    ) -> None:
        self._app = app
        self._service = service
        self._new_id = new_id
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        scope["byrote.id"] = given if _REQUEST_ID.fullmatch(given) else self._new_id()
        began, status = self._clock(), 0

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = scope["byrote.id"]
            await send(message)

        try:
            await self._inside(scope, receive, answered)
        except ClientDisconnect:
            status = 499
        except Exception as error:  # Whatever it is, the client gets an answer.
            if status:
                raise  # The answer is half out: only a broken connection can say so.
            await problem(refused(error, scope), scope)(scope, receive, answered)
        finally:
            self._log(scope, status, self._clock() - began)

    async def _inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service
        if (
            service.at_once
            >= service.options.at_once
            + service.bell.waiting
            + service.watch.waiting
            + service.calling.waiting
        ):
            raise problems.Unavailable("The service is busy.", retry_after_s=1)
        service.at_once += 1
        try:
            await self._app(scope, receive, send)
        finally:
            service.at_once -= 1

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        if access_log.isEnabledFor(logging.INFO):
            told = {
                "id": scope["byrote.id"],
                "method": scope["method"],
                "path": scope["path"][:300],
                "status": status,
                "ms": round(seconds * 1000, 2),
                "token": scope.get("byrote.token"),
                "client": scope["client"][0] if scope.get("client") else None,
            }
            access_log.info(
                "%s %s %s %s ms", told["method"], told["path"], status, told["ms"],
                extra={"byrote": told},
            )  # fmt: skip


def refused(error: Exception, scope: Scope) -> Refused:
    """Any error as what the client is told of it."""
    match error:
        case ByroteError():
            return refusal_of(error)
        case Interrupted():
            return problems.Unavailable("The database does not answer.", retry_after_s=2)
        case HTTPException(status_code=code):
            return _of_framework(code)
        case psycopg.OperationalError():
            return problems.Unavailable("The database does not answer.", retry_after_s=2)
        case psycopg.DataError() | psycopg.errors.CheckViolation():
            _log.warning("request %s: %s", scope["byrote.id"], type(error).__name__)
            return problems.Invalid("A value is beyond what the database takes.")
        case _:
            _log.error("request %s failed", scope["byrote.id"], exc_info=error)
            return problems.Broken("This is a fault of the service; its log has more.")


def _of_framework(code: int) -> Refused:
    match code:
        case 404:
            return problems.NotFound("There is nothing at this address; see /openapi.json.")
        case 405:
            return problems.MethodNotAllowed("This address does not take this method.")
        case _:
            return problems.BadRequest("The request cannot be read.")


def problem(error: Refused, scope: Scope) -> Response:
    """The answer that says no."""
    body = _encode(problem_of(error, request_id=scope.get("byrote.id", "")))
    response = Response(body, error.status, media_type=problems.MEDIA_TYPE)
    if error.retry_after_s is not None:
        response.headers["retry-after"] = str(math.ceil(error.retry_after_s))
    if error.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    if error.status in {408, 413}:
        # What is left of the body will not be read.
        response.headers["connection"] = "close"
    with contextlib.suppress(KeyError):
        response.headers["allow"] = scope["byrote.allow"]
    return response
