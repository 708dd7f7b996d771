# SPDX-License-Identifier: MIT
"""A wall clock that is wrong, for one process and its children: a preloaded library.

Monotonic time is not changed: leases depend on it, and it never jumps on any machine.
"""

import shutil
import subprocess
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long skew(void) { const char *s = getenv("TORTURE_SKEW_S"); return s ? atol(s) : 0; }
int clock_gettime(clockid_t id, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(id, now);
  if (!done && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += skew();
  return done;
}
int gettimeofday(struct timeval *now, void *zone) {
  static int (*real)(struct timeval *, void *);
  if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
  int done = real(now, zone);
  if (!done) now->tv_sec += skew();
  return done;
}
time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
"""


def build(folder: Path) -> Path | None:
    """Build the library; returns None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library, source = folder / "skew.so", folder / "skew.c"
    if not library.exists():
        source.write_text(SOURCE)
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 -- our own.
        if done.returncode:
            return None
    return library
