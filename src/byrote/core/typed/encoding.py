# SPDX-License-Identifier: MIT
"""Values of annotated types to plain JSON, checked against the annotation on the way.

msgspec reads the annotation (`msgspec.inspect`) and converts back; writing is done here because
msgspec's own writer does not check the types of fields, converts what is inside of `Any`, and
writes sets in the order of this process.

The check is that of a type checker, and a bit more: a subclass of a dataclass, a bool for an int or
a datetime for a date would not come back as it was sent.
"""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import inspect as mi

from byrote.core.errors import BadPayload
from byrote.core.json.refusal import Trail, path_text
from byrote.core.typed import custom

type Encode = Callable[[Any, Trail], Any]
"""Returns a value as plain JSON. Raises BadPayload with the path of a part that does not fit."""

_PLAIN: Final[dict[type, tuple[type, ...]]] = {
    mi.NoneType: (NoneType,),
    mi.BoolType: (bool,),
    mi.IntType: (int,),
    mi.FloatType: (float, int),
    mi.StrType: (str,),
}
_TEXT: Final[dict[type, type]] = {
    mi.BytesType: bytes,
    mi.ByteArrayType: bytearray,
    mi.DateTimeType: datetime,
    mi.TimeType: time,
    mi.DateType: date,
    mi.TimeDeltaType: timedelta,
    mi.UUIDType: UUID,
    mi.DecimalType: Decimal,
}
"""Types with one text, from msgspec; their subclasses have the same."""
_SEQUENCES: Final[dict[type, type]] = {
    mi.ListType: list,
    mi.VarTupleType: tuple,
    mi.SetType: set,
    mi.FrozenSetType: frozenset,
}
_OF_SUBCLASS: Final[dict[type, Callable[[Any], Any]]] = {
    bytes: lambda value: msgspec.to_builtins(bytes(value)),
    bytearray: lambda value: msgspec.to_builtins(bytearray(value)),
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: lambda value: msgspec.to_builtins(
        timedelta(value.days, value.seconds, value.microseconds)
    ),
}
_json = msgspec.json.Encoder().encode


def is_plain(node: mi.Type) -> bool:
    """Whether values of the type are sent as they are."""
    match node:
        case mi.AnyType() | mi.LiteralType():
            return True
        case mi.ListType():
            return is_plain(node.item_type)
        case mi.DictType():
            return isinstance(node.key_type, mi.StrType | mi.AnyType) and is_plain(node.value_type)
        case mi.UnionType():
            return all(map(is_plain, node.types))
        case _:
            return type(node) in _PLAIN


def encoder(node: mi.Type) -> Encode | None:
    """Returns the encoder of a type, None if a part of it cannot be converted."""
    try:
        return _Encoders().of(node)
    except _Unsupported:
        return None


class WrongType(BadPayload):
    """A value of another type than the annotation's."""


class _Unsupported(Exception):
    """A part of an annotation that cannot be converted."""


class _Encoders:
    """The encoders of one annotation; a class that contains itself has one."""

    def __init__(self) -> None:
        self._classes: dict[Any, Encode] = {}

    def of(  # noqa: C901, PLR0911 -- one return per kind of type.
        self, node: mi.Type
    ) -> Encode:
        """Returns the encoder of a part of the annotation."""
        cls = type(node)
        if cls in _PLAIN:
            return _exact(*_PLAIN[cls])
        if cls in _TEXT:
            return _text(_TEXT[cls])
        match node:
            case mi.AnyType():
                return _as_it_is
            case mi.LiteralType():
                return _one_of(node.values)
            case mi.EnumType():
                return _enum(node.cls)
            case mi.UnionType():
                return self._union(node)
            case mi.DictType():
                return _mapping(self.of(node.key_type), self.of(node.value_type))
            case mi.TupleType():
                return _tuple([self.of(item) for item in node.item_types])
            case mi.ListType() | mi.VarTupleType() | mi.SetType() | mi.FrozenSetType():
                return _sequence(_SEQUENCES[cls], self.of(node.item_type))
            case mi.CustomType() if custom.is_supported(node.cls):
                return _custom(node.cls)
            case mi.StructType() | mi.DataclassType() | mi.TypedDictType() | mi.NamedTupleType():
                return self._class(node)
            case _:
                raise _Unsupported

    def _union(self, node: mi.UnionType) -> Encode:
        members = [self.of(member) for member in node.types]
        expected = " | ".join(map(name_of, node.types))

        def encode(value: Any, trail: Trail) -> Any:
            deeper: BadPayload | None = None
            for member in members:
                try:
                    return member(value, trail)
                except BadPayload as error:
                    if not isinstance(error, WrongType) or error.path != path_text(trail):
                        deeper = error
            raise deeper or _misfit(trail, expected, value)

        return encode

    def _class(
        self, node: mi.StructType | mi.DataclassType | mi.TypedDictType | mi.NamedTupleType
    ) -> Encode:
        known = self._classes.get(node.cls)
        if known is not None:
            return known
        fields: list[tuple[mi.Field, Encode]] = []
        cls = getattr(node.cls, "__origin__", node.cls)

        def encode(value: Any, trail: Trail) -> Any:
            if type(value) is not cls:
                raise _misfit(trail, cls.__name__, value)
            return write(value, trail)

        match node:
            case mi.NamedTupleType():
                write = _items(fields)
            case mi.TypedDictType():
                write, cls = _members(fields), dict
            case mi.StructType(array_like=True):
                write = _attributes_in_order(fields, node.tag)
            case mi.StructType(tag_field=str(tag_field)):
                write = _attributes(fields, {tag_field: node.tag})
            case _:
                write = _attributes(fields, {})
        self._classes[node.cls] = encode
        fields.extend((field, self.of(field.type)) for field in node.fields)
        return encode


def name_of(node: mi.Type) -> str:
    """Returns the name of a type as an error shows it."""
    cls = type(node)
    if cls in _PLAIN:
        return "None" if cls is mi.NoneType else _PLAIN[cls][0].__name__
    found = _TEXT.get(cls) or _SEQUENCES.get(cls) or getattr(node, "cls", None)
    return getattr(found, "__name__", None) or cls.__name__.removesuffix("Type").lower()


def _misfit(trail: Trail, expected: str, value: object) -> BadPayload:
    given = "None" if value is None else type(value).__name__
    return WrongType(path_text(trail), f"The task's annotation is {expected}; {given} was given.")


def _as_it_is(value: Any, _trail: Trail) -> Any:
    return value


def _exact(*types: type) -> Encode:
    expected = "None" if types == (NoneType,) else types[0].__name__

    def encode(value: Any, trail: Trail) -> Any:
        if type(value) not in types:
            raise _misfit(trail, expected, value)
        return value

    return encode


def _text(cls: type) -> Encode:
    def encode(value: Any, trail: Trail) -> Any:
        if not isinstance(value, cls) or (cls is date and isinstance(value, datetime)):
            raise _misfit(trail, cls.__name__, value)
        if type(value) is cls:
            return msgspec.to_builtins(value)
        # Subclasses, such as the UUID of asyncpg, which msgspec refuses.
        return _OF_SUBCLASS.get(cls, str)(value)

    return encode


def _one_of(values: tuple[Any, ...]) -> Encode:
    def encode(value: Any, trail: Trail) -> Any:
        if not any(type(value) is type(one) and value == one for one in values):
            raise _misfit(trail, f"Literal{list(values)!r}", value)
        return value

    return encode


def _enum(cls: type) -> Encode:
    def encode(value: Any, trail: Trail) -> Any:
        if not isinstance(value, cls):
            raise _misfit(trail, cls.__name__, value)
        return msgspec.to_builtins(value)

    return encode


def _custom(cls: type) -> Encode:
    def encode(value: Any, trail: Trail) -> Any:
        if not custom.fits(cls, value):
            raise _misfit(trail, cls.__name__, value)
        try:
            return custom.dump(cls, value)
        except BadPayload as error:
            raise BadPayload(path_text(trail) + error.path[1:], error.reason) from None

    return encode


def _sequence(cls: Any, item: Encode) -> Encode:
    def encode(value: Any, trail: Trail) -> Any:
        if type(value) is not cls:
            raise _misfit(trail, cls.__name__, value)
        plain = [item(one, (trail, index)) for index, one in enumerate(value)]
        if cls is set or cls is frozenset:
            # The order of a set differs between processes; equal sets must have equal hashes.
            plain.sort(key=_json)
        return plain

    return encode


def _tuple(items: list[Encode]) -> Encode:
    def encode(value: Any, trail: Trail) -> Any:
        if type(value) is not tuple:
            raise _misfit(trail, "tuple", value)
        if len(value) != len(items):
            reason = f"The task's annotation is a tuple of {len(items)} items, not of {len(value)}."
            raise BadPayload(path_text(trail), reason)
        return [
            item(one, (trail, index))
            for index, (item, one) in enumerate(zip(items, value, strict=True))
        ]

    return encode


def _mapping(key: Encode, item: Encode) -> Encode:
    def encode(value: Any, trail: Trail) -> Any:
        if type(value) is not dict:
            raise _misfit(trail, "dict", value)
        plain = {}
        for name, one in value.items():
            text = key(name, trail)
            text = str(text) if type(text) is int else text
            if text in plain:
                raise BadPayload(path_text(trail), "Two keys have the same JSON form; send one.")
            plain[text] = item(one, (trail, str(text)))
        return plain

    return encode


type _Fields = list[tuple[mi.Field, Encode]]


def _attributes(fields: _Fields, tag: dict[str, Any]) -> Encode:
    def write(value: Any, trail: Trail) -> Any:
        plain = dict(tag)
        for field, encode in fields:
            one = getattr(value, field.name)
            if one is not msgspec.UNSET:
                plain[field.encode_name] = encode(one, (trail, field.name))
        return plain

    return write


def _attributes_in_order(fields: _Fields, tag: Any) -> Encode:
    def write(value: Any, trail: Trail) -> Any:
        plain = [
            encode(getattr(value, field.name), (trail, field.name)) for field, encode in fields
        ]
        return plain if tag is None else [tag, *plain]

    return write


def _items(fields: _Fields) -> Encode:
    def write(value: Any, trail: Trail) -> Any:
        return [
            encode(one, (trail, field.name))
            for (field, encode), one in zip(fields, value, strict=True)
        ]

    return write


def _members(fields: _Fields) -> Encode:
    by_name = fields

    def write(value: Any, trail: Trail) -> Any:
        known = {field.name: encode for field, encode in by_name}
        for name in value:
            if name not in known:
                reason = f"The task's annotation has no member {str(name)[:40]!r}."
                raise BadPayload(path_text(trail), reason)
        return {name: known[name](one, (trail, name)) for name, one in value.items()}

    return write
