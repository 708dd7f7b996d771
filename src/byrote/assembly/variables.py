# SPDX-License-Identifier: MIT
"""Every variable `BYROTE_…` that is not a setting, and the error for one that nothing reads.

A misspelt variable would otherwise be ignored, and the worker would run with a default.
"""

import re
from collections.abc import Iterable, Mapping

from byrote.core.errors import BadOption

PREFIX = "BYROTE_"
ENVIRONMENT_ONLY: Mapping[str, str] = {
    "BYROTE_COMMIT": "the commit of the code, for provenance",
    "BYROTE_IMAGE_DIGEST": "the digest of the container image, for provenance",
    "BYROTE_PG_BIN": "the PostgreSQL binaries of the embedded server",
    "BYROTE_PG_DATABASE": "the database on the embedded server",
    "BYROTE_PG_HOME": "the directory of the embedded server",
}
"""Variables that users set and that do not belong in a file."""
PASSED_ON: Mapping[str, str] = {
    "BYROTE_ASK_FD": "to commands: the socket to their worker",
    "BYROTE_AS_OF_US": "to commands: the time of the run",
    "BYROTE_ATTEMPT": "to commands: the number of the attempt",
    "BYROTE_HAND": "to hands: the mark by which orphans are found",
    "BYROTE_HAND_COUNT": "to hands: how many there are",
    "BYROTE_QUEUE": "to commands: the queue of the run",
    "BYROTE_REPLAY": "to commands: whether steps are recorded or live",
    "BYROTE_RESULT_FD": "to commands: where to write the result",
    "BYROTE_RUN_ID": "to commands: the id of the run",
    "BYROTE_SEED": "to commands: the seed of the attempt",
    "BYROTE_SEED_RUN": "to commands: the run whose seed a replay has",
    "BYROTE_TASK": "to commands: the name of the task",
    "BYROTE_WORKER": "to hands: the id of their worker",
}
"""Variables that a worker sets for its child processes, which may call Byrote in turn."""
SHORT_NAMES: Mapping[str, str] = {"BYROTE_TOKEN": "service_token"}
"""Variables read with a warning in place of the setting's own variable."""
TESTS = "BYROTE_TEST_"
"""Prefix of the variables of our own tests."""
KUBERNETES = re.compile(
    r"BYROTE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?"
    r"|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)
"""Variables that Kubernetes sets in every pod of a namespace with a Service named `byrote…`."""


def variable_of(setting: str) -> str:
    """The variable of a setting."""
    return f"{PREFIX}{setting.upper()}"


def known_variables(settings: Iterable[str]) -> set[str]:
    """Every variable that Byrote reads or sets, given the names of the settings."""
    own = {f"{variable_of(name)}{end}" for name in settings for end in ("", "_FILE")}
    return {*own, *ENVIRONMENT_ONLY, *PASSED_ON, *SHORT_NAMES}


def unknown_variables(environ: Iterable[str], settings: Iterable[str]) -> list[str]:
    """The variables `BYROTE_…` that nothing reads, sorted."""
    ours = {name for name in environ if name.startswith(PREFIX) and not name.startswith(TESTS)}
    strange = ours - known_variables(settings)
    return sorted(name for name in strange if not KUBERNETES.fullmatch(name))


def unknown_variable(name: str, settings: Iterable[str]) -> BadOption:
    """The error for a variable that nothing reads, with the nearest one that is read."""
    # An error path only: importing difflib takes longer than the check.
    from difflib import get_close_matches  # noqa: PLC0415

    # Compared without the prefix, which would make all of them similar.
    names = {*map(str.upper, settings), *(one.removeprefix(PREFIX) for one in ENVIRONMENT_ONLY)}
    near = get_close_matches(name.removeprefix(PREFIX), sorted(names), 1, cutoff=0.5)
    advice = f"Do you mean {PREFIX}{near[0]}? If not, unset it" if near else "Unset it"
    return BadOption(
        f"Unknown variable {name}. {advice}; `byrote config show` lists the settings, "
        f"and the variable of each is {PREFIX} and its name in capitals."
    )
