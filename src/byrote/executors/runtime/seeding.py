# SPDX-License-Identifier: MIT
"""Repeatable random numbers: each attempt has a generator that is seeded from its run.

Seeding the global generator at the start of every run would cost more than a small task does, and
would not help where a hundred async tasks draw from it in turns. So the functions of the module
`random` are replaced by ones that look up the calling attempt (see `output.py`), and create its own
generator at its first draw. A run that draws nothing costs nothing; a draw costs a fraction of a
microsecond more. Outside attempts the module is unchanged.

Not reached: names taken from the module before `install` (in a hand it comes before the app is
imported), threads a task starts by itself, processes it forks, `random.Random()` of one's own,
`SystemRandom`, `secrets`, `uuid.uuid4` and `os.urandom`.
"""

import functools
import importlib
import os
import random
import sys
from collections.abc import Callable, Iterable
from typing import Any

from byrote.core.json.seed import seed_of
from byrote.executors.runtime.output import AttemptScope, current_scope, open_scope

Random = random.Random

_FUNCTIONS = (
    "betavariate", "binomialvariate", "choice", "choices", "expovariate", "gammavariate", "gauss",
    "getrandbits", "getstate", "lognormvariate", "normalvariate", "paretovariate", "randbytes",
    "randint", "random", "randrange", "sample", "seed", "setstate", "shuffle", "triangular",
    "uniform", "vonmisesvariate", "weibullvariate",
)  # fmt: skip
_NUMPY = "numpy.random"

_installed: set[str] = set()
_left_alone: set[str] = set()


def seeded(digest: bytes) -> Random:
    """A generator that returns the same numbers for the same digest."""
    return Random(seed_of(digest))


def install(left_alone: Iterable[str] = ()) -> None:
    """Seed `random` for each attempt, except for tasks (`name@version`) named here."""
    _left_alone.update(left_alone)
    if "random" not in _installed:
        _installed.add("random")
        os.register_at_fork(after_in_child=_leave_attempt)
        for name in _FUNCTIONS:
            setattr(random, name, _routed(name, getattr(random, name), _own_random))
    notice_numpy()


def notice_numpy() -> None:
    """Do the same for numpy's global functions and `default_rng()`, as soon as it is imported."""
    if _NUMPY in _installed or "numpy" not in sys.modules or "random" not in _installed:
        return
    if getattr(sys.modules["numpy"].__spec__, "_initializing", False):
        return  # Another thread is importing it; the check at the next batch will find it.
    try:
        # Recent versions import it when it is first used, which may be too late.
        numpy = importlib.import_module(_NUMPY)
    except ImportError:
        return
    shared = getattr(getattr(numpy, "mtrand", None), "_rand", None)
    if shared is None:
        return
    _installed.add(_NUMPY)
    for name in dir(numpy):
        function = getattr(numpy, name)
        if getattr(function, "__self__", None) is shared:
            setattr(numpy, name, _routed(name, function, _own_numpy))
    numpy.default_rng = _default_rng(numpy.default_rng)  # type: ignore[attr-defined]


def _leave_attempt() -> None:
    # Forked processes must not all draw the same numbers.
    open_scope(None)


def _routed(
    name: str, shared: Callable[..., Any], own: Callable[[AttemptScope], Any]
) -> Callable[..., Any]:
    key = f"{own.__name__} {name}"

    @functools.wraps(shared)
    def draw(*args: Any, **kwargs: Any) -> Any:
        scope = current_scope()
        if scope is None:
            return shared(*args, **kwargs)
        method = scope.kept.get(key) if scope.kept is not None else None
        if method is None:
            method = shared if _free(scope) else getattr(own(scope), name)
            scope.keep(key, lambda: method)
        return method(*args, **kwargs)

    return _named(draw, name, "random" if own is _own_random else _NUMPY)


def _named[F: Callable[..., Any]](function: F, name: str, module: str) -> F:
    """The function under the name by which it is found, so that it can be pickled."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    return function


def _free(scope: AttemptScope) -> bool:
    job = scope.job
    return job is None or (bool(_left_alone) and f"{job.task}@{job.version}" in _left_alone)


def _own_random(scope: AttemptScope) -> Random:
    # Not the stream of ctx.random: a task may use both.
    own: Random = scope.keep(
        "random",
        lambda: Random(f"random {seed_of(scope.seed_digest())}"),
    )
    return own


def _own_numpy(scope: AttemptScope) -> Any:
    numpy: Any = sys.modules[_NUMPY]
    return scope.keep("numpy", lambda: numpy.RandomState(_words(scope)))


def _default_rng(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def default_rng(seed: Any = None) -> Any:
        scope = current_scope()
        if seed is None and scope is not None and not _free(scope):
            count = scope.keep("numpy rngs", lambda: [0])
            count[0] += 1
            seed = [*_words(scope), count[0]]
        return original(seed)

    return _named(default_rng, "default_rng", _NUMPY)


def _words(scope: AttemptScope) -> list[int]:
    """The seed as numpy takes it: words of 32 bits."""
    seed = seed_of(scope.seed_digest())
    return [seed & 0xFFFFFFFF, seed >> 32]
