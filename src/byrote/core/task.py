# SPDX-License-Identifier: MIT
"""Tasks: named, versioned functions with a policy, found by name and never by import path."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from byrote.core.command import Command
from byrote.core.errors import BadArguments, BadOption, DuplicateTask, UnknownTask
from byrote.core.json.paths import read_paths
from byrote.core.json.seed import SeedFrom, check_seed
from byrote.core.spec import Delivery, check_name
from byrote.core.text.names import task_name
from byrote.core.typed.converter import (
    ArgumentConverter,
    Converter,
    argument_converter,
    converter_of,
)
from byrote.core.typed.hints import signature_of
from byrote.core.unique import UniqueKey

ALIASES_MAX = 20


class Task(msgspec.Struct, frozen=True):
    """A named function and its policy."""

    name: str
    version: int
    function: Callable[..., Any]
    delivery: Delivery
    is_async: bool
    takes_context: bool
    signature: inspect.Signature
    names: frozenset[str]
    """Parameters that may be given by name."""
    required: frozenset[str]
    open_ended: bool
    """Whether it has `*args`, `**kwargs` or positional-only parameters; then `check` must bind."""
    by_position: tuple[frozenset[str], ...] = ()
    """By the number of positional arguments, the parameters that they fill."""
    command: Command | None = None
    """The program that executes it, if it is not a function in a hand."""
    deterministic: bool = True
    """Whether each attempt has its own seeded `random`."""
    seed: SeedFrom = "run"
    """The source of that `random`, `ctx.random`, `ctx.uuid()` and `ctx.seed`."""
    replay_ignore: tuple[str, ...] = ()
    """Parts of its results that a replay does not compare, see `core/json/paths.py`."""
    files: tuple[str, ...] = ()
    """Data files that it reads, from the folder of its module; their hashes are recorded."""
    memo: timedelta | None = None
    """How long a result is reused for the same spec and the same code; None: never."""
    arguments: ArgumentConverter | None = None
    """Converts its arguments by their annotations; None if all are plain JSON types."""
    result: Converter | None = None
    """Converts its results by the return annotation."""
    aliases: tuple[str, ...] = ()
    """Other names whose runs it executes, chosen by the option `aliases`."""
    bare: str | None = None
    """The default alias; any task of that name has precedence. None: it has none."""
    unique_key: UniqueKey | None = None
    """The key of its runs, or the function that returns it."""

    @property
    def key(self) -> str:
        """Name and version, as workers announce them."""
        return f"{self.name}@{self.version}"

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise BadArguments in the caller for arguments that do not fit the function."""
        if not self.open_ended and len(args) < len(self.by_position):
            filled = self.by_position[len(args)]
            apart = filled.isdisjoint(kwargs) and kwargs.keys() <= self.names
            if apart and self.required <= filled | kwargs.keys():
                return
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BadArguments(f"{self.name}{self.signature}: {error}.") from None


def make_task(  # noqa: PLR0913 -- the options of a task.
    function: Callable[..., Any],
    *,
    name: str | None,
    version: int,
    delivery: Delivery,
    command: Command | None = None,
    deterministic: bool = True,
    seed: SeedFrom = "run",
    replay_ignore: Sequence[str] = (),
    files: Sequence[str] = (),
    memo: timedelta | None = None,
    aliases: Sequence[str] | None = None,
    unique_key: UniqueKey | None = None,
) -> Task:
    """Describe a function as a task; a first parameter named `ctx` receives the context.

    Without a name, it is named after its module and function, and its default alias is the name of
    the function alone.
    """
    if type(version) is not int or not 1 <= version <= 2**31 - 1:
        raise BadOption(f"A task's version is a whole number from 1, not {version!r}.")
    read_paths(replay_ignore)
    check_function(function)
    signature = signature_of(function)
    names = getattr(inspect.unwrap(function), "__globals__", {})
    parameters = list(signature.parameters.values())
    takes_context = bool(parameters) and parameters[0].name == "ctx"
    parameters = parameters[takes_context:]
    placed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    own_signature = signature.replace(parameters=parameters)
    chosen = check_name("task", name or task_name(function))
    bare = None if name or aliases is not None else function.__name__
    return Task(
        name=chosen,
        version=version,
        function=function,
        delivery=delivery,
        is_async=inspect.iscoroutinefunction(function),
        takes_context=takes_context,
        signature=own_signature,
        names=frozenset(p.name for p in named),
        required=frozenset(p.name for p in named if p.default is p.empty),
        open_ended=len(named) != len(parameters),
        by_position=tuple(frozenset(placed[:count]) for count in range(len(placed) + 1)),
        command=command,
        deterministic=deterministic,
        seed=check_seed(seed),
        replay_ignore=tuple(replay_ignore),
        files=check_files(files),
        memo=memo,
        arguments=argument_converter(own_signature, names),
        result=converter_of(signature.return_annotation, names),
        aliases=check_aliases(aliases or ()),
        bare=None if bare == chosen else bare,
        unique_key=unique_key,
    )


def check_function(function: object) -> None:
    """Raise BadOption for a callable that a worker could not find and call as a task."""
    if inspect.isclass(function):
        wrong = f"The class {function.__name__} is not a function; decorate a function that uses it"
    elif inspect.ismethod(function):
        wrong = (
            f"The method {function.__qualname__} has an object that a worker does not have; "
            "decorate a function that makes the object and calls its method"
        )
    elif inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        wrong = f"{function.__name__} is a generator, which has no result; return a list instead"
    elif not callable(function) or not hasattr(function, "__name__"):
        wrong = f"{function!r:.80} is not a function; define one with `def` and decorate that"
    else:
        return
    raise BadOption(f"{wrong}.")


def check_files(files: Sequence[str]) -> tuple[str, ...]:
    """The value of the option `files`; BadOption if it is not a list of texts."""
    if isinstance(files, str) or not all(isinstance(name, str) and name for name in files):
        raise BadOption(f"files is a list of paths, such as ['rates.csv'], not {files!r}.")
    return tuple(files)


def check_aliases(aliases: Sequence[str]) -> tuple[str, ...]:
    """The value of the option `aliases`; BadOption if it is not a list of names."""
    if isinstance(aliases, str):
        raise BadOption(f"aliases is a list of names, such as [{aliases!r}], not {aliases!r}.")
    if len(aliases) > ALIASES_MAX:
        raise BadOption(f"A task has at most {ALIASES_MAX} aliases, not {len(aliases)}.")
    return tuple(check_name("task", alias) for alias in aliases)


def stand_in(name: str, command: Command) -> Callable[..., Any]:
    """Returns the function of a task that only a command can execute; calling it raises."""

    def only_a_command(*_args: Any, **_kwargs: Any) -> Any:
        raise BadOption(
            f"{name} is the program {' '.join(command.argv)!r}; only a worker can execute it."
        )

    # The registry compares definitions by module and qualified name.
    only_a_command.__module__ = "command"
    only_a_command.__qualname__ = repr(command.argv)
    only_a_command.__doc__ = None
    return only_a_command


class Registry:
    """The tasks an app knows, by name and version; iterating yields them without their aliases."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._versions: dict[tuple[str, int], Task] = {}
        self._aliases: dict[tuple[str, int], Task] | None = None

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task: Task) -> None:
        """Register a task. Raises DuplicateTask for another function under its name and version."""
        self._check_aliases(task)
        known = self._tasks.setdefault(task.key, task)
        if not _same(known.function, task.function):
            raise DuplicateTask(
                f"The task {task.key} is defined twice, in {_origin(known.function)} and in "
                f"{_origin(task.function)}. Give one another name or version."
            )
        self.replace(task)

    def _check_aliases(self, task: Task) -> None:
        for other in self:
            both = set(task.aliases) & set(other.aliases)
            if both and other.version == task.version and other.name != task.name:
                raise DuplicateTask(
                    f"{min(both)} is an alias of {other.key} and of {task.key}; keep one of them."
                )

    def replace(self, task: Task) -> None:
        """Register a task in place of the one that has its name and version."""
        self._tasks[task.key] = self._versions[task.name, task.version] = task
        self._aliases = None

    def find(self, name: str, version: int) -> Task:
        """The task by this name, or by this alias, and version."""
        task = self._versions.get((name, version)) or self._by_alias.get((name, version))
        if task is None:
            raise UnknownTask(f"{name}@{version}", list(self._tasks))
        return task

    @property
    def served(self) -> list[Task]:
        """Every task, and each once more for each of its aliases, under that name."""
        return [*self, *self._by_alias.values()]

    @property
    def bare(self) -> list[str]:
        """The default aliases, as `name@version`; tasks of other workers have precedence."""
        return sorted(task.key for task in self._by_alias.values() if task.name == task.bare)

    @property
    def _by_alias(self) -> dict[tuple[str, int], Task]:
        if self._aliases is None:
            chosen = [(alias, task) for task in self for alias in task.aliases]
            default = [(task.bare, task) for task in self if task.bare is not None]
            counts = Counter((alias, task.version) for alias, task in default)
            unique = [(a, task) for a, task in default if counts[a, task.version] == 1]
            # Names win over chosen aliases, and those over default ones.
            self._aliases = {
                (alias, task.version): msgspec.structs.replace(task, name=alias)
                for alias, task in (*unique, *chosen)
                if (alias, task.version) not in self._versions
            }
        return self._aliases

    @property
    def commands(self) -> dict[str, Command]:
        """The tasks that run as separate programs, by name and version."""
        return {
            task.key: task.command
            if task.seed == task.command.seed
            else msgspec.structs.replace(task.command, seed=task.seed)
            for task in self.served
            if task.command is not None
        }

    @property
    def keys(self) -> list[str]:
        """Every task's name and version."""
        return sorted(self._tasks)


def _same(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    # A module imported twice defines the same functions again; two closures of a factory differ.
    if "<locals>" in _origin(one):
        return one is other
    return _origin(one) == _origin(other)


def _origin(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"
