# SPDX-License-Identifier: MIT
"""Python imports this at its start when the folder is on PYTHONPATH: the mutation switch.

PYTHONPATH=tests/mutants/switch:. byrote torture --minutes 1 must fail loudly.
"""

from tests.mutants.fence import tear_out

tear_out()
