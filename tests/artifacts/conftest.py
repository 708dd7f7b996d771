# SPDX-License-Identifier: MIT
from tests.worker.harness import marks, start_worker  # noqa: F401 -- fixtures of this folder.
