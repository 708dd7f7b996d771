# SPDX-License-Identifier: MIT
from django.db import models


class Note(models.Model):
    """Something tasks leave behind."""

    text = models.TextField()

    def __str__(self) -> str:
        return self.text
