# SPDX-License-Identifier: MIT
from django.db import models


class Customer(models.Model):
    email = models.EmailField(unique=True)
    welcomed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.email


class Book(models.Model):
    isbn = models.CharField(max_length=13, unique=True)
    title = models.CharField(max_length=200)
    price = models.DecimalField(max_digits=8, decimal_places=2)

    def __str__(self) -> str:
        return self.title


class Import(models.Model):
    """A CSV file somebody sent, and where its import goes on."""

    text = models.TextField()
    result_id = models.UUIDField(null=True)
    done = models.IntegerField(default=0)
    refused = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"import {self.pk}"


class Report(models.Model):
    day = models.DateField(unique=True)
    text = models.TextField()

    def __str__(self) -> str:
        return f"report of {self.day}"
