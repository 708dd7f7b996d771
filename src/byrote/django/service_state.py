# SPDX-License-Identifier: MIT
"""The state of what the service, the beat, the proof and progress keep, for migration 0001."""

from datetime import timedelta
from typing import Any

from django.db import migrations, models

from byrote.django.schema.fields import ArrayOf

SERVICE_MODELS: list[Any] = [
    migrations.CreateModel(
        name="AuditEntry",
        fields=[
            ("audit_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("at", models.DateTimeField()),
            ("token_id", models.UUIDField(null=True)),
            ("items", models.IntegerField()),
            ("action", models.TextField()),
            ("request_id", models.TextField()),
            ("address", models.TextField(null=True)),
            ("subject", models.TextField(null=True)),
            ("runs", ArrayOf("uuid", null=True)),
        ],
        options={
            "db_table": "byrote_audit",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="ChainLink",
        fields=[
            ("link", models.BigIntegerField(primary_key=True, serialize=False)),
            ("seq", models.BigIntegerField()),
            ("events", models.IntegerField()),
            ("first_at", models.DateTimeField()),
            ("linked_at", models.DateTimeField()),
            ("hash", models.BinaryField()),
        ],
        options={
            "db_table": "byrote_chain",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="KeyedReply",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "holder", "key", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("holder", models.UUIDField()),
            ("at", models.DateTimeField()),
            ("key", models.TextField()),
            ("request_hash", models.BinaryField()),
            ("reply", models.TextField()),
        ],
        options={
            "db_table": "byrote_keys",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="PeriodicTask",
        fields=[
            ("name", models.TextField(primary_key=True, serialize=False)),
            ("next_at", models.DateTimeField(null=True)),
            ("last_at", models.DateTimeField(null=True)),
            ("paused_at", models.DateTimeField(null=True)),
            ("created_at", models.DateTimeField()),
            ("changed_at", models.DateTimeField()),
            ("timeout_ms", models.BigIntegerField(null=True)),
            ("jitter_us", models.BigIntegerField(default=0)),
            ("runs", models.BigIntegerField(default=0)),
            ("skipped", models.BigIntegerField(default=0)),
            ("last_run", models.UUIDField(null=True)),
            ("task_version", models.IntegerField()),
            ("max_attempts", models.IntegerField()),
            ("priority", models.SmallIntegerField()),
            ("timing", models.TextField()),
            ("zone", models.TextField()),
            ("catch_up", models.TextField()),
            ("queue_name", models.TextField()),
            ("task_path", models.TextField()),
            ("spec_hash", models.BinaryField()),
            ("spec_json", models.TextField()),
            ("retry_json", models.TextField(null=True)),
            ("labels", models.JSONField(null=True)),
            ("unique_key", models.TextField(null=True)),
            ("code_hash", models.TextField(null=True)),
            ("fault", models.TextField(null=True)),
        ],
        options={
            "db_table": "byrote_periodic_tasks",
            "permissions": [
                ("pause_periodictask", "Can pause and resume periodic tasks"),
                ("run_periodictask", "Can run periodic tasks now"),
            ],
        },
    ),
    migrations.CreateModel(
        name="Progress",
        fields=[
            ("result_id", models.UUIDField(primary_key=True, serialize=False)),
            ("at", models.DateTimeField()),
            ("began_at", models.DateTimeField()),
            ("began_percent", models.FloatField()),
            ("percent", models.FloatField()),
            ("done", models.FloatField(null=True)),
            ("total", models.FloatField(null=True)),
            ("attempt", models.IntegerField()),
            ("message", models.TextField()),
            ("data_json", models.TextField(null=True)),
        ],
        options={
            "db_table": "byrote_progress",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Stat",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "minute",
                    "queue_name",
                    "task_path",
                    "task_version",
                    "measure",
                    "bucket",
                    blank=True,
                    editable=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("minute", models.DateTimeField()),
            ("n", models.BigIntegerField()),
            ("task_version", models.IntegerField()),
            ("bucket", models.SmallIntegerField()),
            ("queue_name", models.TextField()),
            ("task_path", models.TextField()),
            ("measure", models.TextField()),
        ],
        options={
            "db_table": "byrote_stats",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Depth",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "queue_name",
                    "task_path",
                    "task_version",
                    blank=True,
                    editable=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("live", models.BigIntegerField()),
            ("running", models.BigIntegerField()),
            ("task_version", models.IntegerField()),
            ("queue_name", models.TextField()),
            ("task_path", models.TextField()),
        ],
        options={
            "db_table": "byrote_depths",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="UnservedTask",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "queue_name",
                    "task_path",
                    "task_version",
                    blank=True,
                    editable=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("since", models.DateTimeField()),
            ("seen_at", models.DateTimeField()),
            ("waited", models.DurationField(default=timedelta)),
            ("task_version", models.IntegerField()),
            ("queue_name", models.TextField()),
            ("task_path", models.TextField()),
        ],
        options={
            "db_table": "byrote_unserved",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Token",
        fields=[
            ("token_id", models.UUIDField(primary_key=True, serialize=False)),
            ("holder", models.UUIDField()),
            ("created_at", models.DateTimeField()),
            ("expires_at", models.DateTimeField(null=True)),
            ("revoked_at", models.DateTimeField(null=True)),
            ("used_at", models.DateTimeField(null=True)),
            ("rate", models.IntegerField(null=True)),
            ("hash", models.BinaryField()),
            ("name", models.TextField()),
            ("role", models.TextField()),
            ("queues", ArrayOf("text")),
            ("tasks", ArrayOf("text")),
        ],
        options={
            "db_table": "byrote_tokens",
            "default_permissions": (),
        },
    ),
]
