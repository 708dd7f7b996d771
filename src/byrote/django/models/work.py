# SPDX-License-Identifier: MIT
"""Queues, workers, schedules, and tasks that no worker knows."""

from datetime import timedelta
from typing import ClassVar

from django.db import models

from byrote.django.schema.fields import ArrayOf


class Queue(models.Model):
    """The settings of a queue. A queue without a row has the defaults."""

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


class Worker(models.Model):
    """A worker or a service, with its last heartbeat."""

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
    aliases = ArrayOf("text", default=list)
    policies = models.JSONField(default=dict)
    holder = models.UUIDField(null=True)

    class Meta:
        db_table = "byrote_workers"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.worker_id)


class PeriodicTask(models.Model):
    """A schedule: what runs, by which timing, and when next."""

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
        db_table = "byrote_periodic_tasks"
        permissions: ClassVar = [
            ("pause_periodictask", "Can pause and resume periodic tasks"),
            ("run_periodictask", "Can run periodic tasks now"),
        ]

    def __str__(self) -> str:
        return str(self.name)


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
        db_table = "byrote_unserved"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.task_path}@{self.task_version} in {self.queue_name}"
