# SPDX-License-Identifier: MIT
"""A process that enqueues with keys that others want, too: `python -m … url keys`.

Prints, for each key, the run it was given and whether that was made by it.
"""

import sys

from byrote import App


def main(url: str, keys: str) -> None:
    app = App(url)
    task = app.task(name="t")(lambda: None)
    task.enqueue()  # So that everything is warm when it comes to it.
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    for number in range(int(keys)):
        run = task.using(unique_key=f"k{number}").enqueue()
        print(run.id, "made" if run.created else "found")  # noqa: T201
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
