# SPDX-License-Identifier: MIT
"""Python imports this at its start when the folder is on PYTHONPATH: rows are taken for a commit.

PYTHONPATH=tests/mutants/hasty:. byrote torture --minutes 1 --kinds failed_commits must fail loudly.
"""

from tests.mutants.first_answer import believe_it

believe_it()
