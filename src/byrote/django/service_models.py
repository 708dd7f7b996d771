# SPDX-License-Identifier: MIT
"""Models of what the HTTP service, the proof and progress keep: Django flushes, describes them."""

from django.db import models

from byrote.django.fields import ArrayOf


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
