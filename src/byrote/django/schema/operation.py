# SPDX-License-Identifier: MIT
"""The operation of our Django migrations: applies Byrote's numbered SQL files, and reverts them.

`byrote migrate` and `manage.py migrate` keep one ledger, the table byrote_schema: whichever comes
second finds the work done.
"""

from typing import Any

from django.db.migrations.operations.base import Operation

from byrote.django.backend.database import raw_connection, schema_of
from byrote.store.migrate import apply, migrations, removal


class SchemaMigration(Operation):
    """Brings the schema from one number to another."""

    reversible = True
    reduces_to_sql = False

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Do nothing: the operations beside this one change the state."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Apply the files that the database does not have yet."""
        del from_state, to_state
        if not _wanted(app_label, schema_editor):
            return
        wanted = [m for m in migrations() if self.first <= m.version <= self.last]
        home = schema_of(schema_editor.connection.alias)
        if schema_editor.collect_sql:
            schema_editor.collected_sql += [step.script(home) for step in wanted]
            return
        with raw_connection(schema_editor.connection) as raw:
            for step in wanted:
                apply(raw, step, home)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Drop everything that the files created."""
        del from_state, to_state
        if not _wanted(app_label, schema_editor):
            return
        drop = removal(schema_of(schema_editor.connection.alias))
        if schema_editor.collect_sql:
            schema_editor.collected_sql.append(drop.decode())
            return
        with raw_connection(schema_editor.connection) as raw:
            raw.execute(drop, prepare=False)

    def describe(self) -> str:
        """Return the text that `migrate --plan` prints."""
        return f"Apply Byrote's migrations {self.first:04} to {self.last:04}"


def _wanted(app_label: str, schema_editor: Any) -> bool:
    from django.db import router  # noqa: PLC0415 -- migrations are read before apps are ready.

    connection = schema_editor.connection
    allowed = router.allow_migrate(connection.alias, app_label)
    return bool(allowed) and connection.vendor == "postgresql"
