# SPDX-License-Identifier: MIT
"""An app whose tasks are all programs."""

from byrote import App, Limits, Retry

app = App()

count = app.command(
    "count",
    ["/bin/sh", "-c", """printf '{"ok":true,"result":%d}' "$(wc -c)" """],
    queue="default",
    timeout="30s",
    retry=Retry(attempts=2),
    limits=Limits(files=32),
)
