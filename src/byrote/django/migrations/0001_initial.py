# SPDX-License-Identifier: MIT
"""The tables of 0001_schema.sql as Django's migrations describe them, grouped as in that file."""

from datetime import timedelta
from typing import Any, ClassVar

from django.db import migrations, models

from byrote.django.schema.fields import ArrayOf
from byrote.django.schema.operation import SchemaMigration

STATUSES = ("WAITING", "READY", "RUNNING", "SUCCESSFUL", "FAILED", "CANCELLED")


def _key(*columns: str) -> tuple[str, Any]:
    return "pk", models.CompositePrimaryKey(
        *columns, blank=True, editable=False, primary_key=True, serialize=False
    )


def _run_fields() -> list[tuple[str, Any]]:
    """The columns that every table of runs has."""
    return [
        ("result_id", models.UUIDField(primary_key=True, serialize=False)),
        ("workflow_id", models.UUIDField(null=True)),
        ("replay_of", models.UUIDField(null=True)),
        ("lease_token", models.UUIDField(null=True)),
        ("rank", models.BigIntegerField()),
        ("run_after", models.DateTimeField()),
        ("enqueued_at", models.DateTimeField()),
        ("started_at", models.DateTimeField(null=True)),
        ("last_attempted_at", models.DateTimeField(null=True)),
        ("finished_at", models.DateTimeField(null=True)),
        ("leased_until", models.DateTimeField(null=True)),
        ("cancel_requested_at", models.DateTimeField(null=True)),
        ("timeout_ms", models.BigIntegerField(null=True)),
        ("task_version", models.IntegerField()),
        ("attempts", models.IntegerField(default=0)),
        ("charged", models.IntegerField(default=0)),
        ("losses", models.IntegerField(default=0)),
        ("max_attempts", models.IntegerField()),
        ("moves", models.IntegerField(default=1)),
        ("priority", models.SmallIntegerField(default=0)),
        ("status", models.TextField(choices=[(name, name.capitalize()) for name in STATUSES])),
        ("wait_reason", models.TextField(null=True)),
        ("queue_name", models.TextField()),
        ("task_path", models.TextField()),
        ("leased_by", models.TextField(null=True)),
        ("spec_hash", models.BinaryField()),
        ("result_hash", models.BinaryField(null=True)),
        ("worker_ids", ArrayOf("text", default=list)),
        ("spec_json", models.TextField()),
        ("return_json", models.TextField(null=True)),
        ("errors_json", models.JSONField(null=True)),
        ("retry_json", models.TextField(null=True)),
        ("labels", models.JSONField(null=True)),
        ("traceparent", models.TextField(null=True)),
        ("as_of", models.DateTimeField(null=True)),
        ("provenance", ArrayOf("integer", null=True)),
        ("usage", models.JSONField(null=True)),
        ("shadow", models.BooleanField(null=True)),
        ("memo_of", models.UUIDField(null=True)),
        ("unique_key", models.TextField(null=True)),
    ]


TABLES: dict[tuple[str, str], list[tuple[str, Any]]] = {
    # Runs
    ("Run", "byrote_runs"): _run_fields(),
    ("TaskRun", "byrote_task_runs"): _run_fields(),
    ("ArchivedRun", "byrote_archive"): _run_fields(),
    ("DeadRun", "byrote_dead"): _run_fields(),
    # Events
    ("Event", "byrote_events"): [
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
    ("RunEvent", "byrote_event_log"): [
        _key("seq", "ordinal"),
        ("seq", models.BigIntegerField()),
        ("ordinal", models.BigIntegerField()),
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
    ("ChainLink", "byrote_chain"): [
        ("link", models.BigIntegerField(primary_key=True, serialize=False)),
        ("seq", models.BigIntegerField()),
        ("events", models.IntegerField()),
        ("first_at", models.DateTimeField()),
        ("linked_at", models.DateTimeField()),
        ("hash", models.BinaryField()),
    ],
    # State of runs
    ("Step", "byrote_steps"): [
        _key("result_id", "sequence"),
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
    ("Signal", "byrote_signals"): [
        _key("result_id", "signal_id"),
        ("result_id", models.UUIDField()),
        ("signal_id", models.UUIDField()),
        ("seq", models.BigIntegerField()),
        ("at", models.DateTimeField()),
        ("taken_by", models.IntegerField(null=True)),
        ("name", models.TextField()),
        ("payload_hash", models.BinaryField()),
        ("payload_json", models.TextField()),
    ],
    ("Once", "byrote_once"): [
        _key("result_id", "key"),
        ("result_id", models.UUIDField()),
        ("at", models.DateTimeField()),
        ("key", models.TextField()),
    ],
    ("Progress", "byrote_progress"): [
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
    ("Output", "byrote_outputs"): [
        _key("result_id", "attempt", "at"),
        ("result_id", models.UUIDField()),
        ("at", models.DateTimeField()),
        ("stdout_dropped", models.BigIntegerField(default=0)),
        ("stderr_dropped", models.BigIntegerField(default=0)),
        ("attempt", models.IntegerField()),
        ("stdout", models.TextField(default="")),
        ("stderr", models.TextField(default="")),
    ],
    ("Watched", "byrote_watched"): [
        ("result_id", models.UUIDField(primary_key=True, serialize=False)),
        ("until", models.DateTimeField()),
        ("updated_at", models.DateTimeField(null=True)),
        ("stdout_size", models.BigIntegerField(default=0)),
        ("stderr_size", models.BigIntegerField(default=0)),
        ("attempt", models.IntegerField(default=0)),
        ("stdout", models.BinaryField(default=b"")),
        ("stderr", models.BinaryField(default=b"")),
    ],
    # Artifacts, provenance, memo
    ("Artifact", "byrote_artifacts"): [
        _key("result_id", "attempt", "name"),
        ("result_id", models.UUIDField()),
        ("at", models.DateTimeField()),
        ("size", models.BigIntegerField()),
        ("attempt", models.IntegerField()),
        ("name", models.TextField()),
        ("hash", models.BinaryField()),
        ("media_type", models.TextField()),
        ("location", models.TextField()),
    ],
    ("Blob", "byrote_artifact_blobs"): [
        ("hash", models.BinaryField(primary_key=True, serialize=False)),
        ("size", models.BigIntegerField()),
        ("unused_since", models.DateTimeField(null=True)),
        ("data", models.BinaryField()),
    ],
    ("Provenance", "byrote_provenance"): [
        ("provenance_id", models.IntegerField(primary_key=True, serialize=False)),
        ("hash", models.BinaryField()),
        ("doc", models.JSONField()),
    ],
    ("Memo", "byrote_memo"): [
        _key("spec_hash", "code_hash"),
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
    # Work
    ("Queue", "byrote_queues"): [
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
    ("Worker", "byrote_workers"): [
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
        ("aliases", ArrayOf("text", default=list)),
        ("policies", models.JSONField(default=dict)),
        ("holder", models.UUIDField(null=True)),
    ],
    ("PeriodicTask", "byrote_periodic_tasks"): [
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
    ("UnservedTask", "byrote_unserved"): [
        _key("queue_name", "task_path", "task_version"),
        ("since", models.DateTimeField()),
        ("seen_at", models.DateTimeField()),
        ("waited", models.DurationField(default=timedelta)),
        ("task_version", models.IntegerField()),
        ("queue_name", models.TextField()),
        ("task_path", models.TextField()),
    ],
    # Service
    ("Token", "byrote_tokens"): [
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
    ("AuditEntry", "byrote_audit"): [
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
    ("KeyedReply", "byrote_keys"): [
        _key("holder", "key"),
        ("holder", models.UUIDField()),
        ("at", models.DateTimeField()),
        ("key", models.TextField()),
        ("request_hash", models.BinaryField()),
        ("reply", models.TextField()),
    ],
    ("Stat", "byrote_stats"): [
        _key("minute", "queue_name", "task_path", "task_version", "measure", "bucket", "part"),
        ("minute", models.DateTimeField()),
        ("n", models.BigIntegerField()),
        ("task_version", models.IntegerField()),
        ("bucket", models.SmallIntegerField()),
        ("part", models.SmallIntegerField()),
        ("queue_name", models.TextField()),
        ("task_path", models.TextField()),
        ("measure", models.TextField()),
    ],
    ("Depth", "byrote_depths"): [
        _key("queue_name", "task_path", "task_version", "part"),
        ("live", models.BigIntegerField()),
        ("running", models.BigIntegerField()),
        ("task_version", models.IntegerField()),
        ("part", models.SmallIntegerField()),
        ("queue_name", models.TextField()),
        ("task_path", models.TextField()),
    ],
}

OPTIONS: dict[str, dict[str, Any]] = {
    "Run": {
        "default_permissions": ("view", "delete"),
        "permissions": [
            ("cancel_run", "Can cancel runs"),
            ("hurry_run", "Can let waiting runs go now"),
            ("replay_run", "Can replay runs"),
            ("requeue_run", "Can requeue all dead runs of a list"),
            ("retry_run", "Can retry dead runs"),
            ("verify_run", "Can replay runs and verify their results"),
        ],
        "managed": False,
    },
    "RunEvent": {
        "default_permissions": (),
        "managed": False,
    },
    "Queue": {
        "default_permissions": ("view",),
        "permissions": [("pause_queue", "Can pause and resume queues")],
    },
    "Worker": {
        "default_permissions": ("view",),
    },
    "PeriodicTask": {
        "permissions": [
            ("pause_periodictask", "Can pause and resume periodic tasks"),
            ("run_periodictask", "Can run periodic tasks now"),
        ],
    },
}
"""Options of models; all others have no permissions."""


def _model(name: str, table: str, fields: list[tuple[str, Any]]) -> Any:
    options = {"db_table": table, **OPTIONS.get(name, {"default_permissions": ()})}
    return migrations.CreateModel(name=name, fields=fields, options=options)


class Migration(migrations.Migration):
    """Creates the schema by its SQL file, and describes it."""

    initial = True
    dependencies: ClassVar[list[Any]] = []
    operations: ClassVar[list[Any]] = [
        migrations.SeparateDatabaseAndState(
            database_operations=[SchemaMigration(1, 1)],
            state_operations=[_model(*names, fields) for names, fields in TABLES.items()],
        )
    ]
