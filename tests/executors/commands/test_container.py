# SPDX-License-Identifier: MIT
"""Launchers in front of commands: the command lines of all, and bubblewrap for real."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from byrote.core.command import Command, Container, Limits
from byrote.core.errors import BadOption
from byrote.core.outcome import Succeeded
from byrote.core.run import ShownAs
from byrote.executors.commands.container import Launch, cleanup_argv, launcher_argv, name_of
from tests.core.leases import leased
from tests.executors.commands.commands import OK, make_commands, require_bubbles, shell
from tests.worker.bench import Bench

LAUNCH = Launch(["prog", "arg"], {"PATH": "/bin", "TZ": "UTC"}, "/srv", "byrote-1-1")
LIMITED = LAUNCH._replace(limits=Limits(memory=1 << 20, cpu=3, files=5, processes=7))


def line(container: Container, launch: Launch = LAUNCH) -> str:
    return " ".join(launcher_argv(container, launch))


@pytest.mark.parametrize("launcher", ["podman", "docker"])
def test_an_engine_runs_the_image_closed(launcher: str) -> None:
    argv = line(Container(launcher=launcher, image="node:20", mounts=("/a", "/b:/c:rw")))

    assert argv.startswith(f"{launcher} run --rm --interactive --init --name byrote-1-1 ")
    assert "--network none --read-only --volume /a:/a:ro --volume /b:/c:rw --env TZ" in argv
    assert argv.endswith(" node:20 prog arg")


def test_a_container_engine_gets_limits_and_permissions() -> None:
    argv = line(Container(launcher="docker", image="i", network=True, read_only=False), LIMITED)

    assert "--network" not in argv
    assert "--read-only" not in argv
    for option in ("--memory 1048576", "--pids-limit 7", "--ulimit nofile=5", "--ulimit cpu=3"):
        assert option in argv


def test_a_container_whose_client_was_killed_is_removed() -> None:
    docker = Container(launcher="docker", image="i")

    assert cleanup_argv(docker, "n") == ["docker", "rm", "--force", "n"]
    assert cleanup_argv(Container(), "n") is None


def test_no_two_attempts_at_once_share_a_containers_name() -> None:
    """Not even replays of one run, which both go by its id and the number of its last attempt."""
    part = ShownAs(leased().id, "default", 2_147_483_647)
    shadows = [leased(id=f"{n}" * 36, shown_as=part) for n in range(3)]
    runs = [leased(), leased(attempt=2), leased(token="other"), *shadows]  # noqa: S106 -- no secret.
    names = [name_of(run) for run in runs]

    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 63
    assert all(leased().id in name for name in names)


def test_systemd_gets_properties() -> None:
    argv = line(Container(launcher="systemd-run", mounts=("/a:/b",)), LIMITED)

    assert argv.startswith("systemd-run --pipe --wait --collect --quiet --unit=byrote-1-1 ")
    for name in ("PrivateTmp=yes", "PrivateNetwork=yes", "ProtectSystem=strict",
                 "BindReadOnlyPaths=/a:/b", "MemoryMax=1048576", "TasksMax=7"):  # fmt: skip
        assert f"--property={name}" in argv
    assert argv.endswith("--setenv=PATH --setenv=TZ -- prog arg")


def test_any_beginning_of_a_command_line_will_do() -> None:
    assert line(Container(launcher=("nice", "-n", "5"))) == "nice -n 5 prog arg"


@pytest.mark.parametrize(
    "options",
    [{"launcher": "chroot"}, {"launcher": "docker"}, {"mounts": ("relative",)}],
    ids=str,
)
def test_a_container_that_makes_no_sense_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(BadOption):
        Container(**options)  # type: ignore[arg-type]


def wrapped(script: str, **options: object) -> Command:
    """A script in a bubble."""
    return shell(script, container=Container(**options))  # type: ignore[arg-type]


@pytest.fixture
def bubble(tmp_path: Path) -> Iterator[Bench]:
    """Commands in bubblewrap, which must be there and allowed to make namespaces."""
    require_bubbles()
    mount = str(tmp_path)
    plans = {
        "ok": wrapped(OK),
        "network": wrapped(f"ls /sys/class/net; cat /proc/net/dev | grep -c :; {OK}"),
        "write": wrapped(f"touch /etc/x 2>&1; touch /x 2>&1; {OK}"),
        "tmp": wrapped(f"ls -A /tmp /var/tmp; touch /tmp/mine && echo written; {OK}"),
        "mounted": wrapped(f"touch {mount}/new && {OK}", mounts=(f"{mount}:{mount}:rw",)),
        "processes": wrapped(f"ls -d /proc/[0-9]* | wc -l; {OK}"),
        "slow": wrapped("sleep 4217 & setsid sleep 4218 & wait"),
    }
    made = Bench(make_commands(plans))
    yield made
    made.close()


def test_a_bubble_passes_the_result_through(bubble: Bench) -> None:
    outcome = bubble.run("ok")

    assert isinstance(outcome, Succeeded), outcome
    assert outcome.text == "1"


def test_a_bubble_has_no_network_but_its_own_loopback(bubble: Bench) -> None:
    assert bubble.run("network").output.stdout.split()[-1] == "1"


def test_a_bubble_cannot_write_to_the_root(bubble: Bench) -> None:
    printed = bubble.run("write").output.stdout

    assert printed.count("Read-only file system") == 2
    assert not Path("/x").exists()


def test_a_bubble_has_its_own_temporary_folder(bubble: Bench) -> None:
    printed = bubble.run("tmp").output.stdout.split()

    # A checkout that is itself below a tmp is the only outside path that is visible.
    here = {part for part in Path.cwd().parts[1:] if Path.cwd().is_relative_to("/tmp")}  # noqa: S108
    here |= {part for part in Path.cwd().parts[2:] if Path.cwd().is_relative_to("/var/tmp")}  # noqa: S108
    assert [word for word in printed if word not in here] == ["/tmp:", "/var/tmp:", "written"]  # noqa: S108 -- inside.
    assert not Path("/tmp/mine").exists()  # noqa: S108 -- that it is not there is the point.


def test_a_mount_can_be_written_to(bubble: Bench, tmp_path: Path) -> None:
    assert isinstance(bubble.run("mounted"), Succeeded)
    assert (tmp_path / "new").exists()


def test_a_bubble_sees_no_process_but_its_own(bubble: Bench) -> None:
    assert int(bubble.run("processes").output.stdout) < 10


def test_a_timeout_leaves_nothing_of_a_bubble(bubble: Bench) -> None:
    run = bubble.lease("slow", timeout_ms=400)
    outcome = bubble.outcomes_of([run])[run.id]
    left = subprocess.run(["pgrep", "-xf", "sleep 421[78]"], capture_output=True, check=False)

    assert outcome.fault.kind == "timeout"
    assert left.stdout == b""


def test_the_usage_of_the_launcher_is_not_reported(bubble: Bench) -> None:
    assert bubble.run("ok").usage is None
