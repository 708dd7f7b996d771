# SPDX-License-Identifier: MIT
from tests.sdk.harness import (  # noqa: F401
    marks,
    module_service,
    service,
    start_sdk_worker,
    start_service,
)
