# SPDX-License-Identifier: MIT
"""Writes docs/reference/python.md from signatures and docstrings: `python -m tests.api.pages`.

Signatures are read from the source, so that they are the same on every version of Python.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from byrote.core.schedule.schedule import Timing
from byrote.core.spec import DeliveryOptions
from byrote.sdk.calls.options import How
from byrote.sdk.worker import SdkWorkerOptions

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"
WIDTH = 88

OPENING = """# Python API

<!-- Made from signatures and docstrings by `python -m tests.api.pages`; a test fails when it differs. -->

This page lists the public names of `byrote`, `byrote.testing` and `byrote.sdk`.
Other modules are internal and may change in any release.
A method with an async twin lists both: use the one that begins with `a` in coroutines.
A duration (`timedelta | str | float`, or `DurationLike`) is a `timedelta`, a text such as `"30s"` or `"1h30m"`, or a number of seconds.
"""  # noqa: E501 -- one sentence per line.

SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Define and enqueue tasks",
        "byrote",
        ("App", "TaskGroup", "TaskHandle", "Spec", "Retry", "LargePayload"),
    ),
    ("Read runs", "byrote", ("RunHandle", "Run", "Status", "Artifact")),
    ("Inside a task", "byrote", ("Context", "RetryLater", "Fatal", "Snooze")),
    ("Inside a hook", "byrote", ("FailedAttempt", "EndedRun")),
    (
        "Errors",
        "byrote",
        (
            "ByroteError",
            "RunFailed",
            "RunNotFound",
            "ResultTimeout",
            "WaitTimeout",
            "StepFailed",
            "NonDeterminism",
            "LeaseLost",
        ),
    ),
    ("Tasks that are programs", "byrote", ("Command", "Limits", "Container")),
    ("Verified replay", "byrote", ("Same", "Differs", "NotReplayable")),
    (
        "Tests",
        "byrote.testing",
        (
            "captured_tasks",
            "assert_enqueued",
            "assert_not_enqueued",
            "EnqueuedCall",
            "context",
            "MemoryContext",
            "run_tasks",
            "use_connection",
            "FakeClock",
        ),
    ),
    (
        "Clients and workers of the HTTP service",
        "byrote.sdk",
        (
            "Client",
            "AsyncClient",
            "Handlers",
            "Worker",
            "new_run",
            "NewRun",
            "Accepted",
            "Refused",
            "ServiceUnreachable",
            "UnknownArtifact",
            "ArtifactDamaged",
            "spans",
        ),
    ),
)
HIDDEN = {
    "App": {"address", "astore", "store", "registry", "flush", "logs_failures", "on_finished"},
    "Context": {"of", "root", "reported", "reports", "opened", "unsettled"},
    "RunHandle": {"converter"},
    "Client": {"run"},
    "Handlers": {"flush", "registry", "logs_failures", "on_finished"},
    "Retry": {"delay_before"},
}
"""Members that other packages of Byrote need, and callers do not."""
MADE = {
    *("App", "RetryLater", "Fatal", "Snooze", "FakeClock"),
    *("Client", "AsyncClient", "Handlers", "Worker"),
}
"""Classes that callers make instances of."""
ELSEWHERE = {
    "AsyncClient": "It has the methods of `Client`, as coroutines.",
    "MemoryContext": "It has everything else that `Context` has.",
    "NewRun": "Its fields are those of [the message](messages.md#newrun).",
}
"""Classes whose members are described in another place."""
OPTIONS = {
    "DeliveryOptions": DeliveryOptions,
    "How": How,
    "SdkWorkerOptions": SdkWorkerOptions,
    "Timing": Timing,
}
"""Types of keyword arguments, which a table lists."""

type Function = ast.FunctionDef | ast.AsyncFunctionDef


def page() -> str:
    """The whole page."""
    parts = [OPENING]
    for title, module, names in SECTIONS:
        parts.append(f"## {title}\n")
        parts += [entry(module, name) for name in names]
    return "\n".join(parts)


def entry(module: str, name: str) -> str:
    """A class with its members, or a function."""
    target = getattr(import_module(module), name)
    found = node_of(target)
    if not isinstance(found, ast.ClassDef):
        return function_entry("###", f"{module}.{name}", name, found)
    parts = [f"### `{module}.{name}`\n"]
    made_with = ""
    if constructor := constructor_of(target):
        parts.append(block(f"{name}{arguments(constructor)}"))
        made_with = options(constructor)
    parts += [prose(inspect.getdoc(target) or ""), made_with]
    if issubclass(target, BaseException) and "code" in vars(target):
        parts.append(f"Its `code` is `{target.code}`.\n")
    if name in ELSEWHERE:
        parts.append(ELSEWHERE[name] + "\n")
    if name != "NewRun":
        parts.append(fields(target))
    if name not in ELSEWHERE:
        parts += members(target)
    return "\n".join(part for part in parts if part)


def node_of(target: Any) -> ast.ClassDef | Function:
    """The definition of a class or function in its module."""
    target = inspect.unwrap(target)
    for node in ast.parse(Path(inspect.getfile(target)).read_text(encoding="utf-8")).body:
        known = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if known and node.name == target.__name__:
            return node
    raise LookupError(target)


def ancestry(target: type) -> list[type]:
    """The class and those of Byrote that it inherits from."""
    return [base for base in target.__mro__ if base.__module__.startswith("byrote")]


def constructor_of(target: type) -> Function | None:
    """What the class is called with; None for a type that callers do not make."""
    if target.__name__ not in MADE:
        return None
    for base in ancestry(target):
        node = node_of(base)
        assert isinstance(node, ast.ClassDef)
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
                return inner
    return None


def fields(target: type) -> str:
    """A table of what a record, or the attributes of an object, hold."""
    bases = [target] if target.__name__ in ELSEWHERE else reversed(ancestry(target))
    rows = [row for base in bases for row in field_rows(base)]
    hidden = HIDDEN.get(target.__name__, set())
    shown = {name: row for name, *row in rows if name not in hidden and not name.startswith("_")}
    if not shown:
        return ""
    if issubclass(target, msgspec.Struct):
        lines = ["| Field | Type | Default | Meaning |", "|---|---|---|---|"]
        for name, (kind, default, text) in shown.items():
            value = f"`{cell(default)}`" if default else "required"
            lines.append(f"| `{name}` | `{cell(kind)}` | {value} | {text} |")
    else:
        title = "Value" if issubclass(target, Enum) else "Attribute"
        lines = [f"| {title} | Meaning |", "|---|---|"]
        lines += [f"| `{name}` | {text} |" for name, (_, _, text) in shown.items()]
    return "\n".join(lines) + "\n"


def field_rows(base: type) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and docstring of each documented attribute of a class."""
    node = node_of(base)
    assert isinstance(node, ast.ClassDef)
    if issubclass(base, msgspec.Struct | Enum):
        yield from _attributes(node.body, every=True)
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            yield from _attributes(inner.body, every=False)


def _attributes(body: list[ast.stmt], *, every: bool) -> Iterator[tuple[str, str, str, str]]:
    for statement, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        text = ""
        match after:
            case ast.Expr(value=ast.Constant(value=str(written))):
                text = sentence(written)
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                yield name, ast.unparse(kind), ast.unparse(value) if value else "", text
            case ast.Assign(targets=[ast.Name(id=name)]) if text and every:
                yield name, "", "", text
            case (
                ast.Assign(targets=[ast.Attribute(attr=name)])
                | ast.AnnAssign(target=ast.Attribute(attr=name))
            ) if text and not every:
                yield name, "", "", text


def members(target: type) -> Iterator[str]:
    """The public methods and properties of a class, in the order of its source."""
    hidden = HIDDEN.get(target.__name__, set())
    own = {name: found for name, found in found_members(target) if name not in hidden}
    for name, (owner, found) in own.items():
        if name.startswith("a") and name[1:] in own and twins(own[name[1:]][1], found):
            continue
        twin = f"a{name}" if f"a{name}" in own and twins(found, own[f"a{name}"][1]) else ""
        yield function_entry("####", f"{target.__name__}.{name}", name, found, twin, owner)


def found_members(target: type) -> Iterator[tuple[str, tuple[str, Function]]]:
    """Names of methods, with the class and definition of each; inherited ones at the end."""
    seen: set[str] = set()
    for base in ancestry(target):
        node = node_of(base)
        assert isinstance(node, ast.ClassDef)
        longest: dict[str, Function] = {}
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                longest[inner.name] = best(longest.get(inner.name), inner)
                continue
            match inner:
                case ast.Assign(targets=[ast.Name(id=name)]):
                    if operation := operation_of(vars(base).get(name)):
                        longest[name] = operation
        for name, found in longest.items():
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, (base.__name__, found)


def best(known: Function | None, new: Function) -> Function:
    """Of overloads, the one with most parameters, with the docstring of the implementation."""
    if known is None:
        return new
    wide, narrow = (known, new) if _width(known) >= _width(new) else (new, known)
    if ast.get_docstring(wide) is None and (text := ast.get_docstring(narrow)) is not None:
        wide.body.insert(0, ast.Expr(ast.Constant(text)))
    return wide


def _width(function: Function) -> int:
    return len(function.args.args) + len(function.args.kwonlyargs) + len(function.args.posonlyargs)


def operation_of(attribute: Any) -> Function | None:
    """The script that a method of an app or a client runs, with the result that callers get."""
    script = getattr(attribute, "_make", None)
    if script is None:
        return None
    found = node_of(script)
    assert isinstance(found, ast.FunctionDef)
    match found.returns:
        case ast.Subscript(slice=result):
            found.returns = result
    return found


def twins(one: Function, other: Function) -> bool:
    """Whether two methods take the same arguments."""
    return ast.unparse(one.args) == ast.unparse(other.args)


def function_entry(  # noqa: PLR0917 -- the parts of one entry.
    level: str, title: str, name: str, found: Function, twin: str = "", owner: str = ""
) -> str:
    """A function or method: signature, then docstring."""
    parts = [f"{level} `{title}`\n"]
    if not any(ast.unparse(one).endswith("property") for one in found.decorator_list):
        sign = arguments(found) if owner else arguments(found, method=False)
        asynchronous = "async " if isinstance(found, ast.AsyncFunctionDef) else ""
        result = f" -> {ast.unparse(found.returns)}" if found.returns else ""
        parts.append(block(f"{asynchronous}{name}{sign}{result}"))
    parts.append(prose(ast.get_docstring(found) or ""))
    if table := options(found):
        parts.append(table)
    if twin:
        returns = ast.unparse(found.returns) if found.returns else ""
        word = "async with" if "ContextManager" in returns else "await"
        parts.append(f"In coroutines: `{word} {twin}(…)`.\n")
    return "\n".join(parts)


def arguments(found: Function, *, method: bool = True) -> str:
    """The parameters, without `self`; one on each line where they are many."""
    text = ast.unparse(found.args)
    if method:
        text = re.sub(r"^(self|cls)(, /)?(, )?", "", text)
    each = [spaced(one) for one in split(text)] if text else []
    if len(", ".join(each)) + len(found.name) <= WIDTH:
        return f"({', '.join(each)})"
    return "(\n" + "".join(f"    {one},\n" for one in each) + ")"


def split(text: str) -> Iterator[str]:
    """The parameters of a signature: parted by the commas outside of brackets."""
    depth, start = 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            yield text[start:place].strip()
            start = place + 1
    yield text[start:].strip()


def spaced(parameter: str) -> str:
    """`name: kind = default`, as the formatter writes it."""
    name, colon, rest = parameter.partition(": ")
    kind, equals, default = rest.partition("=")
    shown = "…" if default.startswith("_") or default == "ABSENT" else default
    return f"{name}{colon}{kind}{' = ' if equals else ''}{shown}" if colon else parameter


def options(found: Function) -> str:
    """A table of the keywords that `**name: Unpack[Type]` stands for."""
    match found.args.kwarg:
        case ast.arg(
            annotation=ast.Subscript(value=ast.Name(id="Unpack"), slice=ast.Name(id=kind))
        ):
            node = node_of(OPTIONS[kind])
        case _:
            return ""
    assert isinstance(node, ast.ClassDef)
    lines = ["| Option | Type | Meaning |", "|---|---|---|"]
    lines += [
        f"| `{name}` | `{cell(type_)}` | {text} |"
        for name, type_, _, text in _attributes(node.body, every=True)
    ]
    return "\n".join(lines) + "\n"


def block(code: str) -> str:
    return f"```python\n{code.replace("'", '"')}\n```\n"


def prose(text: str) -> str:
    """A docstring, one sentence on each line."""
    paragraphs = []
    for paragraph in textwrap.dedent(text).strip().split("\n\n"):
        flat = " ".join(paragraph.split())
        paragraphs.append(re.sub(r"(?<=[a-z`)\]][.?!]) (?=[A-Z`])", "\n", flat))
    return "\n\n".join(paragraphs) + "\n"


def sentence(text: str) -> str:
    return cell(" ".join(text.split()))


def cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
