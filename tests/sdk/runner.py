# SPDX-License-Identifier: MIT
"""A worker of the SDK as a separate process; its argument is JSON: handlers and options."""

import json
import sys

from byrote.core.errors import BadOption, ServiceUnreachable
from byrote.sdk import Refused, Worker

EXITS = {BadOption: 2, ServiceUnreachable: 75}


def main() -> int:
    handlers, options = json.loads(sys.argv[1])
    try:
        Worker(handlers, **options).run()
    except (BadOption, ServiceUnreachable, Refused) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return EXITS.get(type(error), 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
