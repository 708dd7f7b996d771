# SPDX-License-Identifier: MIT
import re
import uuid
from concurrent.futures import ThreadPoolExecutor

from byrote.assembly.clock import now
from byrote.assembly.identity import jitter, new_id, new_ids, new_token, worker_id
from byrote.core.spec import check_name


def test_an_id_is_a_uuid_of_version_seven_made_now() -> None:
    made = uuid.UUID(new_id())

    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert abs((made.int >> 80) / 1_000 - now().timestamp()) < 5
    assert str(made) == str(uuid.UUID(str(made)))


def test_ids_rise_even_within_a_millisecond() -> None:
    ids = [new_id() for _ in range(5_000)] + new_ids(5_000) + [new_id() for _ in range(5_000)]

    assert ids == sorted(ids)
    assert len(set(ids)) == 15_000


def test_many_ids_are_as_good_as_one() -> None:
    for made in map(uuid.UUID, new_ids(1_000)):
        assert (made.version, made.variant) == (7, uuid.RFC_4122)


def test_ids_of_many_threads_are_unique_and_each_threads_rise() -> None:
    def make(_: int) -> list[str]:
        return [new_id() for _ in range(1_000)] + new_ids(1_000)

    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(make, range(8)))

    assert len({run_id for part in parts for run_id in part}) == 16_000
    assert all(part == sorted(part) for part in parts)


def test_a_token_is_128_random_bits_in_the_form_of_a_uuid() -> None:
    tokens = {new_token() for _ in range(1_000)}

    assert len(tokens) == 1_000
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", t) for t in tokens)
    fixed = {i for i in range(36) if len({t[i] for t in tokens}) == 1}
    assert fixed == {8, 13, 18, 23}


def test_every_start_of_a_worker_has_its_own_name() -> None:
    assert worker_id() != worker_id()
    assert check_name("worker", worker_id())


def test_jitter_is_between_zero_and_one() -> None:
    drawn = [jitter() for _ in range(1_000)]

    assert all(0.0 <= value < 1.0 for value in drawn)
    assert len(set(drawn)) > 990
