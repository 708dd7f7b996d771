# SPDX-License-Identifier: MIT
"""The outermost layer of the service: request ids, the access log, and every error as a problem.

An answer that goes out before the request's body was read would be lost with the connection:
clients that send everything before they read get a reset instead. So the rest of such a body is
read and dropped, up to a limit, before the connection is closed.
"""

import asyncio
import contextlib
import logging
import math
import re
from collections.abc import Callable

import msgspec
import psycopg
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from byrote.core.errors import ByroteError
from byrote.core.ports.executor import Clock
from byrote.store.runners.sync import Interrupted
from byrote.wire import problems
from byrote.wire.problems import Refused, problem_of, refusal_of

_log = logging.getLogger("byrote.service")
access_log = logging.getLogger("byrote.access")

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_encode = msgspec.json.Encoder().encode

DROPPED_MAX = 64 * 1024 * 1024
"""Bytes of a body that are read and dropped."""
DROPPED_S = 10.0
"""How long that may take."""


class Gate:
    """The outermost layer: ids, limits, the access log, and every error as a problem."""

    def __init__(self, app: ASGIApp, new_id: Callable[[], str], clock: Clock) -> None:
        self._app = app
        self._new_id = new_id
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        scope["byrote.id"] = given if _REQUEST_ID.fullmatch(given) else self._new_id()
        began, exchange = self._clock(), _Exchange(scope, headers, receive, send)
        try:
            exchange.check_framing()
            await self._app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            exchange.status = 499
        except Exception as error:  # The client gets an answer for any error.
            if exchange.status:
                raise  # The response is half sent: only closing the connection can report it.
            answer = problem(refused(error, scope), scope)
            await answer(scope, exchange.receive, exchange.send)
        finally:
            self._log(scope, exchange.status, self._clock() - began)

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        if access_log.isEnabledFor(logging.INFO):
            entry = {
                "id": scope["byrote.id"],
                "method": scope["method"],
                "path": scope["path"][:300],
                "status": status,
                "ms": round(seconds * 1000, 2),
                "token": scope.get("byrote.token"),
                "client": scope["client"][0] if scope.get("client") else None,
            }
            access_log.info(
                "%s %s %s %s ms token=%s client=%s id=%s",
                entry["method"], entry["path"], status, entry["ms"],
                entry["token"] or "-", entry["client"] or "-", entry["id"],
                extra={"byrote": entry},
            )  # fmt: skip


class _Exchange:
    """One request and its answer: records the status, and whether the body was read."""

    def __init__(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        self._id = scope["byrote.id"]
        self._receive = receive
        self._send = send
        self._length = headers.get("content-length")
        self._chunked = "transfer-encoding" in headers
        self._unread = self._chunked or self._length not in (None, "0")
        self.status = 0

    def check_framing(self) -> None:
        """Refuse a request that states its length in two ways: a proxy may use the other one."""
        if self._chunked and self._length is not None:
            raise problems.BadRequest("Send either Content-Length or Transfer-Encoding, not both.")

    async def receive(self) -> Message:
        """The next part of the body, or the notice that the client has disconnected."""
        message = await self._receive()
        if not message.get("more_body", False):
            self._unread = False
        return message

    async def send(self, message: Message) -> None:
        """A part of the answer; its end waits until the rest of the body was dropped."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self._id
            if self._unread:
                headers["connection"] = "close"
        elif self._unread and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            if self.status != problems.TooSlow.status:
                await self._drop()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def _drop(self) -> None:
        dropped = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DROPPED_S):
                while self._unread and dropped <= DROPPED_MAX:
                    dropped += len((await self.receive()).get("body", b""))


def refused(error: Exception, scope: Scope) -> Refused:
    """The refusal that the client receives for an error."""
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
    """The response for a refusal, as problem+json."""
    body = _encode(problem_of(error, request_id=scope.get("byrote.id", "")))
    response = Response(body, error.status, media_type=problems.MEDIA_TYPE)
    if error.retry_after_s is not None:
        response.headers["retry-after"] = str(math.ceil(error.retry_after_s))
    if error.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    with contextlib.suppress(KeyError):
        response.headers["allow"] = scope["byrote.allow"]
    return response
