# SPDX-License-Identifier: MIT
from tests.worker.harness import start_worker  # noqa: F401 -- fixture of this folder.
