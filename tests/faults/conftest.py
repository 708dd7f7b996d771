# SPDX-License-Identifier: MIT
from tests.faults.roles import role  # noqa: F401 -- a fixture.
from tests.worker.harness import marks, start_worker  # noqa: F401 -- fixtures of this folder.
