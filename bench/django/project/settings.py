# SPDX-License-Identifier: MIT
"""The project both sides run: the same task, the same database settings, another backend."""

import os

from psycopg.conninfo import conninfo_to_dict

PEER = os.environ["BENCH_PEER"]
"""`byrote`, `django-tasks-db`, or `none` for a project without tasks."""

SECRET_KEY = "not a secret"  # noqa: S105 -- of a project that nobody can reach.
USE_TZ = True
INSTALLED_APPS = {
    "byrote": ["byrote.django"],
    "django-tasks-db": ["django_tasks_db"],
    "none": [],
}[PEER] + ["bench.django.project"]
BACKENDS = {
    "byrote": "byrote.django.Backend",
    "django-tasks-db": "django_tasks_db.DatabaseBackend",
    "none": "django.tasks.backends.dummy.DummyBackend",
}
TASKS = {"default": {"BACKEND": BACKENDS[PEER]}}
_parts = conninfo_to_dict(os.environ["BENCH_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _parts.pop("dbname"),
        "CONN_MAX_AGE": None,
        "OPTIONS": _parts,
    }
}
LOGGING = {"version": 1, "loggers": {"django.tasks": {"level": "ERROR"}}}
