# SPDX-License-Identifier: MIT
from tests.sdk.harness import module_service  # noqa: F401
