# SPDX-License-Identifier: MIT
from tests.sdk.harness import marks, service, start_sdk_worker, start_service  # noqa: F401
