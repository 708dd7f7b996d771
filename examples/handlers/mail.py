# SPDX-License-Identifier: MIT
"""Sends mail. Idempotent as far as mail can be: a run that was sent is not sent again.

The sending is a durable step: an attempt that comes after one which got that far finds it in the
ledger and does not send. Should a worker die between the server's "250" and the ledger, the second
copy has the same Message-ID, by which receivers drop it.

Settings: SMTP_HOST, SMTP_PORT, SMTP_USER, SMTP_PASSWORD, SMTP_STARTTLS=1, MAIL_FROM.
"""

import os
import smtplib
import ssl
from email.message import EmailMessage
from typing import Any

from byrote.sdk import Context, Fatal, Handlers, RetryLater

handlers = Handlers()


@handlers.handle("send_mail")
def send_mail(ctx: Context, payload: Any) -> dict[str, Any]:
    """Payload: {"to": ["a@example.com"], "subject": "hi", "text": "…"}."""
    message = message_of(payload, sender=os.environ["MAIL_FROM"], run_id=ctx.run_id)
    refused = ctx.step("send", deliver, message)
    return {"message_id": str(message["Message-ID"]), "refused": refused}


def message_of(payload: Any, *, sender: str, run_id: str) -> EmailMessage:
    """The message; what makes no sense will make none later either, so it is Fatal."""
    message = EmailMessage()
    try:
        message["From"] = sender
        message["To"] = ", ".join(payload["to"])
        message["Subject"] = payload["subject"]
        message["Message-ID"] = f"<{run_id}@{sender.rpartition('@')[2]}>"
        message.set_content(payload["text"])
    except (KeyError, TypeError, ValueError) as error:
        raise Fatal(f"This is no mail: {error!r}") from error
    return message


def deliver(message: EmailMessage) -> list[str]:
    """Hand the message over; gives the recipients the server would not take."""
    port = int(os.environ.get("SMTP_PORT", "25"))
    try:
        with smtplib.SMTP(os.environ["SMTP_HOST"], port, timeout=20) as server:
            if os.environ.get("SMTP_STARTTLS"):
                server.starttls(context=ssl.create_default_context())
            if user := os.environ.get("SMTP_USER"):
                server.login(user, os.environ["SMTP_PASSWORD"])
            return sorted(server.send_message(message))
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        raise _verdict(min(codes), f"no recipient was accepted: {codes}") from error
    except smtplib.SMTPResponseException as error:
        raise _verdict(error.smtp_code, f"the server said {error.smtp_code}") from error
    except (OSError, smtplib.SMTPException) as error:
        raise RetryLater(f"the mail server did not answer: {error}") from error


def _verdict(code: int, why: str) -> Exception:
    # 4xx is "not now", 5xx is "never": RFC 5321, 4.2.1.
    return RetryLater(why) if 400 <= code < 500 else Fatal(why)
