# SPDX-License-Identifier: MIT
"""The event log, its view by run, and the chain of its hashes."""

from django.db import models

from byrote.django.schema.fields import ArrayOf


class Event(models.Model):
    """An event about a set of runs: one row per statement that moved runs."""

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
    """An event about one run. A view: read only."""

    pk = models.CompositePrimaryKey("seq", "ordinal")
    seq = models.BigIntegerField()
    ordinal = models.BigIntegerField()
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


class ChainLink(models.Model):
    """A hash over a stretch of the event log and the link before it."""

    link = models.BigIntegerField(primary_key=True)
    seq = models.BigIntegerField()
    events = models.IntegerField()
    first_at = models.DateTimeField()
    linked_at = models.DateTimeField()
    hash = models.BinaryField()

    class Meta:
        db_table = "byrote_chain"
        default_permissions = ()

    def __str__(self) -> str:
        return f"link {self.link}"
