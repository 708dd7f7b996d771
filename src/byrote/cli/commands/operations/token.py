# SPDX-License-Identifier: MIT
"""`byrote token`: tokens of the HTTP service and their rights."""

from datetime import timedelta

import click
import msgspec

from byrote.assembly.identity import new_id, new_secret
from byrote.cli.database import open_store
from byrote.cli.lazy import ListingGroup
from byrote.cli.options import DurationParam, database_options
from byrote.cli.output.tables import print_json, print_table
from byrote.core.errors import BadOption, ByroteError
from byrote.core.spec import check_name
from byrote.core.text.ids import token_digest
from byrote.core.text.printable import one_line
from byrote.store import queries
from byrote.store.queries.tokens import TokenRow
from byrote.store.runners.sync import Store

HEADS = ("id", "name", "role", "queues", "tasks", "created", "expires", "used", "state")
ROLES = ("enqueue", "work", "read", "admin")
OVERLAP = timedelta(days=1)


class UnknownToken(ByroteError, LookupError):
    """No token has this id or name."""

    code = "unknown_token"


@click.group(cls=ListingGroup, epilog="Example: byrote token create shop --role enqueue")
def token() -> None:
    """Create, list, rotate and revoke tokens of the service. Without a command, list them."""


@token.command(epilog="Example: byrote token create mailer --role work --queue mail --expires 90d")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What it may do.")
@click.option("--queue", "queues", multiple=True, help="Only this queue; may be given many times.")
@click.option("--task", "tasks", multiple=True, help="Only this task; may be given many times.")
@click.option("--expires", type=DurationParam(), help="After how long it ends, as in 90d.")
@click.option("--rate", type=click.IntRange(1, 1_000_000), help="Requests a second, per service.")
@database_options
def create(
    name: str,
    *,
    role: str,
    queues: tuple[str, ...],
    tasks: tuple[str, ...],
    expires: timedelta | None,
    rate: int | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Create a token and print it once: only its hash is stored.

    Roles: enqueue (send, cancel, retry and replay runs, and see them), work (claim and finish),
    read (see everything), admin (everything). Without --queue and --task it is for all of them.
    """
    check_name("token", name)
    for what, names in (("queue", queues), ("task", tasks)):
        for given in names:
            check_name(what, given)
    secret, token_id = new_secret(), new_id()
    with open_store(url) as store:
        store.all(
            queries.create_token(
                id=token_id,
                digest=token_digest(secret),
                name=name,
                role=role,
                queues=queues or ("*",),
                tasks=tasks or ("*",),
                expires=expires,
                rate=rate,
            )
        )
    _show(token_id, secret, as_json=as_json)


def _show(token_id: str, secret: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"id": token_id, "token": secret})
        return
    click.echo(secret)
    click.echo(f"Store it now: it is not shown again. Its id is {token_id}.", err=True)


@token.command("list", epilog="Example: byrote token list --json")
@database_options
def list_tokens(*, url: str | None, as_json: bool) -> None:
    """List tokens: what they may do, and when they were last used."""
    with open_store(url) as store:
        found = store.all(queries.tokens())
    if as_json:
        for row in found:
            print_json(msgspec.structs.asdict(row))
    else:
        print_table(HEADS, map(_row, found), empty="No tokens yet.")


def _row(row: TokenRow) -> tuple[object, ...]:
    return (
        row.id,
        row.name,
        row.role,
        ",".join(row.queues),
        ",".join(row.tasks),
        f"{row.created_at:%Y-%m-%d}",
        "" if row.expires_at is None else f"{row.expires_at:%Y-%m-%d %H:%M}",
        "" if row.used_at is None else f"{row.used_at:%Y-%m-%d %H:%M}",
        "good" if row.revoked_at is None else "revoked",
    )


@token.command(epilog="Example: byrote token revoke shop")
@click.argument("which", metavar="ID|NAME")
@database_options
def revoke(which: str, *, url: str | None, as_json: bool) -> None:
    """Revoke a token; services refuse it within five seconds."""
    with open_store(url) as store:
        row = _find(store, which)
        store.all(queries.revoke_token(row.id))
    if as_json:
        print_json({"id": row.id, "revoked": True})
    else:
        click.echo(one_line(f"{row.name} ({row.id}) is revoked."))


@token.command(epilog="Example: byrote token rotate shop --overlap 1h")
@click.argument("which", metavar="ID|NAME")
@click.option(
    "--overlap",
    type=DurationParam(),
    default=OVERLAP,
    help="How long the old one still works.  [1d]",
)
@click.option("--expires", type=DurationParam(), help="After how long the new one ends.")
@database_options
def rotate(
    which: str,
    *,
    overlap: timedelta,
    expires: timedelta | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Put a new token with the same rights beside an old one, which ends after the overlap."""
    secret, token_id = new_secret(), new_id()
    with open_store(url) as store:
        row = _find(store, which)
        query = queries.rotate_token(
            old=row.id, id=token_id, digest=token_digest(secret), overlap=overlap, expires=expires
        )
        if not store.all(query):
            raise BadOption(f"{row.name} is revoked; create a new token.")
    _show(token_id, secret, as_json=as_json)


def _find(store: Store, which: str) -> TokenRow:
    """The token with this id, or the only good one with this name."""
    found = store.all(queries.tokens())
    matching = [row for row in found if row.id == which.lower()]
    matching = matching or [row for row in found if row.name == which and row.revoked_at is None]
    if not matching:
        raise UnknownToken(f"No token {which!r}; `byrote token list` shows them.")
    if len(matching) > 1:
        raise BadOption(f"{len(matching)} tokens are named {which!r}; use the id of one.")
    return matching[0]
