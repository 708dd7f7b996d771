# SPDX-License-Identifier: MIT
"""A small Django project for tests; conftest.py sets its databases."""

import os

import django
from psycopg.conninfo import conninfo_to_dict

SECRET_KEY = "not a secret"  # noqa: S105 -- of a project that is not reachable.
DEBUG = os.environ.get("SHOP_DEBUG") == "yes"
USE_TZ = os.environ.get("SHOP_USE_TZ", "yes") == "yes"
TIME_ZONE = "Europe/Berlin"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "tests.django.urls"
STATIC_URL = "/static/"
BACKPORT = ["django_tasks"] if django.VERSION < (6, 0) else []
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    *BACKPORT,
    "byrote.django",
    "tests.django.shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def database(variable: str) -> dict[str, object]:
    """The entry in DATABASES for the server that a variable names."""
    parts = conninfo_to_dict(os.environ.get(variable, "dbname=shop"))
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host"}
    entry = {name: parts.pop(part, "") for name, part in names.items()}
    port = parts.pop("port", "")
    if os.environ.get("SHOP_POOL"):
        parts = {**parts, "pool": {"min_size": 1, "max_size": 2}}
    return {
        "ENGINE": "django.db.backends.postgresql",
        **entry,
        "PORT": port,
        "OPTIONS": parts,
        "CONN_MAX_AGE": int(os.environ.get("SHOP_CONN_MAX_AGE", "0")),
    }


DATABASES = {"default": database("SHOP_DATABASE"), "other": database("SHOP_OTHER_DATABASE")}
TASKS = {
    "default": {
        "BACKEND": "byrote.django.Backend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"ASYNC_CONNECTIONS": int(os.environ.get("SHOP_ASYNC", "20"))},
    },
    "reports": {"BACKEND": "byrote.django.Backend", "QUEUES": []},
    "apart": {"BACKEND": "byrote.django.Backend", "OPTIONS": {"DATABASE": "other"}},
}
