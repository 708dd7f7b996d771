# SPDX-License-Identifier: MIT
"""The sample that calls webhooks: its address, its payload, its retries."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from byrote.core.state import Status
from byrote.sdk import Fatal, Retry, RetryLater
from examples.handlers import webhook
from tests.examples.receiver import Receiver, certificate
from tests.sdk.harness import Service, StartSdkWorker
from tests.support import count
from tests.worker.harness import await_row

SECRET = b"s3cret"
RETRY = Retry(attempts=3, delay_first=0.0)
NOWHERE: frozenset[str] = frozenset()

# fmt: off
INSIDE = [
    "0.0.0.0", "0.1.2.3",  # noqa: S104
     "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254",
    "127.0.0.1", "127.1.2.3", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
    "192.0.0.1", "192.0.2.1", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.51.100.7",
    "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "::ffff:7f00:1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.0.0.1",
    "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::",
    "2002:c0a8:101::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
    "", "localhost", "127.1", "0x7f000001", "2130706433", "017700000001", "1.2.3", "1.2.3.4.5",
]
OUTSIDE = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "172.32.0.1", "192.169.0.1",
    "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
]
# fmt: on


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_is_not_public(address: str) -> None:
    assert not webhook.is_public(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_an_address_outside_is_public(address: str) -> None:
    assert webhook.is_public(address)


class Names:
    """A resolver that answers otherwise each time it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)

    def __call__(self, _host: str, _port: int) -> Sequence[str]:
        return self._answers.pop(0)


def test_a_name_is_resolved_once_and_what_was_checked_is_called() -> None:
    rebinding = Names(["8.8.8.8"], ["127.0.0.1"])
    target = webhook.aim("https://evil.example/x?y=1", resolve=rebinding, trusted=NOWHERE)

    assert target == ("evil.example", "8.8.8.8", 443, "/x?y=1")


def test_one_address_inside_is_enough_to_stay_away() -> None:
    for found in (["8.8.8.8", "127.0.0.1"], ["::ffff:10.0.0.1"]):
        with pytest.raises(Fatal, match="not public"):
            webhook.aim("https://evil.example/", resolve=Names(found), trusted=NOWHERE)


@pytest.mark.parametrize(
    "url",
    ["http://example.com/", "ftp://example.com", "file:///etc/passwd", "https://", "gopher://x",
     "https://user:pass@example.com/", "https://example.com:99999/", "//example.com", "x"],
)  # fmt: skip
def test_only_plain_https_is_called(url: str) -> None:
    with pytest.raises(Fatal):
        webhook.aim(url, resolve=Names(["8.8.8.8"]), trusted=NOWHERE)


def test_a_name_that_cannot_be_resolved_is_tried_later_and_nowhere_else() -> None:
    def resolve(_host: str, _port: int) -> Sequence[str]:
        raise OSError("no such host")

    with pytest.raises(RetryLater):
        webhook.aim("https://example.com/", resolve=resolve, trusted=NOWHERE)
    with pytest.raises(RetryLater):
        webhook.aim("https://example.com/", resolve=Names([]), trusted=NOWHERE)


def test_a_signature_is_of_its_id_its_moment_and_its_body() -> None:
    headers = webhook.signed("run-1", b"{}", secret=SECRET, at=1_000)

    def right(now: float = 1_000, body: bytes = b"{}", **changed: str) -> bool:
        said = headers | {name.replace("_", "-"): value for name, value in changed.items()}
        return webhook.verify(said, body, secret=SECRET, now=now)

    assert right()
    assert right(now=1_299)
    assert not right(now=1_400)
    assert not right(now=600)
    assert not right(body=b"{ }")
    assert not right(webhook_id="run-2")
    assert not right(webhook_timestamp="1001")
    assert not right(webhook_signature="v1,")
    assert not webhook.verify(headers, b"{}", secret=b"other", now=1_000)
    assert not webhook.verify({}, b"{}", secret=SECRET, now=1_000)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [(None, None), ("7", 7.0), ("0", 0.0), ("99999999", 3_600.0), ("soon", None), ("-3", None),
     ("Thu, 01 Jan 1970 00:16:50 GMT", 10.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0)],
)  # fmt: skip
def test_a_retry_after_is_read_in_both_its_forms(said: str | None, seconds: float | None) -> None:
    assert webhook.seconds(said, now=1_000.0) == seconds


# -- For real --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.fixture
def receiver(credentials: tuple[Path, Path]) -> Iterator[Receiver]:
    made = Receiver(*credentials)
    yield made
    made.close()


@pytest.fixture
def calling(
    service: Service, credentials: tuple[Path, Path], start_sdk_worker: StartSdkWorker
) -> Service:
    """A service with a worker that calls webhooks, and may call localhost."""
    environ = {"SSL_CERT_FILE": str(credentials[0]), "WEBHOOK_SECRET": SECRET.decode()}
    start_sdk_worker(
        service.url,
        service.token,
        handlers="examples.handlers.webhook:handlers",
        environ={**environ, "WEBHOOK_TRUSTED_HOSTS": "localhost"},
    )
    return service


def call(service: Service, receiver: Receiver, **more: Any) -> str:
    payload = {"url": f"https://localhost:{receiver.port}/hook", "body": {"order": 42}}
    return str(service.client.enqueue("call_webhook", payload | more, retry=RETRY).id)


def test_a_receiver_can_verify_what_it_is_sent(calling: Service, receiver: Receiver) -> None:
    run = call(calling, receiver)
    assert calling.client.result(run, 30) == {"status": 200}
    [(headers, body)] = receiver.calls

    assert json.loads(body) == {"order": 42}
    assert headers["webhook-id"] == run
    assert webhook.verify(headers, body, secret=SECRET, now=time.time())


def test_a_busy_receiver_is_called_again_after_its_delay(
    calling: Service, receiver: Receiver, db: Any
) -> None:
    receiver.answers = [(429, {"Retry-After": "3600"})]
    run = call(calling, receiver)
    waiting = "select 1 from byrote_task_runs where status = 'WAITING'"
    await_row(db, waiting, within=20)
    shown = calling.client.get(run)
    assert (shown.run_after - shown.last_attempted_at).total_seconds() > 3_500  # type: ignore[operator]
    assert calling.client.retry(run) is True

    assert calling.client.result(run, 30) == {"status": 200}
    first, second = [headers["webhook-id"] for headers, _ in receiver.calls]
    assert first == second == run


def test_a_receiver_that_is_broken_for_a_moment_is_called_again(
    calling: Service, receiver: Receiver
) -> None:
    receiver.answers = [(503, {}), (500, {})]

    assert calling.client.result(call(calling, receiver), 30) == {"status": 200}
    assert len(receiver.calls) == 3


@pytest.mark.parametrize("answer", [(302, {"Location": "http://127.0.0.1/"}), (400, {}), (410, {})])
def test_a_refusal_is_final_and_a_redirect_is_not_followed(
    calling: Service, receiver: Receiver, answer: tuple[int, dict[str, str]]
) -> None:
    receiver.answers = [answer]
    ended = calling.client.wait(call(calling, receiver), 30)

    assert (ended.status, ended.charged, len(receiver.calls)) == (Status.FAILED, 1, 1)


def test_a_forged_address_is_not_called(calling: Service, receiver: Receiver, db: Any) -> None:
    urls = [f"https://127.0.0.1:{receiver.port}/", f"https://[::1]:{receiver.port}/"]
    ended = [calling.client.wait(call(calling, receiver, url=url), 30) for url in urls]

    assert [run.status for run in ended] == [Status.FAILED] * 2
    assert count(db, "byrote_dead") == 2
    assert receiver.calls == []
