# SPDX-License-Identifier: MIT
from typing import Any

import pytest

from byrote.core.replay.provenance import brief, provenance_diff, provenance_of, seen_by

pytestmark = pytest.mark.pure

DOC: dict[str, Any] = {
    "code": {
        "tasks": {
            "mail@1": {"function": "aa" * 32, "tree": "shop"},
            "pay@1": {"function": "bb" * 32, "tree": "bank"},
        },
        "trees": {"shop": "11" * 32, "bank": "22" * 32},
    },
    "vcs": {"commit": "c0ffee" * 6, "dirty": True},
    "packages": {"numpy": "1.0", "old": "1"},
    "packages_hash": "33" * 32,
    "python": {"version": "3.13.0"},
    "byrote": "0.1.0",
    "executor": "hand",
}


def test_the_same_environment_has_the_same_hash_whatever_its_order() -> None:
    again = dict(reversed(DOC.items()))

    assert provenance_of(again).digest == provenance_of(DOC).digest
    assert provenance_of(DOC | {"executor": "inline"}).digest != provenance_of(DOC).digest


def test_a_task_does_not_see_the_code_of_other_packages() -> None:
    changed = DOC | {
        "code": {
            "tasks": DOC["code"]["tasks"] | {"pay@1": {"function": "cc" * 32, "tree": "bank"}},
            "trees": DOC["code"]["trees"] | {"bank": "44" * 32},
        }
    }

    assert not provenance_diff(DOC, changed, task="mail@1")
    assert [c.path for c in provenance_diff(DOC, changed, task="pay@1").changes] == [
        "/code/function",
        "/code/tree",
    ]


def test_packages_are_listed_as_added_removed_and_changed() -> None:
    changed = DOC | {"packages": {"numpy": "2.0", "new": "1"}, "packages_hash": "55" * 32}
    found = provenance_diff(DOC, changed, task="mail@1").changes

    assert [(c.kind, c.path) for c in found] == [
        ("added", "/packages/new"),
        ("changed", "/packages/numpy"),
        ("removed", "/packages/old"),
    ]


def test_an_unknown_environment_differs_as_a_whole() -> None:
    assert [c.path for c in provenance_diff(None, DOC, task="mail@1").changes] == [""]
    assert not provenance_diff(None, None, task="mail@1")


def test_one_line_has_code_commit_python_and_packages() -> None:
    assert brief(DOC, "mail@1") == (
        "code aaaaaaaaaaaa, in 111111111111, commit c0ffeec0ffee (changed), Python 3.13.0, "
        "2 packages, Byrote 0.1.0, by hand"
    )


def test_a_task_without_measurement_has_unknown_code() -> None:
    assert seen_by(DOC, "other@1")["code"] == {
        "function": None,
        "tree": None,
        "modules": {},
        "files": {},
    }
    assert brief({}, "other@1").startswith("code unknown, in unknown, Python ?")
