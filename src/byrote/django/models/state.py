# SPDX-License-Identifier: MIT
"""State of runs: steps, signals, effects done once, progress, and output."""

from django.db import models


class Step(models.Model):
    """The result of a step, a sleep or a wait of a run."""

    pk = models.CompositePrimaryKey("result_id", "sequence")
    result_id = models.UUIDField()
    at = models.DateTimeField()
    wake_at = models.DateTimeField(null=True)
    sequence = models.IntegerField()
    attempt = models.IntegerField()
    open = models.BooleanField()
    kind = models.TextField()
    name = models.TextField()
    result_hash = models.BinaryField(null=True)
    result_json = models.TextField(null=True)
    place = models.TextField(null=True)
    args_hash = models.BinaryField(null=True)

    class Meta:
        db_table = "byrote_steps"
        default_permissions = ()

    def __str__(self) -> str:
        return f"step {self.sequence} of {self.result_id}"


class Signal(models.Model):
    """A signal that was sent to a run."""

    pk = models.CompositePrimaryKey("result_id", "signal_id")
    result_id = models.UUIDField()
    signal_id = models.UUIDField()
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    taken_by = models.IntegerField(null=True)
    name = models.TextField()
    payload_hash = models.BinaryField()
    payload_json = models.TextField()

    class Meta:
        db_table = "byrote_signals"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} to {self.result_id}"


class Once(models.Model):
    """The key of an effect that a run must have only once."""

    pk = models.CompositePrimaryKey("result_id", "key")
    result_id = models.UUIDField()
    at = models.DateTimeField()
    key = models.TextField()

    class Meta:
        db_table = "byrote_once"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.key} of {self.result_id}"


class Progress(models.Model):
    """The latest progress report of a run."""

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
        db_table = "byrote_progress"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.percent} % of {self.result_id}"


class Output(models.Model):
    """The end of the output of one attempt."""

    pk = models.CompositePrimaryKey("result_id", "attempt", "at")
    result_id = models.UUIDField()
    at = models.DateTimeField()
    stdout_dropped = models.BigIntegerField(default=0)
    stderr_dropped = models.BigIntegerField(default=0)
    attempt = models.IntegerField()
    stdout = models.TextField(default="")
    stderr = models.TextField(default="")

    class Meta:
        db_table = "byrote_outputs"
        default_permissions = ()

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.result_id}"


class Watched(models.Model):
    """A run whose output a client follows, and the end of that output so far."""

    result_id = models.UUIDField(primary_key=True)
    until = models.DateTimeField()
    updated_at = models.DateTimeField(null=True)
    stdout_size = models.BigIntegerField(default=0)
    stderr_size = models.BigIntegerField(default=0)
    attempt = models.IntegerField(default=0)
    stdout = models.BinaryField(default=b"")
    stderr = models.BinaryField(default=b"")

    class Meta:
        db_table = "byrote_watched"
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.result_id)
