# SPDX-License-Identifier: MIT
"""The files of an embedded server: its directory, and the short directory of its socket."""

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from byrote.embedded.account import Account
from byrote.embedded.binaries import find_binaries
from byrote.embedded.errors import HomeUnusable

ROOT_STATE: Final = Path("/var/lib/byrote")
_SOCKET_BYTES_MAX: Final = 103
"""The smallest sun_path of the systems we know (macOS), without its closing zero."""
_ENTER: Final = 0o1
_SOCKET_NAME: Final = "/.s.PGSQL.65535"


@dataclass(frozen=True, slots=True)
class Home:
    """The files of one embedded server, all in one directory."""

    path: Path

    @property
    def data(self) -> Path:
        """The cluster; it exists only when it is complete."""
        return self.path / "data"

    @property
    def data_new(self) -> Path:
        """Where a cluster is made before it is renamed to `data`."""
        return self.path / "data.new"

    @property
    def log(self) -> Path:
        """The log file of the server."""
        return self.path / "postgres.log"

    @property
    def start_lock(self) -> Path:
        """Held while the server is started, joined, left or stopped."""
        return self.path / "start.lock"

    @property
    def use_lock(self) -> Path:
        """Shared by every process that uses the server."""
        return self.path / "use.lock"

    @property
    def kept(self) -> Path:
        """Marks a server that stays up after its last user has left."""
        return self.path / "kept.json"

    @property
    def digest(self) -> str:
        """Ten characters that distinguish this home from others."""
        return hashlib.sha256(os.fsencode(self.path)).hexdigest()[:10]

    def prepare(self, account: Account | None) -> None:
        """Create the directory, and ensure that the server's user can enter it."""
        try:
            make_directories(self.path)
        except OSError as error:
            raise HomeUnusable(self.path, f"{error.strerror}: {error.filename}") from error
        if account is None or account.reaches(self.path, _ENTER):
            return
        if self.path.stat().st_uid == os.geteuid() and not any(self.path.iterdir()):
            # Made just now (mkdtemp sets mode 0700) and empty: nothing in it needs protection.
            self.path.chmod(0o755)
        if not account.reaches(self.path, _ENTER):
            raise HomeUnusable(
                self.path, f"PostgreSQL must run as {account.name}, which may not enter it"
            )


def home_at(path: Path) -> Home:
    """The home in this directory, by its resolved path."""
    return Home(path.expanduser().resolve())


def default_home(environ: Mapping[str, str]) -> Path:
    """The directory of this user's server: BYROTE_PG_HOME, else one per major version."""
    named = environ.get("BYROTE_PG_HOME")
    if named:
        return Path(named)
    major = str(find_binaries(environ).major)
    if os.geteuid() == 0:
        # Root's own home is 0700: the user the server runs as could not enter it.
        return ROOT_STATE / "pg" / major
    import platformdirs  # noqa: PLC0415 -- seldom needed.

    return platformdirs.user_data_path("byrote", appauthor=False) / "pg" / major


def make_directories(path: Path) -> None:
    """Create a directory and its missing parents; all users can enter those of root."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=0o755 if os.geteuid() == 0 else 0o700)
        except FileExistsError:
            continue
        if os.geteuid() == 0:
            folder.chmod(0o755)  # The umask may have removed the mode; this directory is ours.


def make_socket_dir(home: Home, account: Account | None, environ: Mapping[str, str]) -> Path:
    """Make the directory of the socket: short, private, owned by the server's user.

    Where everyone may write, another user may have put something under its name: a link, a file, a
    directory. It is left alone, and the server gets a directory with a random name;
    clients find it by what the server notes in its data directory.
    """
    folders = [
        Path(environ["XDG_RUNTIME_DIR"]) if environ.get("XDG_RUNTIME_DIR") else None,
        Path(tempfile.gettempdir()),
        Path("/tmp"),  # noqa: S108 - the directory below is private, and checked to be ours
    ]
    for folder in folders:
        if folder is None or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            continue
        path = folder / f"byrote-{os.geteuid()}-{home.digest}"
        fits = len(os.fsencode(path)) + len(_SOCKET_NAME) <= _SOCKET_BYTES_MAX
        if fits and (account is None or account.reaches(folder, _ENTER)):
            if _make_private(path, account):
                return path
            other = Path(tempfile.mkdtemp(prefix="byrote-", dir=folder))
            if _make_private(other, account):
                return other
    raise HomeUnusable(home.path, "no temporary directory is short enough for its socket")


def _make_private(path: Path, account: Account | None) -> bool:
    """Create a directory that only the server's user may enter; returns whether that succeeded."""
    owner = account.uid if account else os.geteuid()
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        # By descriptor and without following links: others may write beside it.
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        # A link, a file, or a directory that another user has closed.
        return False
    try:
        found = os.fstat(fd)
        if found.st_uid not in {owner, os.geteuid()}:
            return False
        if account is not None and found.st_uid != owner:
            os.fchown(fd, account.uid, account.gid)
        if stat.S_IMODE(found.st_mode) != 0o700:
            os.fchmod(fd, 0o700)
    finally:
        os.close(fd)
    return True
