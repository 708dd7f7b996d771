# SPDX-License-Identifier: MIT
from tests.sdk.harness import (  # noqa: F401
    marks,
    service,
    start_sdk_worker,
    start_service,
)
