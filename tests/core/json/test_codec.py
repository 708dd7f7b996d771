# SPDX-License-Identifier: MIT
import enum
import json
import math
import pickle
import sys
from collections import Counter, OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from hashlib import sha256
from ipaddress import IPv4Address
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from byrote.core.errors import BadPayload, ByroteError, PayloadTooLarge
from byrote.core.json.canonical import canonical
from byrote.core.json.codec import DEPTH_MAX, PAYLOAD_MAX, check_text, digest_of, pack, unpack

pytestmark = pytest.mark.pure

KEYS = st.text() | st.text(alphabet="a\ud7ff\ue000\uffff\U00010000\U0010ffff", max_size=3)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=30
)
# Pieces of JSON, put together at random: mostly malformed, sometimes barely not.
SCRAPS = st.lists(
    st.sampled_from(
        [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            '"a"',
            '"\\u0061"',
            '"\\ud83d"',
            '"\\ud83d\\ude00"',
            '"',
            "\\",
            "\x01",
            "1",
            "-",
            "0",
            ".5",
            "e9",
            "E400",
            "null",
            "true",
            "NaN",
            "Infinity",
        ]
    )
    | st.sampled_from(" \n"),
    max_size=12,
).map("".join)


class Level(enum.IntEnum):
    HIGH = 1


class Colour(enum.StrEnum):
    RED = "red"


class Text(str):
    __slots__ = ()


class Count(int):
    pass


class Amount(float):
    pass


class Rows(list):
    pass


class Point(msgspec.Struct):
    x: int


@dataclass
class Order:
    number: int


Pair = namedtuple("Pair", "left right")  # noqa: PYI024 -- the untyped kind is what people send.


def nested(depth: int) -> object:
    value: object = []
    for _ in range(depth - 1):
        value = [value]
    return value


def fingerprint(value: object) -> object:
    """Everything the codec promises to keep: types, bits of floats, order of keys."""
    if type(value) is list:
        return ("list", [fingerprint(item) for item in value])
    if type(value) is dict:
        return ("dict", [(type(key), key, fingerprint(item)) for key, item in value.items()])
    return (type(value), value.hex() if type(value) is float else value)


@given(DOCUMENTS)
@example([0.0, -0.0, 1, 1.0, True, 1e16, 10**16, 5e-324, 2**70, {"b": 1, "a": None}])
def test_what_was_packed_comes_back_in_type_value_and_order(value: object) -> None:
    assert fingerprint(unpack(pack(value).text)) == fingerprint(value)


@given(DOCUMENTS)
@example({"\uffff": 1, "\U00010000": 2})
@example({"\U00010000": 1.5, "x": "\uff0c"})
def test_the_digest_is_the_sha_256_of_the_canonical_form(value: object) -> None:
    assert pack(value).digest == sha256(canonical(value)).digest()


@given(DOCUMENTS)
def test_the_digest_can_be_recomputed_from_the_stored_text(value: object) -> None:
    packed = pack(value)

    assert digest_of(packed.text) == packed.digest
    assert digest_of(packed.text.encode()) == packed.digest


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 0, 3]))
def test_text_by_another_writer_is_kept_verbatim_and_hashes_alike(
    value: object, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    packed = check_text(text)

    assert (packed.text, packed.digest) == (text, pack(value).digest)
    assert fingerprint(unpack(packed.text)) == fingerprint(value)


@given(SCRAPS)
@example('{"a":1,"\\u0061":1}')
def test_any_text_is_refused_or_readable_and_digest_of_agrees(text: str) -> None:
    try:
        packed = check_text(text)
    except BadPayload:
        with pytest.raises(BadPayload):
            digest_of(text)
    else:
        assert (packed.text, packed.digest) == (text, digest_of(text))
        assert packed.digest == pack(unpack(text)).digest


@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?", fullmatch=True)
)
@example("1e-400")
@example("9007199254740993.0")
@example("-0")
def test_a_number_in_text_is_read_as_python_reads_it(token: str) -> None:
    number = json.loads(token)
    assume(math.isfinite(number))

    assert fingerprint(unpack(check_text(token).text)) == fingerprint(number)
    assert check_text(token).digest == sha256(canonical(number)).digest()


def test_text_given_by_a_person_keeps_its_whitespace() -> None:
    assert check_text(' {"a": 1.0}\n').text == ' {"a": 1.0}\n'


def test_equal_numbers_share_a_digest_and_keep_their_own_text() -> None:
    one, also_one = pack({"n": 1}), pack({"n": 1.0})

    assert one.digest == also_one.digest
    assert (one.text, also_one.text) == ('{"n":1}', '{"n":1.0}')


REFUSED = [
    (math.nan, "null or a string"),
    (-math.inf, "null or a string"),
    (b"secret", "base64 text"),
    (bytearray(b"secret"), "base64 text"),
    (memoryview(b"secret"), "base64 text"),
    ((1, 2), "a list"),
    (Pair(1, 2), "a list"),
    ({1}, "a list"),
    (frozenset({1}), "a list"),
    (datetime(2026, 1, 1, tzinfo=UTC), "isoformat()"),
    (date(2026, 1, 1), "isoformat()"),
    (time(1, 2), "isoformat()"),
    (timedelta(1), "total_seconds()"),
    (Decimal("1.0"), "str(x)"),
    (UUID(int=1), "str(x)"),
    (IPv4Address("127.0.0.1"), "str(x)"),
    (Path("a"), "str(x)"),
    (Level.HIGH, ".value"),
    (Colour.RED, ".value"),
    (Text("secret"), "str(x)"),
    (Count(1), "int(x)"),
    (Amount(1.5), "float(x)"),
    (Rows([1]), "list(x)"),
    (OrderedDict(a=1), "dict(x)"),
    (defaultdict(int, a=1), "dict(x)"),
    (Counter("a"), "dict(x)"),
    (Order(1), "a dict of plain values"),
    (Point(1), "a dict of plain values"),
    (msgspec.Raw(b"1"), "a dict of plain values"),
    (msgspec.Raw(b"1e400]"), "a dict of plain values"),
    (object(), "a dict of plain values"),
    (1j, "a dict of plain values"),
    (len, "a dict of plain values"),
    ({1: "a"}, "str(key)"),
    ({None: "a"}, "str(key)"),
    ({Text("secret"): 1}, "str(key)"),
    ({Colour.RED: 1}, "str(key)"),
    ("secret\ud800", "valid Unicode"),
    ({"\udc00": 1}, "valid Unicode"),
    (10**4300, "4,300 characters"),
    (-(10**4299), "4,300 characters"),
]


@pytest.mark.parametrize(("value", "advice"), REFUSED, ids=lambda part: type(part).__name__)
def test_what_would_not_come_back_is_refused_with_its_path_and_what_to_send(
    value: object, advice: str
) -> None:
    with pytest.raises(BadPayload) as caught:
        pack({"fine": [1, "x"], "kwargs": {"when": [1, 2.5, value]}})

    assert caught.value.path == "$.kwargs.when[2]"
    assert advice in caught.value.reason
    assert "secret" not in str(caught.value)


def test_the_first_culprit_in_reading_order_is_named() -> None:
    with pytest.raises(BadPayload, match=r"^\$\.a\[1\]\.x: "):
        pack({"a": [1, {"x": (1,)}], "b": b"x"})


def test_an_odd_key_is_quoted_in_the_path_and_a_long_one_cut() -> None:
    with pytest.raises(BadPayload) as caught:
        pack({"odd key\n": {"k" * 1000: {1}}})

    assert caught.value.path == f'$["odd key\\n"]["{"k" * 40}..."]'


def test_the_longest_integer_that_fits_comes_back() -> None:
    value = [10**4300 - 1, 1 - 10**4299]

    assert unpack(pack(value).text) == value
    assert check_text(json.dumps(value)).digest == pack(value).digest


def test_an_integer_this_interpreter_may_not_write_is_refused() -> None:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        with pytest.raises(BadPayload, match="set_int_max_str_digits"):
            pack(10**1000)
    finally:
        sys.set_int_max_str_digits(limit)


def test_an_integer_too_long_is_refused_even_where_python_would_write_it() -> None:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(BadPayload, match="4,300 characters"):
            pack(10**4300)
    finally:
        sys.set_int_max_str_digits(limit)


def test_nesting_up_to_the_limit_comes_back() -> None:
    value = nested(DEPTH_MAX)

    assert unpack(pack(value).text) == value
    assert digest_of(pack(value).text) == sha256(canonical(value)).digest()


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 1500, 5000, 100_000])
def test_nesting_over_the_limit_is_refused_everywhere(depth: int) -> None:
    text = "[" * depth + "]" * depth
    for refuse in (lambda: pack(nested(depth)), lambda: check_text(text), lambda: digest_of(text)):
        with pytest.raises(BadPayload, match="500 levels"):
            refuse()


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: dict[str, object] = {}
    loop["self"] = [loop]

    with pytest.raises(BadPayload, match="500 levels"):
        pack(loop)


def test_many_shallow_containers_are_not_deep() -> None:
    value = [{"a": []} for _ in range(2 * DEPTH_MAX)]

    assert unpack(pack(value).text) == value


def test_size_is_counted_in_bytes_and_the_limit_itself_fits() -> None:
    assert pack("é", limit=4).text == check_text('"é"', limit=4).text == '"é"'
    for refuse in (lambda: pack("é", limit=3), lambda: check_text('"é"', limit=3)):
        with pytest.raises(PayloadTooLarge, match="reference") as caught:
            refuse()
        assert (caught.value.size, caught.value.limit) == (4, 3)


def test_the_default_limit_is_4_mib() -> None:
    assert len(pack("x" * (PAYLOAD_MAX - 2)).text) == 4 * 1024 * 1024
    with pytest.raises(PayloadTooLarge):
        pack("x" * (PAYLOAD_MAX - 1))


@pytest.mark.parametrize("text", [b"\xff", b'"\xed\xa0\x80"', '"\ud800"', "", "nul", "[" * 9])
def test_invalid_json_is_refused_by_every_reader(text: str | bytes) -> None:
    for read in (unpack, digest_of, check_text):
        with pytest.raises(BadPayload):
            read(text)


def test_a_fault_in_text_is_named_with_its_path() -> None:
    with pytest.raises(BadPayload, match=r'^\$\.a\[1\]: The key "b" is given twice'):
        check_text('{"a": [0, {"b": 1, "b": 1}]}')


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadPayload("$.a", "Why."), "bad_payload"),
        (PayloadTooLarge(5, 4), "payload_too_large"),
    ],
)
def test_refusals_are_value_errors_with_a_code_and_survive_pickling(
    error: BadPayload, code: str
) -> None:
    twin = pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own bytes.

    assert issubclass(type(twin), ByroteError)
    assert issubclass(type(twin), ValueError)
    assert (type(twin), twin.code, vars(twin)) == (type(error), code, vars(error))
    assert str(twin) == str(error)
