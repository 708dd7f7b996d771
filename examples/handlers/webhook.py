# SPDX-License-Identifier: MIT
"""Calls webhooks: signed, guarded against forged addresses, polite to a receiver that is busy.

Receivers tell a repetition by `webhook-id`, which is the run's id and the same in every attempt,
and a forgery by `webhook-signature`: base64 of HMAC-SHA256 over `id.timestamp.body`, to be refused
when the timestamp is more than five minutes off (`verify` below is the receiver's half).

An address that somebody sends may point into your own network. So: https only, no redirects, the
name is resolved once, every address it has must be a public one, and the connection goes to the
address that was checked, not to the name. Hosts of your own are named in WEBHOOK_TRUSTED_HOSTS.

Settings: WEBHOOK_SECRET, WEBHOOK_TRUSTED_HOSTS=host,host.
"""

import base64
import hashlib
import hmac
import http.client
import ipaddress
import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from byrote.sdk import Context, Fatal, Handlers, RetryLater

BODY_MAX = 64 * 1024
WINDOW_S = 300
RETRY_AFTER_MAX_S = 3_600.0
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
NAT64 = ipaddress.ip_network("64:ff9b::/96")

handlers = Handlers()

type Resolve = Callable[[str, int], Sequence[str]]


@handlers.handle("call_webhook")
def call_webhook(ctx: Context, payload: Any) -> dict[str, Any]:
    """Payload: {"url": "https://…", "body": any JSON}."""
    try:
        url, body = str(payload["url"]), json.dumps(payload["body"]).encode()
    except (KeyError, TypeError) as error:
        raise Fatal(f"This is no webhook: {error!r}") from error
    target = aim(url, resolve=addresses, trusted=trusted_hosts())
    secret = os.environ["WEBHOOK_SECRET"].encode()
    headers = signed(ctx.run_id, body, secret=secret, at=int(time.time()))
    patience = min(ctx.seconds_left or 20.0, 20.0)
    try:
        answer = post(target, body, headers, timeout=patience)
    except (OSError, http.client.HTTPException) as error:
        raise RetryLater(f"{target.host} did not answer: {error}") from error
    return settle(answer)


# -- Where it may go -----------------------------------------------------------------------------


class Target(NamedTuple):
    """An address that was checked, and what to ask there."""

    host: str
    address: str
    port: int
    path: str


def aim(url: str, *, resolve: Resolve, trusted: frozenset[str]) -> Target:
    """The checked target of a URL; Fatal when it is not one we go to."""
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port or 443
    except ValueError as error:
        raise Fatal(f"The URL cannot be read: {error}") from error
    if parts.scheme != "https" or not host or parts.username or parts.password:
        raise Fatal("A webhook's URL is https://host/path, without user and password.")
    try:
        found = resolve(host, port)
    except OSError as error:
        # A name that cannot be resolved is not tried in any other way.
        raise RetryLater(f"{host} cannot be resolved: {error}") from error
    if not found:
        raise RetryLater(f"{host} has no address.")
    if host not in trusted and not all(is_public(address) for address in found):
        raise Fatal(f"{host} leads to an address that is not public.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(host, found[0], port, path)


def addresses(host: str, port: int) -> list[str]:
    """Every address of a name, asked for once."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: str) -> bool:
    """Whether an address is out in the open internet, whatever it is wrapped in."""
    try:
        ip: Any = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if ip.version == 6:
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo and ip.teredo[1])
        if ip in NAT64:
            inner = ipaddress.ip_address(int(ip) & 0xFFFFFFFF)
        if inner:
            return is_public(str(inner))
        if ip.is_site_local:
            return False  # Long deprecated, and global as far as Python knows.
    return bool(ip.is_global and not ip.is_multicast and not ip.is_reserved)


def trusted_hosts() -> frozenset[str]:
    """Hosts that the operator vouches for."""
    named = os.environ.get("WEBHOOK_TRUSTED_HOSTS", "").split(",")
    return frozenset(host.strip() for host in named if host.strip())


# -- What it says --------------------------------------------------------------------------------


def signed(run_id: str, body: bytes, *, secret: bytes, at: int) -> dict[str, str]:
    """The headers by which a receiver knows us, and knows a repetition."""
    return {
        "webhook-id": run_id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{_signature(run_id, str(at), body, secret)}",
        "content-type": "application/json",
    }


def _signature(run_id: str, at: str, body: bytes, secret: bytes) -> str:
    text = f"{run_id}.{at}.".encode() + body
    return base64.b64encode(hmac.new(secret, text, hashlib.sha256).digest()).decode()


def verify(headers: Mapping[str, str], body: bytes, *, secret: bytes, now: float) -> bool:
    """The receiver's half: whether a call is ours, whole, and of the last five minutes."""
    at, given = headers.get("webhook-timestamp", ""), headers.get("webhook-signature", "")
    if not at.isdecimal() or abs(now - int(at)) > WINDOW_S:
        return False
    right = f"v1,{_signature(headers.get('webhook-id', ''), at, body, secret)}"
    return hmac.compare_digest(given.encode(), right.encode())


class Answer(NamedTuple):
    """What came back."""

    status: int
    retry_after: str | None


class _Checked(http.client.HTTPSConnection):
    """A connection to the address that was checked; the certificate must be the name's."""

    def __init__(self, target: Target, timeout: float) -> None:
        super().__init__(target.host, target.port, timeout=timeout)
        self._target = target

    def connect(self) -> None:
        plain = socket.create_connection((self._target.address, self.port), self.timeout)
        context = ssl.create_default_context()
        self.sock = context.wrap_socket(plain, server_hostname=self._target.host)


def post(target: Target, body: bytes, headers: Mapping[str, str], *, timeout: float) -> Answer:
    """Send it; redirects are answers like any other."""
    connection = _Checked(target, timeout)
    try:
        connection.request("POST", target.path, body, dict(headers))
        response = connection.getresponse()
        response.read(BODY_MAX)
        return Answer(response.status, response.getheader("Retry-After"))
    finally:
        connection.close()


def settle(answer: Answer) -> dict[str, Any]:
    """What follows: done, later (when the receiver says so), or never."""
    if 200 <= answer.status < 300:
        return {"status": answer.status}
    if answer.status in PASSING:
        after = seconds(answer.retry_after, now=time.time())
        raise RetryLater(f"The receiver answered {answer.status}.", after=after)
    raise Fatal(f"The receiver answered {answer.status}; it will not take this call.")


def seconds(retry_after: str | None, *, now: float) -> float | None:
    """A Retry-After header as seconds: a number or a date; bounded, None when there is none."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        asked = float(retry_after)
    else:
        try:
            asked = parsedate_to_datetime(retry_after).timestamp() - now
        except ValueError:
            return None
    return min(max(asked, 0.0), RETRY_AFTER_MAX_S)
