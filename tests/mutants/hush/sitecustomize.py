# SPDX-License-Identifier: MIT
"""Python imports this at its start when the folder is on PYTHONPATH: no event is written."""

from tests.mutants.silent import fall_silent

fall_silent()
