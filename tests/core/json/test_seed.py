# SPDX-License-Identifier: MIT
from hashlib import sha256
from uuid import UUID

import pytest

from byrote.core.json.seed import SEED_LABEL, run_digest, seed_of, step_digest, uuid_bits

pytestmark = pytest.mark.pure

DIGEST = sha256(b"a spec").digest()


def test_a_seed_is_the_first_53_bits_of_the_hash() -> None:
    assert seed_of(bytes.fromhex("ff" * 32)) == 2**53 - 1
    assert seed_of(bytes.fromhex("00" * 6 + "0fff" + "ff" * 24)) == 1
    assert seed_of(DIGEST) == int(DIGEST.hex()[:16], 16) // 2**11


def test_uuids_of_a_digest_are_a_sequence_that_never_changes() -> None:
    first, second = (UUID(int=uuid_bits(DIGEST, number)) for number in (0, 1))

    assert str(first) == "d9e2b6be-c926-847b-b708-c2454e4a18e6"
    assert str(second) == "d8a2acca-1651-8b6c-a2de-fae5c373ffa1"
    assert (first.version, first.variant) == (8, "specified in RFC 4122")
    assert uuid_bits(DIGEST[::-1], 0) != first.int


def test_every_step_has_its_own_seed_that_never_changes() -> None:
    seeds = [seed_of(DIGEST), *(seed_of(step_digest(DIGEST, number)) for number in (1, 2, 10_000))]

    assert len(set(seeds)) == 4
    assert step_digest(DIGEST, 1) == sha256(DIGEST + b"step\0\0\0\1").digest()


def test_the_digest_of_a_run_is_that_of_its_id_or_of_the_run_it_repeats() -> None:
    assert run_digest("01AB") == sha256(b"run01ab").digest()
    assert run_digest("x", {"other": "y"}) == run_digest("x")
    assert run_digest("x", {SEED_LABEL: "y"}) == run_digest("y")
