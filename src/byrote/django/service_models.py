# SPDX-License-Identifier: MIT
"""Models of what the service, the beat, the proof and progress keep: Django flushes them too."""

from datetime import timedelta
from typing import ClassVar

from django.db import models

from byrote.django.schema.fields import ArrayOf


class Token(models.Model):
    """A token of the service; of its text only the hash is kept."""

    token_id = models.UUIDField(primary_key=True)
    holder = models.UUIDField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True)
    rate = models.IntegerField(null=True)
    hash = models.BinaryField()
    name = models.TextField()
    role = models.TextField()
    queues = ArrayOf()
    tasks = ArrayOf()

    class Meta:
        app_label = "byrote"
        db_table = "byrote_tokens"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} ({self.role})"


class AuditEntry(models.Model):
    """A request to the service that changed something."""

    audit_id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    token_id = models.UUIDField(null=True)
    items = models.IntegerField()
    action = models.TextField()
    request_id = models.TextField()
    address = models.TextField(null=True)
    subject = models.TextField(null=True)
    runs = ArrayOf("uuid", null=True)

    class Meta:
        app_label = "byrote"
        db_table = "byrote_audit"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.action} at {self.at}"


class KeyedReply(models.Model):
    """The answer to a request with an Idempotency-Key."""

    pk = models.CompositePrimaryKey("holder", "key")
    holder = models.UUIDField()
    at = models.DateTimeField()
    key = models.TextField()
    request_hash = models.BinaryField()
    reply = models.TextField()

    class Meta:
        app_label = "byrote"
        db_table = "byrote_keys"
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.key)


class Stat(models.Model):
    """A count of what happened in one minute."""

    pk = models.CompositePrimaryKey(
        "minute", "queue_name", "task_path", "task_version", "measure", "bucket"
    )
    minute = models.DateTimeField()
    n = models.BigIntegerField()
    task_version = models.IntegerField()
    bucket = models.SmallIntegerField()
    queue_name = models.TextField()
    task_path = models.TextField()
    measure = models.TextField()

    class Meta:
        app_label = "byrote"
        db_table = "byrote_stats"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.measure} of {self.task_path}: {self.n}"


class Depth(models.Model):
    """How many runs of a task lie in a queue."""

    pk = models.CompositePrimaryKey("queue_name", "task_path", "task_version")
    live = models.BigIntegerField()
    running = models.BigIntegerField()
    task_version = models.IntegerField()
    queue_name = models.TextField()
    task_path = models.TextField()

    class Meta:
        app_label = "byrote"
        db_table = "byrote_depths"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.live} of {self.task_path}"


class UnservedTask(models.Model):
    """A task with ready runs that no live worker of their queue knows."""

    pk = models.CompositePrimaryKey("queue_name", "task_path", "task_version")
    since = models.DateTimeField()
    seen_at = models.DateTimeField()
    waited = models.DurationField(default=timedelta)
    task_version = models.IntegerField()
    queue_name = models.TextField()
    task_path = models.TextField()

    class Meta:
        app_label = "byrote"
        db_table = "byrote_unserved"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.task_path}@{self.task_version} in {self.queue_name}"


class ChainLink(models.Model):
    """A hash over a stretch of the event log and the link before it."""

    link = models.BigIntegerField(primary_key=True)
    seq = models.BigIntegerField()
    events = models.IntegerField()
    first_at = models.DateTimeField()
    linked_at = models.DateTimeField()
    hash = models.BinaryField()

    class Meta:
        app_label = "byrote"
        db_table = "byrote_chain"
        default_permissions = ()

    def __str__(self) -> str:
        return f"link {self.link}"


class Progress(models.Model):
    """How far a run has come, as its task told last."""

    result_id = models.UUIDField(primary_key=True)
    at = models.DateTimeField()
    began_at = models.DateTimeField()
    began_percent = models.FloatField()
    percent = models.FloatField()
    done = models.FloatField(null=True)
    total = models.FloatField(null=True)
    attempt = models.IntegerField()
    message = models.TextField()
    data_json = models.TextField(null=True)

    class Meta:
        app_label = "byrote"
        db_table = "byrote_progress"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.percent} % of {self.result_id}"


class PeriodicTask(models.Model):
    """What is to run again and again, by which timing, and when next."""

    name = models.TextField(primary_key=True)
    next_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    timeout_ms = models.BigIntegerField(null=True)
    jitter_us = models.BigIntegerField(default=0)
    runs = models.BigIntegerField(default=0)
    skipped = models.BigIntegerField(default=0)
    last_run = models.UUIDField(null=True)
    task_version = models.IntegerField()
    max_attempts = models.IntegerField()
    priority = models.SmallIntegerField()
    timing = models.TextField()
    zone = models.TextField()
    catch_up = models.TextField()
    queue_name = models.TextField()
    task_path = models.TextField()
    spec_hash = models.BinaryField()
    spec_json = models.TextField()
    retry_json = models.TextField(null=True)
    labels = models.JSONField(null=True)
    unique_key = models.TextField(null=True)
    code_hash = models.TextField(null=True)
    fault = models.TextField(null=True)

    class Meta:
        app_label = "byrote"
        db_table = "byrote_periodic_tasks"
        permissions: ClassVar = [
            ("pause_periodictask", "Can pause and resume periodic tasks"),
            ("run_periodictask", "Can run periodic tasks now"),
        ]

    def __str__(self) -> str:
        return str(self.name)


class Once(models.Model):
    """The mark of an effect that a run has had."""

    pk = models.CompositePrimaryKey("result_id", "key")
    result_id = models.UUIDField()
    at = models.DateTimeField()
    key = models.TextField()

    class Meta:
        app_label = "byrote"
        db_table = "byrote_once"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.key} of {self.result_id}"
