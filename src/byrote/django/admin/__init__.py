# SPDX-License-Identifier: MIT
"""Admin pages for operators: runs, workers, queues, periodic tasks. Django imports it by name."""

from byrote.django.admin import periodic, queues, runs, workers

__all__ = ["periodic", "queues", "runs", "workers"]
