# SPDX-License-Identifier: MIT
"""What the shop does in the background. Every task may be run again without harm."""

import csv
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from itertools import batched

from django.core.mail import send_mail
from django.db import transaction
from django.db.models import Avg, Count
from django.utils import timezone

from byrote.django import progress, schedule, task
from shop.models import Book, Customer, Import, Report

ROWS = 100
"""Rows that are imported in one transaction."""


@task(queue_name="mail", max_attempts=5, timeout="30s")
def welcome(customer_id: int) -> str:
    """Greet a customer. The mark is set with the mail, so a second run sends no second one."""
    with transaction.atomic():
        customer = Customer.objects.select_for_update().get(pk=customer_id)
        if customer.welcomed_at is not None:
            return "welcomed before"
        send_mail("Welcome", "Good to have you here.", None, [customer.email])
        customer.welcomed_at = timezone.now()
        customer.save()
    return "welcomed"


@task(max_attempts=3, timeout="10m")
def import_books(import_id: int) -> dict[str, int]:
    """Import a file. A worker that dies midway is followed by one that goes on where it was."""
    job = Import.objects.get(pk=import_id)
    rows = list(csv.DictReader(job.text.splitlines()))
    for some in batched(rows[job.done :], ROWS):
        # Books and the mark are one transaction: there is no row that counts and is not there.
        with transaction.atomic():
            job.refused += [refusal for row in some if (refusal := _store(row)) is not None]
            job.done += len(some)
            job.save()
        progress(job.done, len(rows), "importing", refused=len(job.refused))
    return {"imported": job.done - len(job.refused), "refused": len(job.refused)}


def _store(row: dict[str, str]) -> str | None:
    try:
        known = {"title": row["title"], "price": Decimal(row["price"])}
        Book.objects.update_or_create(isbn=row["isbn"], defaults=known)
    except (KeyError, TypeError, InvalidOperation):
        return f"not a book: {row}"
    return None


@task(queue_name="reports", max_attempts=3)
def nightly_report(day: str | None = None) -> str:
    """Write the report of a day, or of yesterday; written again, it replaces the one there was."""
    when = timezone.localdate() - timedelta(days=1) if day is None else date.fromisoformat(day)
    books = Book.objects.aggregate(number=Count("pk"), price=Avg("price"))
    customers = Customer.objects.count()
    text = f"{customers} customers, {books['number']} books at {books['price'] or 0:.2f} on average"
    Report.objects.update_or_create(day=when, defaults={"text": text})
    return text


# In TIME_ZONE. Any worker lets it tick; change or pause it in the admin.
schedule("nightly-report", nightly_report, cron="0 3 * * *")
