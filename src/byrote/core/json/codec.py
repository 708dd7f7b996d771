# SPDX-License-Identifier: MIT
"""JSON in and out, exactly: a task receives the types and values that were sent.

JSON encoders convert in silence: a tuple comes back as a list, NaN as null, a datetime as text.
`pack` refuses such values; its error has the path and what to send instead.

The hot path checks this without a walk in Python: `marshal` refuses every subclass of the
plain types (IntEnum, OrderedDict, str subclasses), and comparing the value with what the text
decodes to finds the rest. The bytes from marshal are discarded.
"""

import json
import marshal
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

import msgspec

from byrote.core.errors import BadPayload, PayloadTooLarge
from byrote.core.json.canonical import canonical, float_text
from byrote.core.json.refusal import DEPTH_MAX, INT_LENGTH_MAX, Members, find_fault

__all__ = [
    "DEPTH_MAX",
    "INT_LENGTH_MAX",
    "PAYLOAD_LARGE",
    "PAYLOAD_MAX",
    "Packed",
    "check_text",
    "digest_of",
    "pack",
    "unpack",
]

PAYLOAD_MAX: Final = 4 * 1024 * 1024
"""Bytes of JSON a payload may have unless its queue has another limit."""

PAYLOAD_LARGE: Final = 256 * 1024
"""Bytes of JSON above which a caller is advised to pass a reference."""

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def _canonical_float(token: str) -> msgspec.Raw:
    return msgspec.Raw(float_text(float(token)).encode())


# A shape is the decoded value with every float already in canonical spelling.
_decode_shape = msgspec.json.Decoder(float_hook=_canonical_float).decode

_SCALARS = frozenset({int, bool, str, type(None)})
"""Types that always come back exactly and are canonical as encoded; floats are not."""
_SCALAR_MAX = 1_000
"""Bytes; far below where integers are too long."""

_ASCII = bytes(range(128))
_HIGH = re.compile(rb"[\xee\xef]")  # The first bytes of U+E000..U+FFFF in UTF-8,
_ASTRAL = re.compile(rb"[\xf0-\xf4]")  # and of U+10000 and above.


class Packed(msgspec.Struct, frozen=True, gc=False):
    """A value on its way to the database."""

    text: str
    """The JSON text that is stored and delivered, verbatim."""
    digest: bytes
    """The SHA-256 of the text's canonical form, 32 bytes."""


def pack(value: object, *, limit: int = PAYLOAD_MAX) -> Packed:
    """Returns `value` as JSON that comes back exactly, with its hash. Raises BadPayload."""
    try:
        raw = _encode(value)
    except (TypeError, ValueError, RecursionError):
        raise _refusal(value) from None
    if len(raw) > limit:
        raise PayloadTooLarge(len(raw), limit)
    if type(value) in _SCALARS and len(raw) <= _SCALAR_MAX:
        return Packed(raw.decode(), sha256(raw).digest())
    try:
        shape = _decode_shape(raw)
        exact = _comes_back(value, shape, raw)
    except (ValueError, RecursionError, msgspec.DecodeError):
        raise _refusal(value) from None
    if not exact or _too_deep(shape, raw):
        raise _refusal(value)
    return Packed(raw.decode(), _digest(shape, raw))


def unpack(text: str | bytes) -> Any:
    """Returns exactly the value that was packed."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadPayload("$", f"This is not JSON text that Byrote wrote: {error}") from None
    except RecursionError:
        raise BadPayload("$", f"Nested over {DEPTH_MAX} levels deep.") from None


def digest_of(text: str | bytes) -> bytes:
    """Returns the hash of a stored text. Raises BadPayload where `check_text` does."""
    raw = _utf8(text)
    value = unpack(raw)
    if _too_deep(value, raw):
        raise _refusal(value)
    # Text that our encoder would write byte for byte has no duplicate key; other text is parsed.
    if _encode(value) != raw:
        _refuse_faults(raw)
    return _digest(_decode_shape(raw), raw)


def check_text(text: str | bytes, *, limit: int = PAYLOAD_MAX) -> Packed:
    """Accept JSON text from outside and store it byte for byte, whitespace included.

    Refused: malformed JSON, a key given twice, NaN and Infinity, numbers beyond a float's range,
    lone surrogates, and what is too long, too deep or too large.
    """
    raw = _utf8(text)
    if len(raw) > limit:
        raise PayloadTooLarge(len(raw), limit)
    _refuse_faults(raw)
    return Packed(raw.decode(), digest_of(raw))


def _comes_back(value: Any, shape: object, raw: bytes) -> bool:
    """Whether the text decodes to `value`. Raises ValueError if a type in it is not plain."""
    marshal.dumps(value, 4)
    # Floats make a shape differ from its value; only then is the text decoded once more.
    return bool(shape == value or _decode(raw) == value)


def _digest(shape: object, raw: bytes) -> bytes:
    form = _encode_sorted(shape)
    if not form.isascii() and _sorts_differently(form):
        form = canonical(_decode(raw))
    return sha256(form).digest()


def _sorts_differently(form: bytes) -> bool:
    # UTF-8 and UTF-16 order differ only between U+E000..U+FFFF and U+10000 and above.
    unusual = form.translate(None, _ASCII)
    return bool(_HIGH.search(unusual) and _ASTRAL.search(unusual))


def _too_deep(value: object, raw: bytes) -> bool:
    if raw.count(b"[") + raw.count(b"{") <= DEPTH_MAX:
        return False  # Nearly every payload has too few brackets to be too deep.
    level = _containers([value])
    for _ in range(DEPTH_MAX):
        level = [inner for outer in level for inner in _containers(outer)]
    return bool(level)


def _containers(outer: Any) -> list[Any]:
    inner: Iterable[Any] = outer.values() if type(outer) is dict else outer
    return [item for item in inner if type(item) is dict or type(item) is list]


def _refusal(value: object) -> BadPayload:
    return find_fault(value) or BadPayload(
        "$",
        "The value did not come back exactly from JSON: another thread changed it meanwhile, "
        "or sys.set_int_max_str_digits forbids an integer in it. Send a value that stays as it is.",
    )


def _utf8(text: str | bytes) -> bytes:
    try:
        if isinstance(text, str):
            return text.encode()
        text.decode()
    except UnicodeError:
        raise BadPayload("$", "The JSON text is not valid UTF-8; send UTF-8.") from None
    return text


def _refuse_faults(raw: bytes) -> None:
    """Raise BadPayload with its path: json finds faults that msgspec accepts."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=Members, parse_int=_bounded_int)
    except json.JSONDecodeError as error:
        raise BadPayload("$", f"Malformed JSON: {error}.") from None
    except RecursionError:
        raise BadPayload("$", f"Nested over {DEPTH_MAX} levels deep.") from None
    if fault := find_fault(value):
        raise fault


def _bounded_int(token: str) -> int:
    # Whatever is too long becomes an integer that is too long, so that the walk reports its path.
    return int(token) if len(token) <= INT_LENGTH_MAX else 10**INT_LENGTH_MAX
