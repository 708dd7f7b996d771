# SPDX-License-Identifier: MIT
"""One of the demo's tasks after a change of its code: the tax is rounded up instead of down."""

from byrote.assembly.app import App
from byrote.demo.tasks import ask_rate
from byrote.executors.runtime.context import Context

app = App()


@app.task(name="demo.invoice")
def invoice(ctx: Context, n: int) -> dict[str, int]:
    """Ask for the rate of a tax, once, and add the tax."""
    rate = ctx.step("ask for the rate", ask_rate)
    net = 100 * n + 99
    tax = -(-net * rate // 100)
    return {"net": net, "tax": tax, "total": net + tax}
