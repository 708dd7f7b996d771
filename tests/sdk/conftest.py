# SPDX-License-Identifier: MIT
from tests.sdk.clients import client, kind  # noqa: F401
from tests.sdk.harness import (  # noqa: F401
    marks,
    module_service,
    service,
    start_sdk_worker,
    start_service,
)
