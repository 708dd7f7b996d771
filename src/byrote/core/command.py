# SPDX-License-Identifier: MIT
"""Tasks that run as separate programs: command line, payload, limits and container."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from byrote.core.errors import BadOption
from byrote.core.json.seed import SeedFrom, check_seed

type Payload = Literal["stdin", "file", "argv", "argv-payload"]
"""`stdin` and `file` (`--payload-file PATH`) carry the document with spec and context;
`argv` is `--task-path NAME --payload-json SPEC`, `argv-payload` is `--payload SPEC`."""

PAYLOADS = ("stdin", "file", "argv", "argv-payload")
LAUNCHERS = ("bwrap", "podman", "docker", "systemd-run")
IMAGES = frozenset({"podman", "docker"})


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Kernel limits for the process of one attempt; `None` keeps the worker's own limit."""

    cpu: int | None = None
    """Seconds of processor time; then SIGXCPU, and SIGKILL a second later."""
    memory: int | None = None
    """Bytes of address space."""
    files: int | None = None
    """Files open at once."""
    processes: int | None = None
    """Processes and threads of the same user at once; the kernel does not apply it to root."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise BadOption(f"The limit {name} is a whole number from 1, not {value!r}.")


class Container(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sandbox for a command: no network and a read-only file system by default."""

    launcher: str | Sequence[str] = "bwrap"
    """`bwrap`, `podman`, `docker`, `systemd-run`, or the beginning of a command line."""
    image: str | None = None
    """The image that podman and docker run."""
    network: bool = False
    """Whether the program may use the network."""
    read_only: bool = True
    """Whether the root file system is read-only; `/tmp` is private and writable either way."""
    mounts: Sequence[str] = ()
    """`/host`, `/host:/inside` or `/host:/inside:rw`; read-only unless it ends with `rw`."""

    def __post_init__(self) -> None:
        if isinstance(self.launcher, str) and self.launcher not in LAUNCHERS:
            known = ", ".join(LAUNCHERS)
            raise BadOption(
                f"{self.launcher!r} is not a launcher; choose one of {known}, or pass its "
                "command line as a tuple."
            )
        if self.launcher in IMAGES and not self.image:
            raise BadOption(f"{self.launcher} needs an image.")
        _as_tuple(self, "mounts")
        if not isinstance(self.launcher, str):
            _as_tuple(self, "launcher")
        for mount in self.mounts:
            if not mount.startswith("/") or mount.count(":") > 2:
                raise BadOption(
                    f"{mount!r} is not a mount; write /host, /host:/in or /host:/in:rw."
                )


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A program that executes one attempt and reports its outcome on descriptor 3 or stdout."""

    argv: Sequence[str] = ()
    """The program and its arguments; empty: `python -m byrote.executor` for the worker's app."""
    payload: Payload | None = None
    """How it receives spec and context; absent: the worker's `--payload-mode`, else stdin."""
    env: Sequence[str] = ()
    """Names of the worker's environment variables that are passed on to it."""
    cwd: str | None = None
    """The folder it starts in; absent: the worker's."""
    limits: Limits = Limits()
    """Limits of its process."""
    container: Container | None = None
    """The sandbox it runs in; absent: none."""
    seed: SeedFrom = "run"
    """The source of its seed; set by the option `seed` of its task."""

    def __post_init__(self) -> None:
        if self.payload not in (None, *PAYLOADS):
            raise BadOption(
                f"A payload is passed by {', '.join(PAYLOADS)}, not by {self.payload!r}."
            )
        check_seed(self.seed)
        _as_tuple(self, "argv")
        _as_tuple(self, "env")
        for text in (*self.argv, *self.env, self.cwd or ""):
            if not isinstance(text, str) or "\x00" in text:
                raise BadOption(f"A command consists of strings without NUL, not of {text!r}.")
        if any("=" in name or not name for name in self.env):
            raise BadOption("env names variables that are allowed through; it does not set them.")


def _as_tuple(record: msgspec.Struct, name: str) -> None:
    """Replace a list by a tuple, since the record is frozen; a plain string is refused."""
    value = getattr(record, name)
    if isinstance(value, str):
        raise BadOption(f"{name} is a list of texts, not the text {value!r}.")
    msgspec.structs.force_setattr(record, name, tuple(value))


def command_of(executor: "str | Command | None") -> Command | None:
    """Returns the command that `executor=` of a task stands for; None is the worker's default."""
    match executor:
        case None | "hand":
            return None
        case "command":
            return Command()
        case "container":
            return Command(container=Container())
        case Command():
            return executor
        case _:
            raise BadOption(
                f"A task's executor is 'hand', 'command', 'container' or a Command, "
                f"not {executor!r}."
            )
