# SPDX-License-Identifier: MIT
"""Writes docs/reference/messages.md from the types of the wire: `python -m tests.service.pages`."""

import ast
import inspect
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from byrote.service.routes.table import ENDPOINTS
from byrote.wire import bulk, leases, messages, problems, progress

MEANINGS = tomllib.loads(Path(__file__).with_name("meanings.toml").read_text(encoding="utf-8"))
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "messages.md"
MODULES = (messages, bulk, leases, progress, problems)
NAME_PATTERN = "^[A-Za-z0-9_](?:"

OPENING = """# Messages of the HTTP protocol

<!-- Made from the types of `byrote.wire` by `python -m tests.service.pages`; a test fails when it differs. -->

This page lists the fields of every request and answer body of [the protocol](protocol.md).
A field without a default is *required* in a request, or *always* present in an answer.
A request with an unknown field is refused; clients must ignore unknown fields in answers.

A *name* is 1 to 200 letters, digits, `_`, `.`, `:`, `/` and `-`, beginning and ending with a letter, digit or `_`.
A *duration* is text such as `"30s"`, `"10m"`, `"1h30m"`, `"250ms"` (at most 40 characters).
A *UUID* is accepted in upper or lower case.
A *moment* is RFC 3339 in UTC, as in `"2026-11-10T17:00:00.5Z"`.
An *integer* is written without a fraction: `1.0` is refused.
"""  # noqa: E501 -- one sentence per line.


def page() -> str:
    """The whole page: requests first, then answers, each in the order of the routes."""
    parts, components = [OPENING], described()
    bodies = [name for name in reachable("body", components) if name in components]
    replies = [name for name in reachable("reply", components) if name not in bodies]
    meanings = meanings_by_type()
    for title, names, there in (("Requests", bodies, "required"), ("Answers", replies, "always")):
        parts.append(f"## {title}\n")
        parts += [
            section(name, components[name], meanings.get(name, {}), there=there) for name in names
        ]
    return "\n".join(parts)


def described() -> dict[str, Any]:
    """The JSON schemas of every body, by name."""
    types = [t for e in ENDPOINTS for t in (e.body, e.reply, e.batch_reply) if t is not None]
    return msgspec.json.schema_components([*types, problems.Problem], ref_template="{name}")[1]


def reachable(side: str, components: dict[str, Any]) -> list[str]:
    """Names of the types that requests, or answers, are made of, in the order of the routes."""
    found: list[str] = []

    def visit(schema: Any) -> None:
        if isinstance(schema, list):
            for item in schema:
                visit(item)
        elif isinstance(schema, dict):
            name = schema.get("$ref")
            if isinstance(name, str) and name not in found:
                found.append(name)
                visit(components[name])
            for value in schema.values():
                visit(value)

    for endpoint in ENDPOINTS:
        types = (endpoint.body,) if side == "body" else (endpoint.reply, endpoint.batch_reply)
        known = [t for t in types if t is not None]
        visit(list(msgspec.json.schema_components(known, ref_template="{name}")[0]))
    if side == "reply":
        visit({"$ref": "Problem"})
    return found


def section(name: str, schema: dict[str, Any], meanings: dict[str, str], *, there: str) -> str:
    """One message: its fields in a table; an enumeration: its values."""
    if "properties" not in schema:
        return f"### {name}\n\n{kind_of(schema)}\n"
    first = " ".join((schema.get("description") or "").split())
    required = schema.get("required", ())
    lines = [
        f"### {name}\n",
        first,
        "",
        "| Field | Type | Default | Meaning |",
        "|---|---|---|---|",
    ]
    for field, of in schema["properties"].items():
        default = there if field in required else default_of(of)
        meaning = meanings.get(field) or description_of(of) or meaning_of(name, field)
        lines.append(f"| `{field}` | {kind_of(of)} | {default} | {cell(meaning)} |")
    return "\n".join(lines) + "\n"


def description_of(schema: dict[str, Any]) -> str:
    """The docstring of the type, unless it repeats the opening."""
    text = str(schema.get("description", ""))
    return "" if text == "A UUID." else text


def meaning_of(name: str, field: str) -> str:
    """What a field means; KeyError for one that has no entry."""
    meaning: str = MEANINGS["fields"].get(f"{name}.{field}") or MEANINGS["names"][field]
    return meaning


def default_of(schema: dict[str, Any]) -> str:
    """A field's default, in JSON; absent where leaving it out means more than a value."""
    if "default" not in schema:
        return "absent"
    return f"`{msgspec.json.encode(schema['default']).decode()}`"


def kind_of(schema: dict[str, Any]) -> str:  # noqa: PLR0911 -- one return per kind of schema.
    """A schema in words."""
    if "$ref" in schema:
        return f"[{schema['$ref']}](#{schema['$ref'].lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind_of(option) for option in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {kind_of(schema.get('items', {}))}{bounds(schema, 'Items')}"
        case "object":
            of = schema.get("additionalProperties")
            return f"object of {kind_of(of)}{bounds(schema, 'Properties')}" if of else "object"
        case "string":
            return text_of(schema)
        case "number" | "integer" as kind:
            return f"{kind}{numbers(schema)}"
        case None:
            return "any JSON value"
        case kind:
            return str(kind)


def text_of(schema: dict[str, Any]) -> str:  # noqa: PLR0911 -- one return per kind of text.
    """A text in words."""
    pattern = schema.get("pattern", "")
    if schema.get("format") == "date-time":
        return "moment"
    if schema.get("contentEncoding") == "base64":
        return f"base64{bounds(schema, 'Length')}"
    if "{8}-[0-9a-fA-F]{4}" in pattern:
        return "UUID"
    if "{64}" in pattern:
        return "64 hexadecimal digits"
    if pattern.startswith(NAME_PATTERN):
        return "`name@version`" if "@" in pattern else "name"
    if schema.get("description", "").startswith("Such as `30s`"):
        return "duration"
    return f"text{bounds(schema, 'Length')}"


def bounds(schema: dict[str, Any], of: str) -> str:
    """How many, where it is bounded."""
    least, most = schema.get(f"min{of}"), schema.get(f"max{of}")
    if most is None:
        return ""
    return f", {least} to {most:,}" if least else f", at most {most:,}"


def numbers(schema: dict[str, Any]) -> str:
    """A number's range, where it has one."""
    least, most = schema.get("minimum"), schema.get("maximum")
    if most is None:
        return "" if least is None else f", at least {least:,}"
    return f", {least:,} to {most:,.0f}" if least is not None else f", at most {most:,.0f}"


def cell(text: str) -> str:
    """A text for one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def meanings_by_type() -> dict[str, dict[str, str]]:
    """The docstrings of the fields, by type and field."""
    return {name: dict(fields) for module in MODULES for name, fields in documented(module)}


def documented(module: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each class of a module and its documented fields, inherited ones included."""
    known: dict[str, list[tuple[str, str]]] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        inherited = [known.get(base.id, []) for base in node.bases if isinstance(base, ast.Name)]
        fields = [field for fields in inherited for field in fields]
        for field, after in zip(node.body, node.body[1:], strict=False):
            match field, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    fields.append((name, text))
        known[node.name] = fields
        yield node.name, fields


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
