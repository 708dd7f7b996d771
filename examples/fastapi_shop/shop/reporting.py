# SPDX-License-Identifier: MIT
"""Reports errors to Sentry."""

import os

import sentry_sdk

from byrote import App
from byrote.contrib import sentry


def start_reporting(app: App) -> None:
    """Report runs that failed for good; without SENTRY_DSN, nothing is sent."""
    sentry_sdk.init(dsn=os.environ.get("SENTRY_DSN"))
    sentry.install(app)
