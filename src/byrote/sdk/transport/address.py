# SPDX-License-Identifier: MIT
"""The address of the service and its token, shared by both clients and the worker's store."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import jitter, new_id
from byrote.assembly.settings import resolve
from byrote.core.errors import BadOption
from byrote.sdk.transport.request import LostResponse, SendRequest, ServiceResponse, Terms

CONNECT_S = 5.0
RETRY_AFTER_MAX_S = 60.0
PLAIN = {"Accept-Encoding": "identity"}
"""Compressing a batch of leases takes the service longer than claiming it; a file is as it is."""
UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Errors after which the request has certainly not arrived."""


class ServiceAddress(NamedTuple):
    """A service's address, and the token that opens it."""

    url: str
    token: str | None

    @classmethod
    def find(cls, url: str | None, token: str | None) -> "ServiceAddress":
        """As passed, or else from BYROTE_SERVICE_URL and BYROTE_SERVICE_TOKEN."""
        settings = resolve({"service_url": url, "service_token": token}).settings
        if not settings.service_url:
            raise BadOption("No service is named; give its URL or set BYROTE_SERVICE_URL.")
        parts = urlsplit(settings.service_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadOption(
                f"{settings.service_url!r} is not an address of a service; "
                "write http://host:8000 or https://host."
            )
        return cls(settings.service_url.rstrip("/"), settings.service_token)

    @property
    def redacted(self) -> str:
        """The address without user and password, for messages."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def terms(self, timeout_s: float) -> Terms:
        """Return the terms of scripts: clock, jitter, ids and time limit."""
        return Terms(self.redacted, monotonic, jitter, new_id, timeout_s)

    def options(self, verify: Any = True) -> dict[str, Any]:
        """Options of the HTTP client."""
        headers = {"User-Agent": "byrote", "Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return {
            "base_url": self.url,
            "headers": headers,
            "verify": verify,
            # A minute, so that a client that calls every few seconds reuses its connection.
            "limits": httpx2.Limits(max_connections=100, keepalive_expiry=60.0),
        }

    def request(
        self, http: httpx2.Client | httpx2.AsyncClient, todo: SendRequest
    ) -> httpx2.Request:
        """A request as the HTTP client sends it."""
        call, headers = todo.call, todo.headers
        if callable(call.body):
            headers = {**headers, "Content-Type": "application/octet-stream"}
        if call.sink is not None:
            headers = {**headers, **PLAIN}
        return http.build_request(
            call.method,
            call.path,
            params=call.query or None,
            content=call.body() if callable(call.body) else call.body,
            headers=headers,
            timeout=httpx2.Timeout(todo.within_s, connect=min(CONNECT_S, todo.within_s)),
        )


def answer_of(response: httpx2.Response) -> ServiceResponse:
    """A response as scripts see it."""
    return ServiceResponse(response.status_code, response.content, retry_after(response.headers))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the service asks to wait; None for a date or an invalid value."""
    given = headers.get("Retry-After", "")
    return min(float(given), RETRY_AFTER_MAX_S) if given.isdecimal() else None


def lost_of(error: httpx2.TransportError) -> LostResponse:
    """A broken exchange as scripts see it."""
    why = f"{type(error).__name__} {error}".strip()
    return LostResponse(" ".join(why.split())[:300], sent=not isinstance(error, UNSENT))
