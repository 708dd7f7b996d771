# SPDX-License-Identifier: MIT
"""The mail sample with a first attempt that does not come to its end."""

import time
from typing import Any

from byrote.sdk import Context, Handlers
from examples.handlers.mail import send_mail

handlers = Handlers()


@handlers.handle("send_and_linger")
def send_and_linger(ctx: Context, payload: Any) -> dict[str, Any]:
    result = send_mail(ctx, payload)
    if ctx.attempt == 1:
        time.sleep(60)
    return result
