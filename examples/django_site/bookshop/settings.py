# SPDX-License-Identifier: MIT
import os
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

BASE = Path(__file__).parents[1]
SECRET_KEY = os.environ.get("SECRET_KEY", "only for trying out")
DEBUG = os.environ.get("DEBUG", "yes") == "yes"
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "localhost,127.0.0.1").split(",")
ROOT_URLCONF = "bookshop.urls"
STATIC_URL = "static/"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "byrote.django",
    "shop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
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

_url = conninfo_to_dict(os.environ.get("DATABASE_URL", "dbname=bookshop"))
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _url.get("dbname"),
        "USER": _url.get("user", ""),
        "PASSWORD": _url.get("password", ""),
        "HOST": _url.get("host", ""),
        "PORT": _url.get("port", ""),
        # Without it, a worker opens a connection for every task that uses the database.
        "CONN_MAX_AGE": 60,
    }
}
TASKS = {
    "default": {"BACKEND": "byrote.django.Backend", "QUEUES": ["default", "mail", "reports"]},
}

DEFAULT_FROM_EMAIL = "shop@example.com"
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = os.environ.get("MAIL_FOLDER", BASE / "mail")
