# SPDX-License-Identifier: MIT
"""Files without a name: memory that is shared with a child process, and peak memory of this one."""

import os
import sys
import tempfile


def make_file(name: str, size: int = 0) -> int:
    """Return the descriptor of a new file of `size` zero bytes, in memory where that exists."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create(f"byrote-{name}")
    else:
        fd, path = tempfile.mkstemp(prefix=f"byrote-{name}-")
        os.unlink(path)  # noqa: PTH108 -- a path as mkstemp returns it.
    os.ftruncate(fd, size)
    return fd


def rss_max_bytes() -> int:
    """Return the peak resident memory of this process."""
    import resource  # noqa: PLC0415 -- absent on Windows, where tasks may be defined and enqueued.

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, Linux KiB.
    return peak if sys.platform == "darwin" else peak * 1024
