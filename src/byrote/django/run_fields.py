# SPDX-License-Identifier: MIT
"""What the tables of runs have in common, as migrations describe them; no migration itself."""

from typing import Any

from django.db import models

from byrote.django.schema.fields import ArrayOf


def run_fields() -> list[tuple[str, Any]]:
    """What every table of runs has."""
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
        (
            "status",
            models.TextField(
                choices=[
                    ("WAITING", "Waiting"),
                    ("READY", "Ready"),
                    ("RUNNING", "Running"),
                    ("SUCCESSFUL", "Successful"),
                    ("FAILED", "Failed"),
                    ("CANCELLED", "Cancelled"),
                ]
            ),
        ),
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
