# SPDX-License-Identifier: MIT
"""Puts a launcher in front of a command: a sandbox with nothing open by default."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from byrote.core.command import IMAGES, Container, Limits
from byrote.core.run import Leased


class Launch(NamedTuple):
    """The command to start, and its container."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    name: str
    """Unique for the attempt: the name of the container in podman and docker."""
    limits: Limits = Limits()


class _Mount(NamedTuple):
    host: str
    inside: str
    writable: bool


def name_of(run: Leased) -> str:
    """Return a unique name for an attempt's container, of at most 63 characters.

    People look for the run and the attempt, but two replays at once repeat the same ones.
    """
    digest = sha256(run.key.encode()).hexdigest()
    return f"byrote-{run.shown.id[:36]}-{run.shown.attempt}-{digest[:8]}"


def passes_descriptors(container: Container | None) -> bool:
    """Whether descriptor 3 reaches the command; else its result is the last line of stdout."""
    return container is None or container.launcher not in {*IMAGES, "systemd-run"}


def measurable(container: Container | None) -> bool:
    """Whether the resource usage of the started process is that of the program."""
    return container is None or not isinstance(container.launcher, str)


def launcher_argv(container: Container, launch: Launch) -> list[str]:
    """The whole command line, launcher first."""
    match container.launcher:
        case "bwrap":
            return _bubblewrap(container, launch)
        case "podman" | "docker":
            return _image(container, launch)
        case "systemd-run":
            return _systemd(container, launch)
        case prefix:
            return [*prefix, *launch.argv]


def cleanup_argv(container: Container | None, name: str) -> list[str] | None:
    """Return the command that removes a container left by a killed client, or None."""
    if container is None or container.launcher not in IMAGES:
        return None
    return [str(container.launcher), "rm", "--force", name]


def _mounts(container: Container) -> Iterator[_Mount]:
    for mount in container.mounts:
        host, *rest = mount.split(":")
        writable = rest[-1:] == ["rw"]
        yield _Mount(host, (rest[0] if rest and rest[0] != "rw" else "") or host, writable)


def _bubblewrap(container: Container, launch: Launch) -> list[str]:
    argv = ["bwrap", "--die-with-parent", "--unshare-all"]
    if container.network:
        argv.append("--share-net")
    argv += ["--ro-bind" if container.read_only else "--bind", "/", "/"]
    argv += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp"]  # noqa: S108 -- private ones, inside.
    if launch.cwd.startswith(("/tmp/", "/var/tmp/")):  # noqa: S108 -- covered just now.
        # A private tmp must not hide the folder the command is to run in.
        argv += ["--ro-bind", launch.cwd, launch.cwd]
    for mount in _mounts(container):
        argv += ["--bind" if mount.writable else "--ro-bind", mount.host, mount.inside]
    return [*argv, "--chdir", launch.cwd, "--", *launch.argv]


def _image(container: Container, launch: Launch) -> list[str]:
    argv = [str(container.launcher), "run", "--rm", "--interactive", "--init"]
    argv += ["--name", launch.name, "--tmpfs", "/tmp"]  # noqa: S108 -- a private one, inside.
    if not container.network:
        argv += ["--network", "none"]
    if container.read_only:
        argv.append("--read-only")
    for mount in _mounts(container):
        argv += ["--volume", f"{mount.host}:{mount.inside}:{'rw' if mount.writable else 'ro'}"]
    # Kernel limits of the client have no effect in the container: pass them to the engine.
    limits = launch.limits
    argv += [] if limits.memory is None else ["--memory", str(limits.memory)]
    argv += [] if limits.processes is None else ["--pids-limit", str(limits.processes)]
    argv += [] if limits.files is None else ["--ulimit", f"nofile={limits.files}"]
    argv += [] if limits.cpu is None else ["--ulimit", f"cpu={limits.cpu}"]
    # By name only: values come from the client's environment and are in no process list.
    for name in launch.env:
        if name not in {"PATH", "HOME"}:
            argv += ["--env", name]
    return [*argv, str(container.image), *launch.argv]


def _systemd(container: Container, launch: Launch) -> list[str]:
    argv = ["systemd-run", "--pipe", "--wait", "--collect", "--quiet", f"--unit={launch.name}"]
    argv += [f"--working-directory={launch.cwd}", "--property=PrivateTmp=yes"]
    argv += [] if container.network else ["--property=PrivateNetwork=yes"]
    argv += ["--property=ProtectSystem=strict"] if container.read_only else []
    for mount in _mounts(container):
        setting = "BindPaths" if mount.writable else "BindReadOnlyPaths"
        argv.append(f"--property={setting}={mount.host}:{mount.inside}")
    limits = launch.limits
    argv += [] if limits.memory is None else [f"--property=MemoryMax={limits.memory}"]
    argv += [] if limits.processes is None else [f"--property=TasksMax={limits.processes}"]
    argv += [] if limits.files is None else [f"--property=LimitNOFILE={limits.files}"]
    argv += [] if limits.cpu is None else [f"--property=LimitCPU={limits.cpu}"]
    argv += [f"--setenv={name}" for name in launch.env]
    return [*argv, "--", *launch.argv]
