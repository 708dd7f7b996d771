# SPDX-License-Identifier: MIT
"""What the shop does in the background. Every task may be run again without harm."""

import csv
import io
import os
import smtplib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.message import EmailMessage
from itertools import batched
from pathlib import Path
from uuid import UUID

import httpx2
from PIL import Image
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from byrote import App, Context, Fatal, Retry, RetryLater
from shop.database import sessions
from shop.models import Import, Order, Product, Report
from shop.reporting import start_reporting

ROWS = 100
"""Rows that are imported in one transaction."""
MEDIA = Path(os.environ.get("SHOP_MEDIA", "media"))
"""Where uploaded pictures are stored, under their hashes."""

app = App()
start_reporting(app)


@dataclass
class Receipt:
    """What the mail to a customer needs."""

    order: UUID
    email: str
    total: Decimal


@app.task(queue="mail", timeout="30s", retry=Retry(attempts=5, delay_first="30s"))
def send_receipt(ctx: Context, receipt: Receipt) -> str:
    """Mail a receipt. A step is not repeated, so a later attempt does not send it again."""
    mail = EmailMessage()
    mail["From"], mail["To"] = "shop@example.com", receipt.email
    mail["Subject"] = f"Your order {receipt.order}"
    mail["Message-ID"] = f"<{ctx.run_id}@shop.example.com>"
    mail.set_content(f"Thank you. You paid {receipt.total} EUR.")
    return ctx.step("send", send, mail)


def send(mail: EmailMessage) -> str:
    host, _, port = os.environ.get("SMTP_SERVER", "localhost:25").partition(":")
    try:
        with smtplib.SMTP(host, int(port), timeout=20) as server:
            server.send_message(mail)
    except smtplib.SMTPRecipientsRefused as error:
        raise Fatal(f"The mail server refuses the address: {error.recipients}") from error
    except smtplib.SMTPResponseException as error:
        if error.smtp_code >= 500:
            raise Fatal(f"The mail server refuses the mail: {error.smtp_error!r}") from error
        raise RetryLater(str(error), after="1s") from error
    return str(mail["Message-ID"])


@app.task(queue="webhooks", timeout="15s", retry=Retry(attempts=8, delay_first="1s"))
async def notify_warehouse(ctx: Context, order: UUID, sku: str, quantity: int) -> int:
    """Tell the warehouse what to pack. It recognises a repetition by the idempotency key."""
    body = {"order": str(order), "sku": sku, "quantity": quantity}
    async with httpx2.AsyncClient(timeout=10) as client:
        reply = await client.post(
            os.environ["WAREHOUSE_URL"], json=body, headers={"Idempotency-Key": ctx.run_id}
        )
    reply.raise_for_status()
    return reply.status_code


@app.task(queue="pictures", timeout="1m", memo="7d")
def thumbnail(ctx: Context, picture: str, width: int) -> dict[str, str | int]:
    """Shrink a picture, given by its hash. The same picture is computed once in seven days."""
    with Image.open(MEDIA / picture) as image:
        image.thumbnail((width, width))
        content = io.BytesIO()
        image.save(content, "PNG")
    ctx.artifact("thumbnail.png", content.getvalue(), "image/png")
    # A cached answer has no artifacts, so the result names the run that has them.
    return {"run": ctx.run_id, "width": image.width, "height": image.height}


@app.task(timeout="10m", retry=Retry(attempts=3))
async def import_products(ctx: Context, import_id: UUID) -> int:
    """Store the products of a file. A later attempt continues after the last stored row."""
    async with sessions() as session:
        upload = await session.get_one(Import, import_id)
        rows = list(csv.DictReader(io.StringIO(upload.text)))
        for some in batched(rows[upload.done :], ROWS, strict=False):
            statement = insert(Product).values(
                [
                    {
                        "sku": row["sku"],
                        "title": row["title"],
                        "price": Decimal(row["price"]),
                        "stock": int(row["stock"]),
                    }
                    for row in some
                ]
            )
            new = {name: statement.excluded[name] for name in ("title", "price", "stock")}
            await session.execute(statement.on_conflict_do_update(index_elements=["sku"], set_=new))
            upload.done += len(some)
            await session.commit()
            ctx.progress(upload.done, len(rows), "importing")
    return len(rows)


@app.task(queue="reports", retry=Retry(attempts=3))
async def nightly_report(day: date | None = None) -> str:
    """Write the report of a day, or of yesterday. A second run replaces the first one's report."""
    day = day or datetime.now(UTC).date() - timedelta(days=1)
    async with sessions.begin() as session:
        made = select(func.count(), func.coalesce(func.sum(Order.total), 0))
        number, total = (
            await session.execute(made.where(func.date(Order.created_at) == day))
        ).one()
        text = f"{number} orders, {total} EUR"
        await session.merge(Report(day=day, text=text))
    return text


# Every worker includes the scheduler; any number of workers create one run for each night.
app.schedule("nightly-report", nightly_report.spec(), cron="0 3 * * *", zone="Europe/Berlin")
