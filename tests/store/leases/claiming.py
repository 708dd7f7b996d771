# SPDX-License-Identifier: MIT
"""A process that claims until nothing is left, and prints what it got: `python -m … url worker`."""

import sys

from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from tests.support import claim


def main(url: str, worker: str) -> None:
    with DatabaseAddress(url).open(worker, *PLAN_GUARDS) as connection:
        print("ready", flush=True)  # noqa: T201
        sys.stdin.readline()
        while leases := claim(connection, 7, worker=worker, queues=["a", "b"]):
            print(*[f"{lease.id}:{lease.attempt}" for lease in leases])  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
