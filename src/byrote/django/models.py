# SPDX-License-Identifier: MIT
"""Byrote's tables as Django sees them.

The SQL files are the truth; these describe it, for queries, the admin and tests that empty tables.
Nothing here is saved through the ORM: runs move by Byrote's statements. Columns keep their names.
"""

from typing import ClassVar

from django.db import models

from byrote.django.schema.fields import ArrayOf
from byrote.django.service_models import (
    AuditEntry,
    ChainLink,
    Depth,
    KeyedReply,
    Once,
    PeriodicTask,
    Progress,
    Stat,
    Token,
    UnservedTask,
)

__all__ = [
    "AuditEntry", "ChainLink", "Depth", "KeyedReply", "Once", "PeriodicTask", "Progress",
    "Stat", "Token", "UnservedTask",
]  # fmt: skip

STATUSES = [
    (name, name.capitalize())
    for name in ("WAITING", "READY", "RUNNING", "SUCCESSFUL", "FAILED", "CANCELLED")
]


class _Run(models.Model):
    """What every table of runs has."""

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
    """A run wherever it lies now: waiting, done, archived or dead. A view: only to be read."""

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
    """A run that is in the queue, under way, or has finished lately."""

    class Meta:
        db_table = "byrote_task_runs"
        default_permissions = ()


class ArchivedRun(_Run):
    """A run that has finished some time ago."""

    class Meta:
        db_table = "byrote_archive"
        default_permissions = ()


class DeadRun(_Run):
    """A run that failed for good and waits for a person."""

    class Meta:
        db_table = "byrote_dead"
        default_permissions = ()


class Event(models.Model):
    """One statement's worth of history: what happened to a set of runs."""

    seq = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    leased_until = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    schema = models.SmallIntegerField(default=1)
    kind = models.TextField()
    worker = models.TextField(null=True)
    runs = ArrayOf("uuid")
    attempts = ArrayOf("integer")
    moves = ArrayOf("integer")
    data = models.JSONField(null=True)
    digests = ArrayOf("bytea", null=True)

    class Meta:
        db_table = "byrote_events"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"


class RunEvent(models.Model):
    """What happened to one run, move by move. A view: only to be read."""

    pk = models.CompositePrimaryKey("seq", "place")
    seq = models.BigIntegerField()
    place = models.BigIntegerField()
    at = models.DateTimeField()
    kind = models.TextField()
    result_id = models.UUIDField()
    attempt = models.IntegerField()
    move = models.IntegerField()
    worker = models.TextField(null=True)
    lease_token = models.UUIDField(null=True)
    leased_until = models.DateTimeField(null=True)
    data = models.JSONField(null=True)
    schema = models.SmallIntegerField()
    digest = models.BinaryField(null=True)

    class Meta:
        managed = False
        db_table = "byrote_event_log"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.result_id}"


class Output(models.Model):
    """The end of what one attempt printed."""

    pk = models.CompositePrimaryKey("result_id", "attempt", "at")
    result_id = models.UUIDField()
    at = models.DateTimeField()
    stdout_dropped = models.BigIntegerField(default=0)
    stderr_dropped = models.BigIntegerField(default=0)
    attempt = models.IntegerField()
    stdout = models.TextField(default="")
    stderr = models.TextField(default="")

    class Meta:
        db_table = "byrote_outputs"
        default_permissions = ()

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.result_id}"


class Provenance(models.Model):
    """An environment that executed attempts."""

    provenance_id = models.IntegerField(primary_key=True)
    hash = models.BinaryField()
    doc = models.JSONField()

    class Meta:
        db_table = "byrote_provenance"
        default_permissions = ()

    def __str__(self) -> str:
        return f"environment {self.provenance_id}"


class Step(models.Model):
    """One line of a run's ledger."""

    pk = models.CompositePrimaryKey("result_id", "sequence")
    result_id = models.UUIDField()
    at = models.DateTimeField()
    wake_at = models.DateTimeField(null=True)
    sequence = models.IntegerField()
    attempt = models.IntegerField()
    open = models.BooleanField()
    kind = models.TextField()
    name = models.TextField()
    result_hash = models.BinaryField(null=True)
    result_json = models.TextField(null=True)
    place = models.TextField(null=True)
    args_hash = models.BinaryField(null=True)

    class Meta:
        db_table = "byrote_steps"
        default_permissions = ()

    def __str__(self) -> str:
        return f"step {self.sequence} of {self.result_id}"


class Signal(models.Model):
    """A signal that was sent to a run."""

    pk = models.CompositePrimaryKey("result_id", "signal_id")
    result_id = models.UUIDField()
    signal_id = models.UUIDField()
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    taken_by = models.IntegerField(null=True)
    name = models.TextField()
    payload_hash = models.BinaryField()
    payload_json = models.TextField()

    class Meta:
        db_table = "byrote_signals"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} to {self.result_id}"


class Artifact(models.Model):
    """What an attempt has stored under a name."""

    pk = models.CompositePrimaryKey("result_id", "attempt", "name")
    result_id = models.UUIDField()
    at = models.DateTimeField()
    size = models.BigIntegerField()
    attempt = models.IntegerField()
    name = models.TextField()
    hash = models.BinaryField()
    media_type = models.TextField()
    place = models.TextField()

    class Meta:
        db_table = "byrote_artifacts"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} of {self.result_id}"


class Blob(models.Model):
    """The content of small artifacts, by its hash."""

    hash = models.BinaryField(primary_key=True)
    size = models.BigIntegerField()
    touched_at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        db_table = "byrote_artifact_blobs"
        default_permissions = ()

    def __str__(self) -> str:
        return bytes(self.hash).hex()


class Memo(models.Model):
    """A result that answers later runs of the same spec by the same code."""

    pk = models.CompositePrimaryKey("spec_hash", "code_hash")
    result_id = models.UUIDField()
    made_at = models.DateTimeField()
    kept_until = models.DateTimeField()
    as_of = models.DateTimeField()
    spec_hash = models.BinaryField()
    code_hash = models.BinaryField()
    result_hash = models.BinaryField()
    task_path = models.TextField()
    return_json = models.TextField()

    class Meta:
        db_table = "byrote_memo"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.task_path} {bytes(self.spec_hash).hex()}"


class Watched(models.Model):
    """A run that somebody watches, and what its attempt has printed so far."""

    result_id = models.UUIDField(primary_key=True)
    until = models.DateTimeField()
    told_at = models.DateTimeField(null=True)
    stdout_size = models.BigIntegerField(default=0)
    stderr_size = models.BigIntegerField(default=0)
    attempt = models.IntegerField(default=0)
    stdout = models.BinaryField(default=b"")
    stderr = models.BinaryField(default=b"")

    class Meta:
        db_table = "byrote_watched"
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.result_id)


class Worker(models.Model):
    """A worker as it last described itself."""

    worker_id = models.TextField(primary_key=True)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    idle = models.BooleanField(default=False)
    stopping = models.BooleanField(default=False)
    pid = models.IntegerField()
    hands = models.IntegerField()
    concurrency = models.IntegerField()
    running = models.IntegerField(default=0)
    finished = models.BigIntegerField(default=0)
    host = models.TextField()
    version = models.TextField()
    python = models.TextField()
    queues = ArrayOf("text")
    tasks = ArrayOf("text")
    holder = models.UUIDField(null=True)

    class Meta:
        db_table = "byrote_workers"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.worker_id)


class Queue(models.Model):
    """The settings of a queue; one without settings has no row."""

    queue_name = models.TextField(primary_key=True)
    paused_at = models.DateTimeField(null=True)
    ageing = models.DurationField(null=True)
    archive_after = models.DurationField()
    keep_done = models.DurationField()
    keep_dead = models.DurationField()
    events = models.TextField(default="all")
    quiet_since = models.DateTimeField(null=True)
    unserved_for = models.DurationField(null=True)

    class Meta:
        db_table = "byrote_queues"
        default_permissions = ("view",)
        permissions: ClassVar = [("pause_queue", "Can pause and resume queues")]

    def __str__(self) -> str:
        return str(self.queue_name)
