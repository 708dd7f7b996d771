# SPDX-License-Identifier: MIT
"""The head of the log's chain in a file, which is replaced as a whole or not at all."""

import contextlib
import os
import tempfile
from pathlib import Path

from byrote.core.errors import BadOption
from byrote.core.log.chain import Head, read_head, written_head


def load_head(path: Path) -> Head | None:
    """Return the head stored in a file, None without a file. Raises BadOption."""
    try:
        return read_head(path.read_bytes(), path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadOption(f"{path} cannot be read: {error.strerror}.") from None


def save_head(path: Path, head: Head) -> None:
    """Replace the file. A crash leaves the old head or the new one. Raises BadOption."""
    try:
        _replace(path, written_head(head))
    except OSError as error:
        raise BadOption(f"{path} cannot be written: {error.strerror}.") from None


def _replace(path: Path, text: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
