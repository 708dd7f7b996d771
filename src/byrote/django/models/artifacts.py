# SPDX-License-Identifier: MIT
"""Artifacts with their contents, environments, and results that answer later runs."""

from django.db import models


class Artifact(models.Model):
    """Content that an attempt stored under a name."""

    pk = models.CompositePrimaryKey("result_id", "attempt", "name")
    result_id = models.UUIDField()
    at = models.DateTimeField()
    size = models.BigIntegerField()
    attempt = models.IntegerField()
    name = models.TextField()
    hash = models.BinaryField()
    media_type = models.TextField()
    location = models.TextField()

    class Meta:
        db_table = "byrote_artifacts"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} of {self.result_id}"


class Blob(models.Model):
    """The content of small artifacts, by its hash."""

    hash = models.BinaryField(primary_key=True)
    size = models.BigIntegerField()
    unused_since = models.DateTimeField(null=True)
    data = models.BinaryField()

    class Meta:
        db_table = "byrote_artifact_blobs"
        default_permissions = ()

    def __str__(self) -> str:
        return bytes(self.hash).hex()


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
