# SPDX-License-Identifier: MIT
"""Every statement of the store as a function that returns a Query, in modules by noun."""

# ruff: noqa: F403 -- one name for all of them: `queries.claim`, `queries.cancel`.
from byrote.store.queries.artifacts import *
from byrote.store.queries.database import *
from byrote.store.queries.enqueue import *
from byrote.store.queries.leases import *
from byrote.store.queries.log import *
from byrote.store.queries.matching import *
from byrote.store.queries.queues import *
from byrote.store.queries.replay import *
from byrote.store.queries.retention import *
from byrote.store.queries.runs import *
from byrote.store.queries.schedules import *
from byrote.store.queries.steps import *
from byrote.store.queries.tokens import *
from byrote.store.queries.verify import *
from byrote.store.queries.workers import *
