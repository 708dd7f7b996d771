# SPDX-License-Identifier: MIT
"""The vectors other languages test against; to add one, write its text and run these tests."""

import json
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from byrote.core.errors import BadPayload
from byrote.core.json.canonical import canonical
from byrote.core.json.codec import check_text, digest_of, unpack

CONTRACTS = Path(__file__).parents[2] / "contracts"
CONTRACT = json.loads((CONTRACTS / "spec_hash.json").read_text(encoding="utf-8"))
NODE = shutil.which("node")
needs_node = pytest.mark.needs("node")


def run_node(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(CONTRACTS / "check_spec_hash.mjs")
    return subprocess.run(
        [str(NODE), script, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("vector", CONTRACT["vectors"], ids=lambda vector: vector["name"])
def test_a_vector_has_the_form_and_the_hash_it_names(vector: dict[str, str]) -> None:
    form = canonical(unpack(vector["text"]))

    assert form.decode() == vector["canonical"]
    assert sha256(form).hexdigest() == vector["sha256"]
    assert digest_of(vector["text"]).hex() == vector["sha256"]
    packed = check_text(vector["text"])
    assert (packed.text, packed.digest.hex()) == (vector["text"], vector["sha256"])


@pytest.mark.parametrize("vector", CONTRACT["vectors"], ids=lambda vector: vector["name"])
def test_a_canonical_form_is_its_own_canonical_form(vector: dict[str, str]) -> None:
    assert digest_of(vector["canonical"]).hex() == vector["sha256"]


@pytest.mark.parametrize("refused", CONTRACT["refused"], ids=lambda refused: refused["name"])
def test_a_refused_text_is_refused(refused: dict[str, str]) -> None:
    for read in (check_text, digest_of):
        with pytest.raises(BadPayload):
            read(refused["text"])


def test_every_vector_has_its_own_name() -> None:
    names = [each["name"] for each in CONTRACT["vectors"] + CONTRACT["refused"]]

    assert len(names) == len(set(names)) > 100


@needs_node
def test_javascript_computes_the_same_hashes() -> None:
    done = run_node()

    assert (done.returncode, done.stderr) == (0, "")
    assert f"{len(CONTRACT['vectors'])} vectors" in done.stdout


@needs_node
def test_the_javascript_check_notices_a_wrong_vector_and_a_text_not_refused(tmp_path: Path) -> None:
    wrong = CONTRACT["vectors"][0] | {"name": "wrong", "canonical": "nil"}
    broken = {"vectors": [wrong], "refused": [{"name": "fine", "text": "[]"}]}
    (tmp_path / "broken.json").write_text(json.dumps(broken), encoding="utf-8")
    done = run_node(str(tmp_path / "broken.json"))

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "wrong: canonical form is null",
        "fine: must be refused",
    ]
