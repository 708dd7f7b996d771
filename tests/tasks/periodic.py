# SPDX-License-Identifier: MIT
"""An app that has something run every second."""

from byrote import App
from byrote.executors.runtime.context import Context

app = App()


@app.task
def tell(ctx: Context, word: str) -> str:
    return f"{word} {ctx.labels['tick']}"


app.schedule("pulse", tell.spec("now"), every="1s", overlap=True)
app.schedule("nightly", tell.spec("then"), cron="0 3 * * *", zone="Europe/Berlin")
