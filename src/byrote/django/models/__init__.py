# SPDX-License-Identifier: MIT
"""Byrote's tables as Django models, for queries, the admin, and tests that empty tables.

0001_schema.sql defines the tables; the models describe them, one module per section of that file.
Do not save or delete through the ORM: only Byrote's statements move runs. Columns keep their names.
"""

from byrote.django.models.artifacts import Artifact, Blob, Memo, Provenance
from byrote.django.models.events import ChainLink, Event, RunEvent
from byrote.django.models.runs import STATUSES, ArchivedRun, DeadRun, Run, TaskRun
from byrote.django.models.service import AuditEntry, Depth, KeyedReply, Stat, Token
from byrote.django.models.state import Once, Output, Progress, Signal, Step, Watched
from byrote.django.models.work import PeriodicTask, Queue, UnservedTask, Worker

__all__ = [
    "STATUSES",
    "ArchivedRun",
    "Artifact",
    "AuditEntry",
    "Blob",
    "ChainLink",
    "DeadRun",
    "Depth",
    "Event",
    "KeyedReply",
    "Memo",
    "Once",
    "Output",
    "PeriodicTask",
    "Progress",
    "Provenance",
    "Queue",
    "Run",
    "RunEvent",
    "Signal",
    "Stat",
    "Step",
    "TaskRun",
    "Token",
    "UnservedTask",
    "Watched",
    "Worker",
]
