# SPDX-License-Identifier: MIT
"""Checks every request: token, rights, size, content and time limit.

Nothing is parsed before the token was checked and the size is known. Every request ends with an
answer or a problem; any other exception is a bug in the service, and is logged under the request's
id.
"""

import asyncio
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from byrote.service.http.auth import Grant
from byrote.service.http.offload import check_values, is_heavy
from byrote.service.http.request import Endpoint, RequestContext
from byrote.service.http.slots import Slot
from byrote.service.service import Service
from byrote.wire import problems
from byrote.wire.problems import FieldError
from byrote.wire.terms import CASELESS, PATH_TYPES, Name

_AT = re.compile(r"^(?P<message>.*) - at `(?P<path>[^`]*)`$", re.DOTALL)
_encode = msgspec.json.Encoder().encode
JSON = "application/json"


class RouteApp:
    """One route as an ASGI app."""

    def __init__(self, service: Service, endpoint: Endpoint) -> None:
        self._service = service
        self._endpoint = endpoint
        self._decode = None if endpoint.body is None else msgspec.json.Decoder(endpoint.body).decode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request, service = Request(scope, receive), self._service
        grant = await service.keyring.grant(request.headers.get("authorization"))
        scope["byrote.token"] = grant.token.name
        # Slots are taken before anything is awaited on behalf of the token.
        slots = service.probes if self._endpoint.probe else service.requests
        with slots.take(grant.token.id) as slot:
            if not self._endpoint.lasts:
                await self._exchange(request, grant, slot, send)
                return
            with service.streams.take(grant.token.id):
                await self._exchange(request, grant, slot, send)

    async def _exchange(self, request: Request, grant: Grant, slot: Slot, send: Send) -> None:
        keyring, endpoint = self._service.keyring, self._endpoint
        await keyring.spend(grant)
        grant.check_role(endpoint.roles)
        call = await self._call(request, grant, slot)
        # The body may have taken longer to arrive than rights are cached.
        await call.confirm()
        if not (endpoint.waits or endpoint.lasts or endpoint.streams):
            answer = await self._answer(call, request.receive)
            await answer(request.scope, request.receive, send)
            return
        with keyring.watched(grant, call.gone):
            answer = await self._answer(call, request.receive)
            if endpoint.lasts:
                slot.leave()
            await answer(request.scope, request.receive, send)

    async def _answer(self, call: RequestContext, receive: Receive) -> Response:
        watch: asyncio.Future[None] | None = None
        if self._endpoint.waits:
            watch = asyncio.ensure_future(_hang_up(receive, call.gone))
        handling = asyncio.ensure_future(self._endpoint.handler(call))
        try:
            # Not a timeout around the handler: cancelling a statement when the database hangs
            # takes psycopg up to 37 s (measured), which the client would have to wait for.
            await asyncio.wait({handling}, timeout=self._seconds())
            if not handling.done():
                raise problems.Unavailable("This took too long.", retry_after_s=5)
            answer = handling.result()
        finally:
            if not handling.done():
                self._service.abandon(handling)
            if watch is not None:
                watch.cancel()
        if isinstance(answer, Response):
            return answer
        return Response(_encode(answer), self._endpoint.status, media_type=JSON)

    def _seconds(self) -> float:
        options = self._service.options
        if self._endpoint.streams:
            return options.request_s + options.upload_s(options.artifact_max)
        return options.request_s + (options.wait_max_s if self._endpoint.waits else 0.0)

    async def _call(self, request: Request, grant: Grant, slot: Slot) -> RequestContext:
        raw = await self._read(request)
        heavy = is_heavy(raw)
        body = None
        if self._decode is not None:
            read = partial(_decoded, self._decode, raw, self._service.options.values_max)
            offload = self._service.offload
            body = await offload.run(grant.token.id, read) if heavy else read()
        return RequestContext(
            self._service,
            grant,
            request.scope["byrote.id"],
            request.client.host if request.client else None,
            _checked(request.path_params),
            _query(request.query_params, self._endpoint.query),
            body,
            raw,
            request.headers,
            asyncio.get_running_loop().create_future(),
            slot,
            heavy,
            request.stream if self._endpoint.streams else None,
        )

    async def _read(self, request: Request) -> bytes:
        if self._decode is None:
            return b""
        media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if media_type != JSON or "content-encoding" in request.headers:
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
    """Read the body. Starlette's own limit would answer with its own page, not with a problem."""
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
    for name, type_ in PATH_TYPES.items():
        if name in params:
            if name in CASELESS:
                params[name] = params[name].lower()
            try:
                msgspec.convert(params[name], type_)
            except msgspec.ValidationError:
                what = "name" if type_ is Name else name
                raise problems.NotFound(f"{params[name][:100]!r} is not a {what}.") from None
    return params


def _query(params: QueryParams, type_: type) -> Any:
    twice = [key for key in params if len(params.getlist(key)) > 1]
    if twice:
        raise problems.Invalid(f"{twice[0]}: give it once.")
    known = type_.__struct_fields__  # type: ignore[attr-defined]  # Queries are structs.
    if strange := [key for key in params if key not in known]:
        allowed = ", ".join(known) or "none"
        raise problems.Invalid(f"No parameter {strange[0][:100]!r}; there are: {allowed}.")
    try:
        return msgspec.convert(dict(params), type_, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None


def _decoded(decode: Callable[[bytes], Any], raw: bytes, values_max: int) -> Any:
    check_values(raw, values_max)
    try:
        return decode(raw)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise problems.BadRequest(f"The body is not sound JSON: {error}.") from None
    except RecursionError:
        raise problems.BadRequest("The body is nested too deep.") from None


def _invalid(error: msgspec.ValidationError) -> problems.Invalid:
    reason = str(error)
    if found := _AT.match(reason):
        field = FieldError(found["path"], found["message"])
        return problems.Invalid(f"{field.path}: {field.message}.", errors=(field,))
    return problems.Invalid(f"{reason}.", errors=(FieldError("$", reason),))
