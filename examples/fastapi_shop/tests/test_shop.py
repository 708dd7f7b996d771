# SPDX-License-Identifier: MIT
"""The shop's own tests: `pytest`. They start a PostgreSQL for the session."""

import asyncio
import smtplib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from fastapi.testclient import TestClient
from PIL import Image
from shop import tasks, web
from shop.models import Base, Product
from sqlalchemy import NullPool
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker, create_async_engine

from byrote import App
from byrote.testing import assert_enqueued, assert_not_enqueued, captured_tasks, context, run_tasks

RECEIPT = tasks.Receipt(UUID(int=7), "ada@example.com", Decimal("9.90"))


def test_a_busy_mail_server_is_tried_again(
    byrote_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [smtplib.SMTPDataError(451, b"busy"), None]
    sent = []

    def send_message(_server: smtplib.SMTP, mail: object) -> None:
        if (reply := replies.pop(0)) is not None:
            raise reply
        sent.append(mail)

    monkeypatch.setattr(smtplib.SMTP, "connect", lambda *_: (220, b"test"))
    monkeypatch.setattr(smtplib.SMTP, "send_message", send_message)
    monkeypatch.setattr(smtplib.SMTP, "__exit__", lambda *_: None)
    tasks.send_receipt.enqueue(RECEIPT)
    [run] = run_tasks(byrote_app)

    assert run.attempts == 2
    assert [str(mail["To"]) for mail in sent] == ["ada@example.com"]


def test_a_thumbnail_keeps_the_proportions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MEDIA", tmp_path)
    Image.new("RGB", (200, 100), "red").save(tmp_path / "red", "PNG")
    ctx = context()
    made = tasks.thumbnail(ctx, "red", 50)

    assert (made["width"], made["height"]) == (50, 25)
    assert ctx.artifacts["thumbnail.png"].read().startswith(b"\x89PNG")


@pytest.fixture
def client(byrote_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """The web interface on the test database, with one product in stock."""
    connect = psycopg.conninfo.conninfo_to_dict(byrote_database)
    database = {name: connect[name] for name in ("host", "port", "user") if name in connect}
    database["database"] = connect["dbname"]
    engine = create_async_engine("postgresql+asyncpg://", connect_args=database, poolclass=NullPool)
    monkeypatch.setattr(web, "sessions", async_sessionmaker(engine, expire_on_commit=False))
    asyncio.run(fill(engine))
    with TestClient(web.web) as client:
        yield client


async def fill(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.drop_all)
        await connection.run_sync(Base.metadata.create_all)
    async with async_sessionmaker(engine).begin() as session:
        session.add(Product(sku="tea", title="Tea", price=Decimal("4.95"), stock=3))


def test_an_order_sends_a_receipt_and_a_message(client: TestClient) -> None:
    with captured_tasks(tasks.app):
        reply = client.post("/orders", json={"email": "a@b.c", "sku": "tea", "quantity": 2})
        receipt = tasks.Receipt(UUID(reply.json()["id"]), "a@b.c", Decimal("9.90"))

        assert reply.status_code == 201
        assert_enqueued(tasks.app, tasks.send_receipt, receipt)
        assert_enqueued(tasks.app, tasks.notify_warehouse, UUID(reply.json()["id"]), "tea", 2)


def test_an_order_of_an_unknown_product_sends_nothing(client: TestClient) -> None:
    with captured_tasks(tasks.app):
        reply = client.post("/orders", json={"email": "a@b.c", "sku": "gold", "quantity": 1})

        assert reply.status_code == 404
        assert_not_enqueued(tasks.app, tasks.send_receipt)
