# SPDX-License-Identifier: MIT
import pytest

from byrote.assembly.settings import Settings
from tests.assembly.pages import PAGE, page, table

pytestmark = pytest.mark.pure


def test_the_table_of_settings_agrees_with_the_code() -> None:
    """If this fails: make docs."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_setting_has_a_row_with_its_variable() -> None:
    rows = [row for row in table().splitlines() if row.startswith("| `")]

    assert len(rows) == len(Settings.__struct_fields__)
    assert all("`BYROTE_" in row for row in rows)
