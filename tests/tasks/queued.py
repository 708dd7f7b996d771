# SPDX-License-Identifier: MIT
"""An app whose runs are in several queues."""

from byrote import App

app = App()


@app.task(queue="mail")
def send(word: str) -> str:
    return word


@app.task
def count(word: str) -> int:
    return len(word)


app.schedule("report", count.using(queue="night").spec("word"), cron="0 3 * * *")
