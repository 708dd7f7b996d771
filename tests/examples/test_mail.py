# SPDX-License-Identifier: MIT
"""The sample that sends mail, against an SMTP server, through a service and a worker."""

import email
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from byrote.core.state import Status
from byrote.sdk import Retry
from tests.examples.smtp import MailServer
from tests.sdk.harness import Db, Service, StartSdkWorker
from tests.support import count, until

RETRY = Retry(attempts=3, delay_first=0.0)
MAIL: dict[str, Any] = {"to": ["ada@example.com"], "subject": "Grüße", "text": "Hello.\n"}


@pytest.fixture
def server() -> Iterator[MailServer]:
    made = MailServer()
    yield made
    made.close()


@pytest.fixture
def mailing(service: Service, server: MailServer, start_sdk_worker: StartSdkWorker) -> Service:
    """A service with a worker that sends mail."""
    environ = {"SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(server.port)}
    start_sdk_worker(
        service.url,
        service.token,
        handlers="examples.handlers.mail:handlers",
        environ={**environ, "MAIL_FROM": "shop@example.com"},
    )
    return service


def test_a_mail_arrives_with_the_runs_id(mailing: Service, server: MailServer) -> None:
    run = mailing.client.enqueue("send_mail", MAIL)
    result = mailing.client.result(run.id, 30)
    [mail] = [email.message_from_bytes(raw) for raw in server.mails]

    assert mail["Message-ID"] == result["message_id"] == f"<{run.id}@example.com>"
    assert mail["To"] == "ada@example.com"
    assert str(mail.get_payload(decode=True), "utf-8").strip() == "Hello."


def test_a_server_that_is_busy_is_tried_again(mailing: Service, server: MailServer) -> None:
    server.answers = [b"451 later\r\n"]
    run = mailing.client.enqueue("send_mail", MAIL, retry=RETRY)
    mailing.client.result(run.id, 30)

    assert len(server.mails) == 1
    assert mailing.client.get(run.id).charged == 2


def test_a_mail_that_is_refused_for_good_is_a_dead_letter(
    mailing: Service, server: MailServer
) -> None:
    server.answers = [b"554 spam\r\n"]
    bad = [MAIL, {**MAIL, "to": ["nobody@example.com"]}, {**MAIL, "subject": "a\nBcc: b"}, {}]
    runs = [mailing.client.enqueue("send_mail", mail, retry=RETRY) for mail in bad]
    ended = [mailing.client.wait(run.id, 30) for run in runs]

    assert [(run.status, run.charged) for run in ended] == [(Status.FAILED, 1)] * 4
    assert server.mails == []


def test_a_mail_that_was_sent_is_not_sent_by_a_later_attempt(
    mailing: Service, server: MailServer, db: Db, start_sdk_worker: StartSdkWorker
) -> None:
    """The worker dies after the step that sends was stored, and before the run was finished."""
    environ = {"SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(server.port)}
    environ["MAIL_FROM"] = "shop@example.com"
    worker = start_sdk_worker(
        mailing.url,
        mailing.token,
        handlers="tests.examples.lingering:handlers",
        environ=environ,
        queues="slow",
        lease="1s",
    )
    run = mailing.client.enqueue("send_and_linger", MAIL, queue="slow")
    until(lambda: count(db, "byrote_steps"), 20)
    worker.signal(signal.SIGKILL)
    start_sdk_worker(
        mailing.url,
        mailing.token,
        handlers="tests.examples.lingering:handlers",
        environ=environ,
        queues="slow",
        lease="1s",
    )

    assert mailing.client.result(run.id, 40)["message_id"] == f"<{run.id}@example.com>"
    assert len(server.mails) == 1
