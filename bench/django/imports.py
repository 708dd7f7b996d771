# SPDX-License-Identifier: MIT
"""What Byrote in the settings costs every command: `manage.py check` with and without it, in turn.

No database is needed: `check` asks none.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

PROJECT = """
import sys
from django.conf import settings
admin, ours = "admin" in sys.argv, "byrote" in sys.argv
names = ["contenttypes", "auth", *(["sessions", "messages", "admin"] if admin else [])]
middleware = ["sessions.middleware.Session", "auth.middleware.Authentication"]
middleware += ["messages.middleware.Message"]
processors = ["django.template.context_processors.request"]
processors += [f"django.contrib.{name}.context_processors.{name}" for name in ("auth", "messages")]
templates = {"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}
settings.configure(
    SECRET_KEY="not a secret",
    USE_TZ=True,
    INSTALLED_APPS=[
        *(f"django.contrib.{name}" for name in names),
        *(["byrote.django"] if ours else []),
    ],
    MIDDLEWARE=[f"django.contrib.{name}Middleware" for name in middleware if admin],
    TEMPLATES=[{**templates, "OPTIONS": {"context_processors": processors}}],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "nowhere"}},
    TASKS={
        "default": {
            "BACKEND": "byrote.django.Backend"
            if ours
            else "django.tasks.backends.dummy.DummyBackend"
        }
    },
)
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "check"])
"""
KINDS = {"a project with models": [], "with the admin": ["admin"]}

type Sample = tuple[float, float]
"""Milliseconds by the clock, and of the processor."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.django.imports", description=__doc__)
    parser.add_argument("--reps", type=int, default=15, help="repetitions, taken in turn")
    reps = parser.parse_args(arguments).reps
    print("| `manage.py check`, ms: median (least) | without Byrote | with Byrote | more |")
    print("|---|---|---|---|")
    for kind, words in KINDS.items():
        plain: list[Sample] = []
        ours: list[Sample] = []
        check(words), check([*words, "byrote"])  # The first ones fill caches.
        for _ in range(reps):
            plain.append(check(words))
            ours.append(check([*words, "byrote"]))
        for place, name in enumerate(("clock", "processor")):
            sides = [[sample[place] for sample in side] for side in (plain, ours)]
            told = [f"{statistics.median(side):.0f} ({min(side):.0f})" for side in sides]
            more = statistics.median(sides[1]) - statistics.median(sides[0])
            least = min(sides[1]) - min(sides[0])
            print(f"| {kind}, {name} | {' | '.join(told)} | {more:.0f} ({least:.0f}) |", flush=True)
    return 0


def check(words: Sequence[str]) -> Sample:
    """One command, from the start of its process to its end."""
    before, begun = spent(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", PROJECT, *words],
        env=os.environ,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return (time.perf_counter() - begun) * 1000, (spent() - before) * 1000


def spent() -> float:
    """Processor seconds of children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
