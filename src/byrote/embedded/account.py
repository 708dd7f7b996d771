# SPDX-License-Identifier: MIT
"""The user a server runs as: PostgreSQL refuses root, so root changes to another user.

No rights are added for that user: no account is created and no mode of an existing directory is
widened. Files it cannot reach are copied to where it can, or refused with a clear error.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from byrote.embedded.errors import HomeUnusable
from byrote.system.platforms import is_root

STEP_DOWN_TO: Final = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """A user without privileges, by its numbers."""

    name: str
    uid: int
    gid: int

    def reaches(self, path: Path, wanted: int = 0o5) -> bool:
        """Whether this user may enter every directory above `path`, and has `wanted` access."""
        plain = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow the links
        above = {*plain.parents, *plain.resolve().parents}
        return all(self._may(parent, 0o1) for parent in above) and self._may(path, wanted)

    def _may(self, path: Path, wanted: int) -> bool:
        try:
            found = path.stat()
        except FileNotFoundError:
            return False
        mode = stat.S_IMODE(found.st_mode)
        if found.st_uid == self.uid:
            return (mode >> 6) & wanted == wanted
        if found.st_gid == self.gid:
            return (mode >> 3) & wanted == wanted
        return mode & wanted == wanted


def server_account(home: Path, data: Path) -> Account | None:
    """The user to change to, or None if the server can run as the current user."""
    if not is_root():
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        # A cluster that another user created still belongs to that user.
        return Account(f"uid {owner.st_uid}", owner.st_uid, owner.st_gid)
    import pwd  # noqa: PLC0415 -- absent on Windows, where apps without workers import this.

    for name in STEP_DOWN_TO:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    users = " or ".join(STEP_DOWN_TO)
    raise HomeUnusable(home, f"PostgreSQL refuses to run as root and no user {users} exists")
