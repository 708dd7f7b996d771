# SPDX-License-Identifier: MIT
"""Runs: the queue, the archive, dead letters, and the view over all three."""

from typing import ClassVar

from django.db import models

from byrote.core.state import Status
from byrote.django.schema.fields import ArrayOf

STATUSES = [(status.value, status.value.capitalize()) for status in Status]


class _Run(models.Model):
    """The columns that every table of runs has."""

    result_id = models.UUIDField(primary_key=True)
    workflow_id = models.UUIDField(null=True)
    replay_of = models.UUIDField(null=True)
    lease_token = models.UUIDField(null=True)
    rank = models.BigIntegerField()
    run_after = models.DateTimeField()
    enqueued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    last_attempted_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    leased_until = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    timeout_ms = models.BigIntegerField(null=True)
    task_version = models.IntegerField()
    attempts = models.IntegerField(default=0)
    charged = models.IntegerField(default=0)
    losses = models.IntegerField(default=0)
    max_attempts = models.IntegerField()
    moves = models.IntegerField(default=1)
    priority = models.SmallIntegerField(default=0)
    status = models.TextField(choices=STATUSES)
    wait_reason = models.TextField(null=True)
    queue_name = models.TextField()
    task_path = models.TextField()
    leased_by = models.TextField(null=True)
    spec_hash = models.BinaryField()
    result_hash = models.BinaryField(null=True)
    worker_ids = ArrayOf("text", default=list)
    spec_json = models.TextField()
    return_json = models.TextField(null=True)
    errors_json = models.JSONField(null=True)
    retry_json = models.TextField(null=True)
    labels = models.JSONField(null=True)
    traceparent = models.TextField(null=True)
    as_of = models.DateTimeField(null=True)
    provenance = ArrayOf("integer", null=True)
    usage = models.JSONField(null=True)
    shadow = models.BooleanField(null=True)
    memo_of = models.UUIDField(null=True)
    unique_key = models.TextField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.task_path} {self.result_id}"


class Run(_Run):
    """A run in any of the three tables. A view: read only."""

    class Meta:
        managed = False
        db_table = "byrote_runs"
        default_permissions = ("view", "delete")
        permissions: ClassVar = [
            ("cancel_run", "Can cancel runs"),
            ("hurry_run", "Can let waiting runs go now"),
            ("replay_run", "Can replay runs"),
            ("requeue_run", "Can requeue all dead runs of a list"),
            ("retry_run", "Can retry dead runs"),
            ("verify_run", "Can replay runs and verify their results"),
        ]


class TaskRun(_Run):
    """A run that is in the queue, is running, or finished lately."""

    class Meta:
        db_table = "byrote_task_runs"
        default_permissions = ()


class ArchivedRun(_Run):
    """A run that finished some time ago."""

    class Meta:
        db_table = "byrote_archive"
        default_permissions = ()


class DeadRun(_Run):
    """A run that failed for good and waits for a person."""

    class Meta:
        db_table = "byrote_dead"
        default_permissions = ()
