# SPDX-License-Identifier: MIT
"""Prints a run's output as it appears: each byte once, seen live or stored at the end."""

import codecs

import click

from byrote.cli.output.tables import coloured
from byrote.core.text.printable import printable
from byrote.store.rows import LiveOutput, Printed

STREAMS = ("stdout", "stderr")


class Follower:
    """The part of a run's output that has been shown."""

    def __init__(self) -> None:
        self._attempt = 0
        self._shown = [0, 0]
        self._decoders = [_decoder(), _decoder()]
        self._heading = ""
        self._midline = False
        self.ended = 0
        """The last attempt whose output has been shown to its end."""
        self.printed = False

    def live(self, seen: LiveOutput) -> None:
        """Show the new output of an attempt under way."""
        if seen.attempt > self.ended:
            self._take(seen.attempt)
            self._more(0, seen.stdout, seen.stdout_size)
            self._more(1, seen.stderr, seen.stderr_size)

    def end(self, output: Printed) -> None:
        """Show the rest of an attempt that has ended; all of it if nothing was shown."""
        if output.attempt <= self.ended:
            return
        self._take(output.attempt)
        texts, dropped = (
            (output.stdout, output.stderr),
            (output.stdout_dropped, output.stderr_dropped),
        )
        for index, (text, before) in enumerate(zip(texts, dropped, strict=True)):
            raw = text.encode()
            self._more(index, raw, before + len(raw))
        self._end_line()
        self.ended = output.attempt

    def _take(self, attempt: int) -> None:
        if attempt != self._attempt:
            self._end_line()
            self._attempt, self._shown, self._heading = attempt, [0, 0], ""
            self._decoders = [_decoder(), _decoder()]

    def _more(self, index: int, tail: bytes, size: int) -> None:
        fresh = size - self._shown[index]
        if fresh <= 0:
            return
        missed = max(fresh - len(tail), 0)
        # A character may be split between two reads; its beginning is held back until the next.
        text = self._decoders[index].decode(tail[-fresh:])
        self._shown[index] = size
        self.printed = True
        self._head(STREAMS[index], missed)
        click.echo(printable(text), nl=False)
        self._midline = not text.endswith("\n") if text else self._midline

    def _head(self, stream: str, missed: int) -> None:
        cut = f" ({missed:,} bytes before this were dropped)" if missed else ""
        if stream != self._heading or missed:
            self._end_line()
            self._heading = stream
            head = f"attempt {self._attempt}, {stream}{cut}:"
            click.echo(click.style(head, bold=True) if coloured() else head)

    def _end_line(self) -> None:
        if self._midline:
            click.echo()
        self._midline = False


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("backslashreplace")
