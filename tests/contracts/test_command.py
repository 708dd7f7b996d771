# SPDX-License-Identifier: MIT
"""Misbehaving commands: each has its own kind of fault, and the worker continues."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from byrote.core.command import Command, Limits, Payload
from byrote.core.json.codec import unpack
from byrote.core.outcome import Cancelled, Crashed, Failed, Fault, Released, Succeeded
from tests.executors.commands.commands import OK, make_commands, shell
from tests.support import until
from tests.worker.bench import Bench
from tests.worker.harness import alive

pytestmark = pytest.mark.xdist_group("executors")

type Start = Callable[..., Bench]


@pytest.fixture
def start() -> Iterator[Start]:
    """A bench for commands, ended with the test."""
    made: list[Bench] = []

    def with_plans(concurrency: int = 10, environment: str = "", **plans: Command) -> Bench:
        made.append(Bench(make_commands(plans, concurrency=concurrency, SECRET=environment)))
        return made[-1]

    yield with_plans
    for bench in made:
        bench.close()


def fault_of(bench: Bench, timeout_ms: int | None = None) -> Fault:
    """How the task `x` fails."""
    run = bench.lease("x", timeout_ms=timeout_ms)
    outcome = bench.outcomes_of([run])[run.id]
    assert isinstance(outcome, Failed)
    return outcome.fault


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("echo rubbish", "garbage"),
        ("echo rubbish >&3", "garbage"),
        ("echo '{}' >&3", "garbage"),
        ("echo '[1]'", "garbage"),
        ("""printf '{"ok": tru' >&3""", "garbage"),
        ("""echo '{"ok": true}{"ok": true}' >&3""", "two_results"),
        ("""echo '{"ok": true}'; echo '{"ok": true}'""", "two_results"),
        ("exit 0", "no_result"),
        ("exec 1>&-; sleep 0.2", "closed_stdout"),
        ("head -c 5000000 /dev/zero >&3", "output_too_large"),
        ("head -c 5000000 /dev/zero | tr '\\0' x", "output_too_large"),
        ("""echo '{"ok": true, "result": 1e999}' >&3""", "bad_result"),
        ("""echo '{"ok": true, "result": "\\ud800"}' >&3""", "bad_result"),
        ("""echo '{"ok": true, "result": {"\\udfff": [1]}}'""", "bad_result"),
        ("""echo '{"ok": true, "result": [NaN]}'""", "bad_result"),
        ("""echo '{"ok": true, "result": {"a": 1, "a": 2}}' >&3""", "bad_result"),
        ("""echo '{"snooze": -1}' >&3""", "garbage"),
    ],
)
def test_every_missing_result_has_its_own_fault(start: Start, script: str, kind: str) -> None:
    fault = fault_of(start(x=shell(f"echo told >&2; {script}")))

    assert (fault.kind, fault.exit_code, fault.stderr) == (kind, 0, "told\n")


def test_an_exit_code_without_an_envelope_is_reported_with_the_end_of_stderr(start: Start) -> None:
    fault = fault_of(start(x=shell("seq 10000 >&2; exit 3")))

    assert (fault.kind, fault.exit_code) == ("exit_code", 3)
    assert fault.stderr is not None
    assert fault.stderr.endswith("9999\n10000\n")
    assert len(fault.stderr) <= 2_000


def test_a_result_does_not_outweigh_an_exit_code(start: Start) -> None:
    assert fault_of(start(x=shell(f"{OK}; exit 1"))).kind == "exit_code"


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGTERM"])
def test_a_signal_is_reported_by_its_name(start: Start, name: str) -> None:
    fault = fault_of(start(x=shell(f"{OK}; kill -{name[3:]} $$")))

    assert (fault.kind, fault.signal, fault.exit_code) == ("killed", name, None)


@pytest.mark.parametrize("program", ["there-is-no-such-program", "/etc/passwd", "/"])
def test_a_program_that_cannot_be_started_is_reported(start: Start, program: str) -> None:
    fault = fault_of(start(x=Command(argv=(program,))))

    assert fault.kind == "cannot_start"
    assert fault.message.startswith(f"{program} cannot be started: ")


def test_a_payload_too_long_for_a_command_line_is_reported(start: Start) -> None:
    bench = start(x=shell(OK, payload="argv"))
    fault = bench.run("x", "y" * 200_000).fault

    assert (fault.kind, "Argument list too long" in fault.message) == ("cannot_start", True)


def test_the_timeout_asks_first(start: Start) -> None:
    fault = fault_of(start(x=shell("trap 'echo bye >&2; exit 0' TERM; sleep 60 & wait")), 300)

    assert (fault.kind, fault.type, fault.stderr) == ("timeout", "TimedOut", "bye\n")


def test_a_process_that_ignores_sigterm_is_killed(start: Start) -> None:
    fault = fault_of(start(x=shell("trap '' TERM; while :; do sleep 0.1; done")), 300)

    assert (fault.kind, fault.type, fault.signal) == ("ignored_sigterm", "TimedOut", "SIGKILL")


@pytest.mark.parametrize(
    "script",
    [
        "sleep 60 & echo $! >> {marks}",
        "setsid sh -c 'echo $$ >> {marks}; sleep 60' &",
        "(setsid sh -c '(sleep 60 & echo $! >> {marks}); sleep 60' &)",
        "(trap '' TERM HUP; setsid sh -c 'echo $$ >> {marks}; exec sleep 60' &)",
    ],
)
def test_no_grandchild_is_left(start: Start, tmp_path: Path, script: str) -> None:
    marks = tmp_path / "marks"
    begun = f"while [ ! -s {marks} ]; do sleep 0.01; done"
    outcome = start(x=shell(f"{script.format(marks=marks)}\n{begun}\n{OK}")).run("x")

    assert isinstance(outcome, Succeeded)
    assert not any(alive(int(pid)) for pid in marks.read_text().split())


def test_a_timeout_takes_those_along_who_slipped_out_of_the_group(
    start: Start, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    fault_of(start(x=shell(f"setsid sh -c 'echo $$ >> {marks}; sleep 60' & sleep 60")), 400)

    assert not alive(int(marks.read_text()))


def test_a_gibibyte_of_output_blocks_nothing_and_its_end_is_kept(start: Start) -> None:
    bench = start(x=shell(f"head -c 1G /dev/zero | tr '\\0' x; echo; echo end; {OK}"))
    run = bench.lease("x")
    outcome = bench.outcomes_of([run], within=60.0)[run.id]

    assert isinstance(outcome, Succeeded)
    assert outcome.output is not None
    assert outcome.output.stdout.endswith("x\nend\n")
    assert len(outcome.output.stdout) == 1 << 20
    assert outcome.output.stdout_dropped == (1 << 30) + 5 - (1 << 20)


def test_both_streams_can_be_full_at_once(start: Start) -> None:
    flood = "head -c 3M /dev/zero | tr '\\0' e >&2 & head -c 3M /dev/zero | tr '\\0' o; wait; echo;"
    outcome = start(x=shell(f"{flood} {OK}")).run("x")

    assert outcome.output.stderr == "e" * (1 << 20)
    assert outcome.output.stderr_dropped == 2 << 20


def test_a_large_payload_reaches_a_command_that_reads_late_and_harms_none_that_does_not(
    start: Start,
) -> None:
    bench = start(x=shell(f"sleep 0.1; wc -c; {OK}"), deaf=shell(OK))
    text = "y" * 3_000_000

    assert int(bench.run("x", text).output.stdout) > 3_000_000
    assert isinstance(bench.run("deaf", text), Succeeded)


def test_a_payload_file_holds_the_document(start: Start) -> None:
    outcome = start(x=shell(f"echo $1; cat $2; {OK}", payload="file")).run("x", "é")

    name, document = outcome.output.stdout.splitlines()
    assert name == "--payload-file"
    assert unpack(document)["spec"]["args"] == ["é"]


def test_a_result_is_kept_byte_for_byte(start: Start) -> None:
    said = """{"b" : 1.0,  "a":-0.0, "n": 123456789012345678901234567890}"""
    outcome = start(x=shell(f"""echo '{{"ok":true,"result": {said} }}' >&3""")).run("x")

    assert outcome.text == said


def test_the_environment_is_clean_but_for_what_is_allowed(start: Start) -> None:
    plans = {"x": shell(f"env; {OK}"), "y": shell(f"env; {OK}", env=("SECRET",))}
    bench = start(environment="canary", **plans)

    clean = dict(line.split("=", 1) for line in bench.run("x").output.stdout.splitlines())
    assert clean.keys() <= {
        "PATH", "HOME", "LC_ALL", "TZ", "PYTHONHASHSEED", "BYROTE_RUN_ID", "BYROTE_TASK",
        "BYROTE_ATTEMPT", "BYROTE_QUEUE", "BYROTE_SEED", "BYROTE_AS_OF_US", "BYROTE_RESULT_FD",
        "PWD", "_", "SHLVL", "OLDPWD",
    }  # fmt: skip
    assert (clean["TZ"], clean["PYTHONHASHSEED"], clean["LC_ALL"]) == ("UTC", "0", "C.UTF-8")
    assert "SECRET=canary" in bench.run("y").output.stdout.splitlines()


def test_a_command_has_its_own_session_and_no_terminal(start: Start) -> None:
    # Of a process: its id, its session, its terminal.
    outcome = start(x=shell(f"awk '{{print $1, $6, $7}}' /proc/$$/stat; {OK}")).run("x")
    pid, session, terminal = outcome.output.stdout.split()

    assert (session, terminal) == (pid, "0")


def test_no_descriptor_of_the_worker_is_open_in_a_command(start: Start) -> None:
    with Path(os.devnull).open() as other:
        os.set_inheritable(other.fileno(), True)
        outcome = start(x=shell(f"ls /proc/$$/fd; {OK}")).run("x")

    assert outcome.output.stdout.split() == ["0", "1", "2", "3"]


def test_limits_are_the_kernels(start: Start) -> None:
    limits = Limits(cpu=7, memory=512 << 20, files=40, processes=900)
    script = f"ulimit -t; ulimit -v; ulimit -n; ulimit -u 2>/dev/null || ulimit -p; {OK}"
    told = start(x=shell(script, limits=limits)).run("x").output.stdout.split()

    assert told == ["7", str(512 << 10), "40", "900"]


def test_too_much_processor_time_ends_a_command(start: Start) -> None:
    fault = fault_of(start(x=shell("while :; do :; done", limits=Limits(cpu=1))))

    assert (fault.kind, fault.signal) == ("killed", "SIGXCPU")


@pytest.mark.parametrize("limits", [Limits(), Limits(files=100)], ids=["spawned", "forked"])
def test_the_usage_of_a_command_is_reported(start: Start, limits: Limits) -> None:
    busy = "n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done"
    usage = start(x=shell(f"{busy}; sh -c '{busy}'; {OK}", limits=limits)).run("x").usage

    assert 1_000 < usage["cpu_us"] <= usage["wall_us"]
    assert usage["rss_max"] > 500_000


def test_a_command_starts_in_its_directory(start: Start, tmp_path: Path) -> None:
    bench = start(x=shell(f"pwd; {OK}", cwd=str(tmp_path)), y=shell(OK, cwd="/no/such/folder"))

    assert bench.run("x").output.stdout.strip() == str(tmp_path)
    assert bench.run("y").fault.kind == "cannot_start"


def test_cancelling_asks_then_kills(start: Start, tmp_path: Path) -> None:
    deaf = shell(f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.1; done")
    bench = start(x=deaf)
    run = bench.lease("x")
    bench.executor.submit([run])
    until((tmp_path / "pid").exists)
    bench.executor.cancel([run])

    assert bench.outcome(run) == Cancelled()


def test_what_waits_for_room_is_given_back(start: Start, tmp_path: Path) -> None:
    bench = start(concurrency=1, x=shell(f"touch {tmp_path}/on; sleep 60"))
    runs = [bench.lease("x") for _ in range(3)]
    bench.executor.submit(runs)
    until((tmp_path / "on").exists)
    bench.executor.give_back()
    until(lambda: len(bench.reports) == 2)
    bench.executor.kill()

    assert [bench.outcome(run) for run in runs] == [Released()] * 3


def test_a_lease_that_has_run_out_ends_the_command(start: Start) -> None:
    bench = start(x=shell("sleep 60"))
    run = bench.lease("x")
    run.deadline = 0.0

    assert bench.outcomes_of([run])[run.id] == Released()


def test_a_killed_launcher_is_replaced_and_no_run_is_charged(start: Start, tmp_path: Path) -> None:
    bench = start(
        x=shell(f"touch {tmp_path}/on; while [ ! -e {tmp_path}/go ]; do sleep .02; done; {OK}")
    )
    run = bench.lease("x")
    bench.executor.submit([run])
    until((tmp_path / "on").exists)
    launcher = bench.executor._launcher._process  # type: ignore[attr-defined]
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.wait()
    (tmp_path / "go").touch()

    assert isinstance(bench.outcome(run), Succeeded)
    assert isinstance(bench.run("x"), Succeeded)


def test_a_command_that_kills_its_warden_goes_down_and_is_given_back(
    start: Start, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    script = f"echo $$ >> {marks}; setsid sleep 60 & echo $! >> {marks}; kill -9 $PPID; sleep 60"
    outcome = start(x=shell(script)).run("x")

    assert isinstance(outcome, Crashed)
    pids = [int(pid) for pid in marks.read_text().split()]
    until(lambda: not any(map(alive, pids)))


def test_a_warden_whose_nest_has_gone_still_takes_its_command_along(
    start: Start, tmp_path: Path
) -> None:
    """The worker cannot clean up after it, so the kernel must."""
    marks = tmp_path / "marks"
    script = (
        f"[ -e {tmp_path}/go ] || {{ {OK}; exit; }}; echo $$ > {marks}; kill -9 $PPID; sleep 60"
    )
    bench = start(x=shell(script))
    assert isinstance(bench.run("x"), Succeeded)
    launcher = bench.executor._launcher._process  # type: ignore[attr-defined]
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.wait()
    (tmp_path / "go").touch()

    assert isinstance(bench.run("x"), Crashed)
    until(lambda: not alive(int(marks.read_text())))


@pytest.mark.parametrize("size", [10, 30_000, 60_000, 120_000])
def test_a_request_may_be_longer_than_a_packet(start: Start, size: int) -> None:
    bench = start(x=shell("""printf '{"ok":true,"result":%d}' ${#4} >&3""", payload="argv"))
    run = bench.lease("x", "a" * size)

    assert unpack(bench.outcomes_of([run])[run.id].text) == len(run.spec_json)


@pytest.mark.parametrize("limits", [Limits(), Limits(files=100)], ids=["spawned", "forked"])
def test_a_command_starts_with_all_signals_at_their_defaults(start: Start, limits: Limits) -> None:
    look = "awk '/^Sig(Ign|Blk)/ {print $2}' /proc/self/status >&2"
    outcome = start(x=shell(f"{look}; {OK}", limits=limits)).run("x")

    # 32 and 33 are the C library's own.
    masks = [int(mask, 16) & ~(3 << 31) for mask in outcome.output.stderr.split()]
    assert masks == [0, 0]


@pytest.mark.parametrize("mode", ["stdin", "file", "argv"])
def test_a_worker_sets_the_default_feed_of_commands(mode: Payload) -> None:
    """What Byrote adds to the command line is counted; a command that has chosen keeps its way."""
    count = shell("""printf '{"ok":true,"result":%d}' $# >&3""")
    chosen = shell("""printf '{"ok":true,"result":"%s"}' "$1" >&3""", payload="argv-payload")
    bench = Bench(make_commands({"x": count, "y": chosen}, payload=mode))

    added = {"stdin": 0, "file": 2, "argv": 4}
    assert unpack(bench.run("x").text) == added[mode]
    assert unpack(bench.run("y").text) == "--payload"
    # Our own executor reads them all.
    assert unpack(bench.run("echo", [1.5]).text) == [1.5]
    bench.close()
