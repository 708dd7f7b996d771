# SPDX-License-Identifier: MIT
"""Reports errors to Sentry."""

import os

import sentry_sdk

from byrote import App


def start_reporting(app: App) -> None:
    """Report errors of this process; without SENTRY_DSN, nothing is sent.

    Byrote logs runs that failed for good as errors of the logger `byrote.task`, with the run's id,
    which Sentry's logging integration reports.
    """
    sentry_sdk.init(dsn=os.environ.get("SENTRY_DSN"))
