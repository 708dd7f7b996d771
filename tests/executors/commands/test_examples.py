# SPDX-License-Identifier: MIT
"""The example executors work as documented: Node, shell, and the bare `--payload`."""

import sys
from collections.abc import Iterator

import pytest

from byrote.core.command import Command
from byrote.core.json.codec import unpack
from byrote.core.outcome import Failed, Succeeded
from byrote.core.spec import Delivery, describe
from tests.executors.commands.commands import make_commands
from tests.worker.bench import Bench
from tests.worker.harness import ROOT

FOLDER = ROOT / "examples" / "executors"


@pytest.fixture(scope="module")
def examples() -> Iterator[Bench]:
    """Every example as a task."""
    plans = {
        "resize": Command(argv=("node", str(FOLDER / "resize.mjs"))),
        "count_words": Command(argv=(str(FOLDER / "count-words.sh"),), payload="argv"),
        "process": Command(
            argv=(sys.executable, str(FOLDER / "payload.py")), payload="argv-payload"
        ),
        "echo_argv": Command(
            argv=(sys.executable, "-m", "byrote.executor", "--app", "tests.tasks.fates:app"),
            env=("PYTHONPATH",),
            payload="argv",
        ),
    }
    made = Bench(make_commands(plans))
    yield made
    made.close()


def resize(bench: Bench, **kwargs: object) -> object:
    run = bench.lease("resize")
    run.spec_json = describe("resize", 1, [], kwargs, delivery=Delivery()).text
    return bench.outcomes_of([run])[run.id]


@pytest.mark.needs("node")
def test_node_resizes(examples: Bench) -> None:
    outcome = resize(examples, width=4000, height=3000, fit=1000)

    assert isinstance(outcome, Succeeded), outcome
    assert unpack(outcome.text) == {"width": 1000, "height": 750}
    assert outcome.output is not None
    assert "4000x3000 into 1000" in outcome.output.stdout


@pytest.mark.needs("node")
def test_node_can_fail_a_run_for_good(examples: Bench) -> None:
    outcome = resize(examples, width=-1, height=3000, fit=1000)

    assert isinstance(outcome, Failed)
    assert (outcome.final, outcome.fault.type) == (True, "BadSize")


def test_a_shell_script_takes_the_payload_as_an_argument(examples: Bench) -> None:
    outcome = examples.run("count_words", "to be or not to be")

    assert outcome.text == "6"
    assert outcome.output.stdout == "counting for count_words, attempt 1\n"


def test_a_bare_document_is_a_result_for_those_who_take_payload(examples: Bench) -> None:
    assert unpack(examples.run("process", 1).text) == {"status": "ok", "data": "processed [1]"}


def test_our_own_executor_takes_the_payload_as_an_argument_too(examples: Bench) -> None:
    run = examples.lease("echo_argv")
    run.spec_json = describe("echo", 1, [[1.5]], {}, delivery=Delivery()).text

    assert examples.outcomes_of([run])[run.id].text == "[1.5]"
