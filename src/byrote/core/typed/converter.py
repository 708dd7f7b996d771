# SPDX-License-Identifier: MIT
"""Converts the arguments and results of a task by its annotations, both ways.

A caller's values become plain JSON before the spec is hashed, and a worker's values become those of
the annotated types before the call. A converter is made once per task, when it is defined, and is
None for a task whose annotations are plain JSON types, which therefore pays nothing.

A parameter without an annotation, with `Any`, or with one that cannot be converted (a class of the
project that is not a dataclass or a model; `str | Path`, which JSON does not distinguish) follows
the rules of JSON: plain values are sent as they are, others are refused.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Protocol

import msgspec

from byrote.core.errors import BadPayload
from byrote.core.json.refusal import Trail, path_text
from byrote.core.typed import custom
from byrote.core.typed.hints import PLAIN, hint_of

type _Arguments = tuple[list[Any], dict[str, Any]]

_PATH = re.compile(r" - at (?:`key` in )?`\$(.*?)`$", re.DOTALL)


class Converter(Protocol):
    """Converts values of one annotated type."""

    def dump(self, value: Any, trail: Trail = None) -> Any:
        """Returns the value as plain JSON. Raises BadPayload if it does not fit."""

    def load(self, plain: Any, trail: Trail = None) -> Any:
        """Returns the value of the annotated type. Raises BadPayload if it does not fit."""


class ValueConverter:
    """Converts values of one type."""

    def __init__(self, hint: Any, encode: Callable[[Any, Trail], Any]) -> None:
        self._hint = hint
        self._encode = encode

    def dump(self, value: Any, trail: Trail = None) -> Any:
        """Returns the value as plain JSON that `load` accepts."""
        try:
            plain = self._encode(value, trail)
            self.load(plain, trail)
        except RecursionError:
            reason = "The value contains itself or is nested too deep; send a flatter value."
            raise BadPayload(path_text(trail), reason) from None
        return plain

    def load(self, plain: Any, trail: Trail = None) -> Any:
        """Returns the value of the annotated type."""
        try:
            return msgspec.convert(plain, self._hint, str_keys=True, dec_hook=custom.load)
        except msgspec.ValidationError as error:
            raise _refusal(error, trail) from None


class LateConverter:
    """Converts values of a type that is defined after the task, if it is ever defined."""

    def __init__(self, annotation: Any, names: Mapping[str, Any]) -> None:
        self._annotation = annotation
        self._names = names

    @cached_property
    def _converter(self) -> ValueConverter | None:
        try:
            return _value_converter(hint_of(self._annotation, self._names))
        except NameError:
            return None

    def dump(self, value: Any, trail: Trail = None) -> Any:
        """Returns the value as plain JSON; as it is, if its type cannot be resolved."""
        return value if self._converter is None else self._converter.dump(value, trail)

    def load(self, plain: Any, trail: Trail = None) -> Any:
        """Returns the value of the annotated type; as it is, if that cannot be resolved."""
        return plain if self._converter is None else self._converter.load(plain, trail)


class ArgumentConverter:
    """Converts the arguments of one task; parameters without a converter are left alone."""

    def __init__(self, converters: Mapping[str, Converter], signature: inspect.Signature) -> None:
        parameters = list(signature.parameters.values())
        self._converters = converters
        self._placed = [
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        self._named = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
        self._rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
        self._named_rest = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), "")

    def dump(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Arguments:
        """Returns the arguments of a call as plain JSON."""
        return self._each(args, kwargs, "dump")

    def load(self, args: list[Any], kwargs: dict[str, Any]) -> _Arguments:
        """Returns the arguments to call the function with."""
        return self._each(args, kwargs, "load")

    def _each(self, args: Any, kwargs: dict[str, Any], way: str) -> _Arguments:
        placed = [self._one(way, *self._at(index), one) for index, one in enumerate(args)]
        named = {
            name: self._one(way, name if name in self._named else self._named_rest, (None, name), x)
            for name, x in kwargs.items()
        }
        return placed, named

    def _at(self, index: int) -> tuple[str, Trail]:
        if index < len(self._placed):
            return self._placed[index], (None, self._placed[index])
        return self._rest, ((None, self._rest), index - len(self._placed))

    def _one(self, way: str, name: str, trail: Trail, value: Any) -> Any:
        converter = self._converters.get(name)
        if converter is None:
            return value
        return converter.dump(value, trail) if way == "dump" else converter.load(value, trail)


def converter_of(annotation: Any, names: Mapping[str, Any]) -> Converter | None:
    """Returns the converter of an annotation, None if its values are plain or not convertible."""
    if _is_simple(annotation):
        return None
    try:
        return _value_converter(hint_of(annotation, names))
    except NameError:
        return LateConverter(annotation, names)


def argument_converter(
    signature: inspect.Signature, names: Mapping[str, Any]
) -> ArgumentConverter | None:
    """Returns the converter of a task's arguments, None if no parameter needs one."""
    found = {p.name: converter_of(p.annotation, names) for p in signature.parameters.values()}
    converters = {name: one for name, one in found.items() if one is not None}
    return ArgumentConverter(converters, signature) if converters else None


def _is_simple(hint: Any) -> bool:
    try:
        return hint in PLAIN
    except TypeError:  # `Annotated` with a list, for example, cannot be hashed.
        return False


def _value_converter(hint: Any) -> ValueConverter | None:
    if _is_simple(hint):
        return None
    # Imported when a task needs it: it takes 3 ms, and most tasks have plain annotations.
    from msgspec.inspect import type_info  # noqa: PLC0415

    from byrote.core.typed.encoding import encoder, is_plain  # noqa: PLC0415

    try:
        node = type_info(hint)
    except (TypeError, RecursionError):
        return None
    encode = None if is_plain(node) else encoder(node)
    return None if encode is None else ValueConverter(hint, encode)


def _refusal(error: msgspec.ValidationError, trail: Trail) -> BadPayload:
    """Returns the error of msgspec with its path from the arguments on."""
    text = str(error)
    found = _PATH.search(text)
    path = path_text(trail) + (found.group(1) if found else "")
    if isinstance(error.__cause__, BadPayload):
        return BadPayload(path + error.__cause__.path[1:], error.__cause__.reason)
    return BadPayload(path, f"{_PATH.sub('', text)}.")
