# SPDX-License-Identifier: MIT
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from shop.tasks import nightly_report


class Command(BaseCommand):
    help = "Enqueue the report of yesterday. A timer starts this every night; see README.md."

    def handle(self, *_args: Any, **_options: Any) -> None:
        yesterday = timezone.localdate() - timedelta(days=1)
        result = nightly_report.enqueue(yesterday.isoformat())
        self.stdout.write(result.id)
