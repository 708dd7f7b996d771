# SPDX-License-Identifier: MIT
"""The service: tokens, audit, responses to keyed requests, and counts."""

from django.db import models

from byrote.django.schema.fields import ArrayOf


class Token(models.Model):
    """An access token of the service. Only its hash is stored."""

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
        db_table = "byrote_audit"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.action} at {self.at}"


class KeyedReply(models.Model):
    """The response to a request with an Idempotency-Key."""

    pk = models.CompositePrimaryKey("holder", "key")
    holder = models.UUIDField()
    at = models.DateTimeField()
    key = models.TextField()
    request_hash = models.BinaryField()
    reply = models.TextField()

    class Meta:
        db_table = "byrote_keys"
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.key)


class Stat(models.Model):
    """A count or a histogram bucket of one minute."""

    pk = models.CompositePrimaryKey(
        "minute", "queue_name", "task_path", "task_version", "measure", "bucket", "part"
    )
    minute = models.DateTimeField()
    n = models.BigIntegerField()
    task_version = models.IntegerField()
    bucket = models.SmallIntegerField()
    part = models.SmallIntegerField()
    queue_name = models.TextField()
    task_path = models.TextField()
    measure = models.TextField()

    class Meta:
        db_table = "byrote_stats"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.measure} of {self.task_path}: {self.n}"


class Depth(models.Model):
    """The numbers of unfinished and of running runs of a task in a queue."""

    pk = models.CompositePrimaryKey("queue_name", "task_path", "task_version", "part")
    live = models.BigIntegerField()
    running = models.BigIntegerField()
    task_version = models.IntegerField()
    part = models.SmallIntegerField()
    queue_name = models.TextField()
    task_path = models.TextField()

    class Meta:
        db_table = "byrote_depths"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.live} of {self.task_path}"
