# SPDX-License-Identifier: MIT
"""examples/fastapi_shop as its readers use it: a real uvicorn, a real worker, its own tests."""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from PIL import Image

from tests.examples.fastapi_shop import Shop, python, running_shop
from tests.support import until

MAC_LIKE = str(Path(__file__).parents[1] / "system" / "mac_like")
LATE = "update byrote_periodic_tasks set next_at = byrote_now() where name = 'nightly-report'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shop")


@pytest.fixture(scope="module")
def shop(server_url: str, folder: Path) -> Iterator[Shop]:
    """One shop for all tests of this module."""
    with running_shop(server_url, folder) as running:
        yield running
    # Checked at the end, when uvicorn has closed every connection.
    assert "ResourceWarning" not in (folder / "web.log").read_text(encoding="utf-8")


def test_an_order_is_mailed_and_packed_although_both_servers_are_busy_at_first(shop: Shop) -> None:
    shop.mail.answers.append(b"451 greylisted, come back\r\n")
    shop.warehouse.answers.append(503)
    status, made = shop.order("ada@example.com", quantity=2)
    ended = shop.ended(made["run"])
    until(lambda: len(shop.warehouse.calls) == 2, within=60)
    keys = {headers["Idempotency-Key"] for headers, _ in shop.warehouse.calls}
    [mail] = [mail for mail in shop.mail.mails if b"ada@example.com" in mail]

    assert status == 201
    assert (ended["status"], ended["attempts"]) == ("SUCCESSFUL", 2)
    assert b"You paid 9.90 EUR" in mail
    assert len(keys) == 1
    assert json.loads(shop.warehouse.calls[1][1])["quantity"] == 2


def test_an_order_that_is_rolled_back_leaves_no_run(shop: Shop) -> None:
    counts = "select (select count(*) from byrote_runs), (select count(*) from orders)"
    before = shop.db.execute(counts).fetchone()
    status, _ = shop.order("greedy@example.com", quantity=1_000)

    assert status == 409
    assert shop.db.execute(counts).fetchone() == before


def test_an_import_reports_its_progress_and_stores_every_product(shop: Shop) -> None:
    rows = [f"sku{n},Thing {n},1.{n % 100:02},5" for n in range(250)]
    body = "\n".join(["sku,title,price,stock", *rows]).encode()
    status, text = shop.call("/imports", body, "text/csv")
    ended = shop.ended(json.loads(text)["run"])

    assert status == 202
    assert (ended["status"], ended["percent"], ended["result"]) == ("SUCCESSFUL", 100, 250)
    found = shop.db.execute("select count(*) from products where sku like 'sku%'").fetchone()
    assert found == (250,)


def test_the_same_picture_is_shrunk_once(shop: Shop) -> None:
    content = io.BytesIO()
    Image.new("RGB", (400, 200), "navy").save(content, "PNG")
    kind = "application/octet-stream"
    _, text = shop.call("/pictures", content.getvalue(), kind)
    first = json.loads(text)["run"]
    shop.ended(first)
    _, text = shop.call("/pictures", content.getvalue(), kind)
    second = json.loads(text)["run"]
    status, thumbnail = shop.call(f"/runs/{second}/thumbnail")

    assert status == 200
    assert Image.open(io.BytesIO(thumbnail)).size == (64, 32)
    assert shop.ended(second)["attempts"] == 0
    assert shop.ended(second)["result"]["run"] == first


def test_the_report_is_written_when_its_night_has_come(shop: Shop) -> None:
    until(lambda: shop.db.execute(LATE).rowcount, within=60)

    [(text,)] = until(lambda: shop.db.execute("select text from reports").fetchall(), within=60)
    assert "orders" in text


def test_a_mail_that_failed_for_good_is_reported_to_sentry_once(shop: Shop) -> None:
    _, made = shop.order("nobody@example.com")
    ended = shop.ended(made["run"])
    reports = until(shop.reports, within=60)
    [report] = [one for one in reports if one["tags"].get("byrote.run") == made["run"]]

    assert (ended["status"], ended["attempts"]) == ("FAILED", 1)
    assert report["exception"]["values"][-1]["type"] == "Fatal"
    assert "refuses the address" in report["exception"]["values"][-1]["value"]


def test_the_status_of_an_unknown_run_is_404(shop: Shop) -> None:
    status, text = shop.call(f"/runs/{uuid4()}")

    assert status == 404
    assert "run" in json.loads(text)["detail"].lower()


def test_alembic_proposes_nothing_beside_byrotes_tables(shop: Shop) -> None:
    assert "No new upgrade operations detected" in python(shop.env, "-m", "alembic", "check")


def test_the_shop_also_runs_without_the_functions_of_linux(server_url: str, tmp_path: Path) -> None:
    with running_shop(server_url, tmp_path, python_path=MAC_LIKE) as shop:
        shop.mail.answers.append(b"451 greylisted, come back\r\n")
        _, made = shop.order("mac@example.com")
        _, text = shop.call("/imports", b"sku,title,price,stock\na,A,1.00,1\n", "text/csv")

        assert shop.ended(made["run"])["attempts"] == 2
        assert shop.ended(json.loads(text)["run"])["result"] == 1
        until(lambda: shop.warehouse.calls, within=60)


def test_the_shops_own_tests_pass(server_url: str) -> None:
    database = f"--override-ini=byrote_database_url={server_url}"
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}

    assert "4 passed" in python(env, "-m", "pytest", "-p", "no:cacheprovider", database)
