# SPDX-License-Identifier: MIT
from pathlib import Path

from tests.tidy.sources import faults, functions, python_files

FILES = python_files("src", "tests", "bench", "examples")


def test_the_tidy_tests_look_at_something() -> None:
    assert len(FILES) > 50


def test_no_file_is_over_400_lines() -> None:
    def too_long(path: Path) -> int:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        return lines if lines > 400 else 0

    assert faults(FILES, too_long) == {}


def test_no_function_is_over_60_lines() -> None:
    def long(path: Path) -> dict[str, int]:
        return {f.name: size for f in functions(path) if (size := lines_of(f)) > 60}

    assert faults(FILES, long) == {}


def lines_of(function: object) -> int:
    return function.end_lineno - function.lineno + 1  # type: ignore[attr-defined,no-any-return]


def test_every_file_has_its_licence_in_its_first_line() -> None:
    def silent(path: Path) -> bool:
        return not path.read_text(encoding="utf-8").startswith("# SPDX-License-Identifier: MIT\n")

    assert faults(FILES, silent) == {}


def test_nine_functions_in_ten_are_under_25_lines() -> None:
    sizes = [lines_of(function) for path in python_files("src") for function in functions(path)]

    assert sum(size < 25 for size in sizes) >= 0.9 * len(sizes)
