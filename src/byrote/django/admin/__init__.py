# SPDX-License-Identifier: MIT
"""The admin for operators: runs, workers, queues. Django imports this by its name."""

from byrote.django.admin import queues, runs, workers

__all__ = ["queues", "runs", "workers"]
