# SPDX-License-Identifier: MIT
from typing import Any, ClassVar

from django.db import migrations, models

from byrote.django.run_fields import run_fields
from byrote.django.schema.fields import ArrayOf
from byrote.django.schema.operation import SchemaMigration
from byrote.django.service_state import SERVICE_MODELS

MODELS = [
    migrations.CreateModel(
        name="Run",
        fields=run_fields(),
        options={
            "db_table": "byrote_runs",
            "permissions": [
                ("cancel_run", "Can cancel runs"),
                ("hurry_run", "Can let waiting runs go now"),
                ("replay_run", "Can replay runs"),
                ("requeue_run", "Can requeue all dead runs of a list"),
                ("retry_run", "Can retry dead runs"),
                ("verify_run", "Can replay runs and verify their results"),
            ],
            "managed": False,
            "default_permissions": ("view", "delete"),
        },
    ),
    migrations.CreateModel(
        name="RunEvent",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "seq", "place", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("seq", models.BigIntegerField()),
            ("place", models.BigIntegerField()),
            ("at", models.DateTimeField()),
            ("kind", models.TextField()),
            ("result_id", models.UUIDField()),
            ("attempt", models.IntegerField()),
            ("move", models.IntegerField()),
            ("worker", models.TextField(null=True)),
            ("lease_token", models.UUIDField(null=True)),
            ("leased_until", models.DateTimeField(null=True)),
            ("data", models.JSONField(null=True)),
            ("schema", models.SmallIntegerField()),
            ("digest", models.BinaryField(null=True)),
        ],
        options={
            "db_table": "byrote_event_log",
            "managed": False,
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="ArchivedRun",
        fields=run_fields(),
        options={
            "db_table": "byrote_archive",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Artifact",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "result_id",
                    "attempt",
                    "name",
                    blank=True,
                    editable=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("result_id", models.UUIDField()),
            ("at", models.DateTimeField()),
            ("size", models.BigIntegerField()),
            ("attempt", models.IntegerField()),
            ("name", models.TextField()),
            ("hash", models.BinaryField()),
            ("media_type", models.TextField()),
            ("place", models.TextField()),
        ],
        options={
            "db_table": "byrote_artifacts",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Blob",
        fields=[
            ("hash", models.BinaryField(primary_key=True, serialize=False)),
            ("size", models.BigIntegerField()),
            ("touched_at", models.DateTimeField()),
            ("data", models.BinaryField()),
        ],
        options={
            "db_table": "byrote_artifact_blobs",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="DeadRun",
        fields=run_fields(),
        options={
            "db_table": "byrote_dead",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Event",
        fields=[
            ("seq", models.BigIntegerField(primary_key=True, serialize=False)),
            ("at", models.DateTimeField()),
            ("leased_until", models.DateTimeField(null=True)),
            ("lease_token", models.UUIDField(null=True)),
            ("schema", models.SmallIntegerField(default=1)),
            ("kind", models.TextField()),
            ("worker", models.TextField(null=True)),
            ("runs", ArrayOf("uuid")),
            ("attempts", ArrayOf("integer")),
            ("moves", ArrayOf("integer")),
            ("data", models.JSONField(null=True)),
            ("digests", ArrayOf("bytea", null=True)),
        ],
        options={
            "db_table": "byrote_events",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Once",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "result_id",
                    "key",
                    blank=True,
                    editable=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("result_id", models.UUIDField()),
            ("at", models.DateTimeField()),
            ("key", models.TextField()),
        ],
        options={
            "db_table": "byrote_once",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Output",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "result_id",
                    "attempt",
                    "at",
                    blank=True,
                    editable=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("result_id", models.UUIDField()),
            ("at", models.DateTimeField()),
            ("stdout_dropped", models.BigIntegerField(default=0)),
            ("stderr_dropped", models.BigIntegerField(default=0)),
            ("attempt", models.IntegerField()),
            ("stdout", models.TextField(default="")),
            ("stderr", models.TextField(default="")),
        ],
        options={
            "db_table": "byrote_outputs",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Provenance",
        fields=[
            ("provenance_id", models.IntegerField(primary_key=True, serialize=False)),
            ("hash", models.BinaryField()),
            ("doc", models.JSONField()),
        ],
        options={
            "db_table": "byrote_provenance",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Queue",
        fields=[
            ("queue_name", models.TextField(primary_key=True, serialize=False)),
            ("paused_at", models.DateTimeField(null=True)),
            ("ageing", models.DurationField(null=True)),
            ("archive_after", models.DurationField()),
            ("keep_done", models.DurationField()),
            ("keep_dead", models.DurationField()),
            ("events", models.TextField(default="all")),
            ("quiet_since", models.DateTimeField(null=True)),
            ("unserved_for", models.DurationField(null=True)),
        ],
        options={
            "db_table": "byrote_queues",
            "permissions": [("pause_queue", "Can pause and resume queues")],
            "default_permissions": ("view",),
        },
    ),
    migrations.CreateModel(
        name="Signal",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "result_id",
                    "signal_id",
                    blank=True,
                    editable=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("result_id", models.UUIDField()),
            ("signal_id", models.UUIDField()),
            ("seq", models.BigIntegerField()),
            ("at", models.DateTimeField()),
            ("taken_by", models.IntegerField(null=True)),
            ("name", models.TextField()),
            ("payload_hash", models.BinaryField()),
            ("payload_json", models.TextField()),
        ],
        options={
            "db_table": "byrote_signals",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Step",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "result_id",
                    "sequence",
                    blank=True,
                    editable=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("result_id", models.UUIDField()),
            ("at", models.DateTimeField()),
            ("wake_at", models.DateTimeField(null=True)),
            ("sequence", models.IntegerField()),
            ("attempt", models.IntegerField()),
            ("open", models.BooleanField()),
            ("kind", models.TextField()),
            ("name", models.TextField()),
            ("result_hash", models.BinaryField(null=True)),
            ("result_json", models.TextField(null=True)),
            ("place", models.TextField(null=True)),
            ("args_hash", models.BinaryField(null=True)),
        ],
        options={
            "db_table": "byrote_steps",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="TaskRun",
        fields=run_fields(),
        options={
            "db_table": "byrote_task_runs",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Worker",
        fields=[
            ("worker_id", models.TextField(primary_key=True, serialize=False)),
            ("started_at", models.DateTimeField()),
            ("seen_at", models.DateTimeField()),
            ("idle", models.BooleanField(default=False)),
            ("stopping", models.BooleanField(default=False)),
            ("pid", models.IntegerField()),
            ("hands", models.IntegerField()),
            ("concurrency", models.IntegerField()),
            ("running", models.IntegerField(default=0)),
            ("finished", models.BigIntegerField(default=0)),
            ("host", models.TextField()),
            ("version", models.TextField()),
            ("python", models.TextField()),
            ("queues", ArrayOf("text")),
            ("tasks", ArrayOf("text")),
            ("holder", models.UUIDField(null=True)),
        ],
        options={
            "db_table": "byrote_workers",
            "default_permissions": ("view",),
        },
    ),
    migrations.CreateModel(
        name="Memo",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "spec_hash",
                    "code_hash",
                    blank=True,
                    editable=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("result_id", models.UUIDField()),
            ("made_at", models.DateTimeField()),
            ("kept_until", models.DateTimeField()),
            ("as_of", models.DateTimeField()),
            ("spec_hash", models.BinaryField()),
            ("code_hash", models.BinaryField()),
            ("result_hash", models.BinaryField()),
            ("task_path", models.TextField()),
            ("return_json", models.TextField()),
        ],
        options={
            "db_table": "byrote_memo",
            "default_permissions": (),
        },
    ),
    migrations.CreateModel(
        name="Watched",
        fields=[
            ("result_id", models.UUIDField(primary_key=True, serialize=False)),
            ("until", models.DateTimeField()),
            ("told_at", models.DateTimeField(null=True)),
            ("stdout_size", models.BigIntegerField(default=0)),
            ("stderr_size", models.BigIntegerField(default=0)),
            ("attempt", models.IntegerField(default=0)),
            ("stdout", models.BinaryField(default=b"")),
            ("stderr", models.BinaryField(default=b"")),
        ],
        options={
            "db_table": "byrote_watched",
            "default_permissions": (),
        },
    ),
]


class Migration(migrations.Migration):
    """The schema as numbered SQL files make it, and the models that describe it."""

    initial = True
    dependencies: ClassVar[list[Any]] = []
    operations: ClassVar[list[Any]] = [
        migrations.SeparateDatabaseAndState(
            database_operations=[SchemaMigration(1, 21)],
            state_operations=[*MODELS, *SERVICE_MODELS],
        )
    ]
