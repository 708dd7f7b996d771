# SPDX-License-Identifier: MIT
"""The canonical form: one spelling for every JSON value, so that equal specs share a hash.

It is RFC 8785 with one extension: integers are written exactly, whatever their size. A plain
RFC 8785 would round 2**53 + 1 to 2**53, so two payloads would have one hash. It is only ever
hashed; the text as it was sent is stored and delivered. docs/reference/spec-hash.md describes the
format byte by byte, contracts/spec_hash.json holds vectors for other languages.

This is the slow, plain reference; `codec` has a path in C that is tested to agree with it.
"""

import json
from typing import Final

_quote = json.JSONEncoder(ensure_ascii=False).encode  # Escapes exactly what RFC 8785 escapes.


class _Mark(str):
    """Text to copy as it is; distinct from values, which never hold a str subclass."""

    __slots__ = ()


_CLOSE_LIST: Final = _Mark("]")
_CLOSE_DICT: Final = _Mark("}")
_COMMA: Final = _Mark(",")


def canonical(value: object) -> bytes:
    """Returns the canonical form of a plain JSON value. Raises TypeError or ValueError without one.

    It keeps its own stack, so that nesting is bounded by memory and not by the caller's frames.
    """
    written: list[str] = []
    pending: list[object] = [value]
    while pending:
        node = pending.pop()
        cls = type(node)
        if cls is list:
            written.append("[")
            pending.extend(reversed(_list_pieces(node)))  # type: ignore[arg-type]  # Checked by cls.
        elif cls is dict:
            written.append("{")
            pending.extend(reversed(_dict_pieces(node)))  # type: ignore[arg-type]  # Checked by cls.
        else:
            written.append(_scalar(node))
    return "".join(written).encode()


def float_text(number: float) -> str:
    """Write a finite float as ECMAScript does (Number::toString), shortest digits that return."""
    # repr finds the same shortest digits; only where it puts point and exponent differs.
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if not whole.isdecimal():
        raise ValueError("NaN and infinities have no canonical form")
    sign = "-" if number < 0 else ""  # Not for -0.0, which is written as 0.
    fraction = "" if fraction == "0" else fraction
    if not exponent:
        return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"
    return sign + _with_point(whole + fraction, len(whole) + int(exponent))


def _with_point(digits: str, point: int) -> str:
    """Write 0.digits x 10**point the way ECMAScript chooses; repr has dealt with the middle."""
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    head = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{head}e{point - 1:+d}"


def _scalar(node: object) -> str:
    cls = type(node)
    if cls is _Mark:
        return str(node)
    if cls is str:
        return _quote(node)
    if cls is int:
        return str(node)
    if cls is float:
        return float_text(node)  # type: ignore[arg-type]  # Checked by cls.
    if node is None:
        return "null"
    if cls is bool:
        return "true" if node else "false"
    raise TypeError(f"{cls.__name__} has no canonical form")


def _list_pieces(items: list[object]) -> list[object]:
    pieces: list[object] = [_COMMA] * max(2 * len(items) - 1, 0)
    pieces[::2] = items
    pieces.append(_CLOSE_LIST)
    return pieces


def _dict_pieces(members: dict[str, object]) -> list[object]:
    pieces: list[object] = []
    comma = ""
    for key in sorted(members, key=_utf16):
        pieces += (_Mark(f"{comma}{_quote(key)}:"), members[key])
        comma = ","
    pieces.append(_CLOSE_DICT)
    return pieces


def _utf16(key: str) -> bytes:
    # Big-endian bytes compare as UTF-16 code units do. Not key.encode: this refuses other types.
    return str.encode(key, "utf-16-be")
