# SPDX-License-Identifier: MIT
"""`byrote serve`: the queue over HTTP."""

import contextlib
import logging
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from byrote.assembly.artifacts import default_location
from byrote.assembly.clock import now
from byrote.assembly.executors import log_form
from byrote.assembly.identity import jitter
from byrote.assembly.setting_values import read_size
from byrote.assembly.settings import resolve
from byrote.cli.database import address_at, check, open_url
from byrote.cli.options import url_option
from byrote.core.errors import MissingExtra
from byrote.observe.logs import LogWriter, set_up_logging
from byrote.store import queries, rights
from byrote.store.runners.sync import Store
from byrote.store.writable import check_writable

_log = logging.getLogger("byrote.service")


@click.command(epilog="Example: byrote serve --port 8700")
@url_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8700, show_default=True)
@click.option("--tls-cert", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--tls-key", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without TLS.")
@click.option(
    "--body-max", default="8MB", show_default=True, metavar="SIZE", help="Maximum request body."
)
@click.option(
    "--log-format", type=click.Choice(["auto", "text", "json"]), help="Format of the log."
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]))
def serve(
    *,
    url: str | None,
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    insecure: bool,
    body_max: str,
    **flags: Any,
) -> None:
    """Serve the queue over HTTP until stopped.

    Producers enqueue, workers claim, renew and finish, people monitor; each with a token from
    `byrote token create`. Any number of services may run on one database. The service also does
    the maintenance that workers with a direct database connection do.

    SIGTERM or Ctrl-C stops listening, finishes open requests, and exits. Beyond this machine it
    listens with TLS only, unless --insecure is set because a proxy terminates TLS.
    """
    try:
        from byrote.assembly.service import build_service  # noqa: PLC0415 -- an extra.
        from byrote.service.app import build_app  # noqa: PLC0415 -- the same.
        from byrote.service.options import ServiceOptions  # noqa: PLC0415 -- the same.
        from byrote.service.server import ServeOptions, build_server  # noqa: PLC0415 -- the same.
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{error.name} is not installed; run `pip install 'byrote[service]'`."
        ) from None
    where = ServeOptions(host=host, port=port, certificate=tls_cert, key=tls_key, insecure=insecure)
    settings = resolve({"database_url": url, **flags}).settings
    form = log_form(settings)
    set_up_logging(form, settings.log_level)
    # Byrote reports errors inside pipelines; psycopg would log them a second time.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    emit = LogWriter(sys.stderr, form=form, level=settings.log_level, now=now)
    options = ServiceOptions(
        body_max=_size(body_max),
        payload_max=settings.payload_max,
        artifacts=settings.artifacts or default_location(os.environ),
        artifact_max=settings.artifact_max,
        poll=settings.poll_interval,
    )
    with open_url(url) as found:
        address = address_at(found, name="byrote service")
        with contextlib.closing(Store(address, jitter=jitter)) as store:
            check(store)
            with store.borrow() as connection:
                check_writable(connection, address)
                rights.demand(connection, "byrote_service", rights.TO_SERVE, store.named_schema)
            if not store.all(queries.tokens()):
                _log.warning("no token exists yet; create one: byrote token create NAME --role …")
        service = build_service(address, options, emit=emit)
        server = build_server(build_app(service, version=version("byrote")), where, service.stop)
        server.run()


def _size(text: str) -> int:
    try:
        return read_size(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--body-max") from None
