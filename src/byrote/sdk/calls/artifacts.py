# SPDX-License-Identifier: MIT
"""Lists the artifacts of a run, and downloads them in pieces that are checked.

A file is written under a temporary name and renamed when it is complete and its hash is right.
"""

import contextlib
import hashlib
import io
import os
from pathlib import Path
from typing import IO
from urllib.parse import quote

import msgspec

from byrote.core.artifact import ArtifactDamaged, UnknownArtifact
from byrote.core.errors import BadOption, ServiceUnreachable
from byrote.sdk.calls.replies import missing
from byrote.sdk.transport.request import (
    CallScript,
    LostResponse,
    Pause,
    Program,
    ServiceCall,
    Terms,
    pause_before,
)
from byrote.wire.messages import ArtifactsReply, ArtifactView
from byrote.wire.problems import NotFound

BYTES_MAX = 16 << 20
"""Maximum bytes of an artifact that is downloaded into memory."""
TRIES_MAX = 3
"""How often an interrupted download is started."""

type ArtifactRef = ArtifactView | str
"""An artifact as `artifacts` lists it, or its hash."""
type DownloadTarget = str | os.PathLike[str]

_listed = msgspec.json.Decoder(ArtifactsReply).decode


def artifacts(run_id: str) -> ServiceCall[list[ArtifactView]]:
    """Return the artifacts of a run, oldest attempt first; raises RunNotFound."""
    return ServiceCall(
        "GET", _path(run_id), lambda body: _listed(body).artifacts, otherwise=missing(run_id)
    )


def fetch(
    run_id: str, artifact: ArtifactRef, to: DownloadTarget | None = None
) -> Program[bytes | Path]:
    """The content of an artifact, as bytes or in a file."""
    digest, size = (artifact, 0) if isinstance(artifact, str) else (artifact.hash, artifact.size)
    if to is None and size > BYTES_MAX:
        raise _too_large()
    target = None if to is None else Path(to)
    if target is not None and target.is_dir():
        raise BadOption(f"{target} is a directory; name the file that is to be written.")

    def script(terms: Terms) -> CallScript[bytes | Path]:
        with contextlib.closing(Copy(digest, target, terms.key())) as copy:
            try:
                yield from _copied(run_id, digest, copy)(terms)
            except NotFound as refused:
                # The run itself may not exist.
                yield from artifacts(run_id)(terms)
                raise UnknownArtifact(
                    f"Artifact {digest!r} of run {run_id} is not there: {refused}"
                ) from refused
            return copy.keep()

    return script


def _copied(run_id: str, digest: str, copy: "Copy") -> Program[None]:
    call = ServiceCall("GET", f"{_path(run_id)}/{quote(digest, safe='')}", copy.whole).into(copy)

    def script(terms: Terms) -> CallScript[None]:
        tries = 1
        while not (yield from call(terms)):
            if tries == TRIES_MAX:
                raise ServiceUnreachable(
                    f"Artifact {digest} of run {run_id} broke off {tries} times: {copy.why}. "
                    "The copy of the service may be damaged."
                )
            yield Pause(pause_before(tries, LostResponse(copy.why, sent=True), terms.jitter))
            tries += 1

    return script


def _path(run_id: str) -> str:
    return f"/v1/runs/{quote(run_id, safe='')}/artifacts"


def _too_large() -> BadOption:
    return BadOption(
        f"The artifact has more than {BYTES_MAX:,} bytes, too many for memory; name the file it "
        "is to be written to, as in `fetch(…, to=path)`."
    )


class Copy:
    """One download: in memory, or in a temporary file beside its target."""

    def __init__(self, digest: str, target: Path | None, key: str) -> None:
        self._digest = digest
        self._target = target
        self._part = None if target is None else target.with_name(f".byrote-{key}.part")
        self._out: IO[bytes] = io.BytesIO()
        self._hasher = hashlib.sha256()
        self.seen = 0
        self.why = ""
        """Why it was interrupted; empty: it was not."""

    def begin(self) -> None:
        """Drop what has arrived, and start again."""
        self._out.close()
        self._out = io.BytesIO() if self._part is None else self._part.open("wb")
        self._hasher, self.seen, self.why = hashlib.sha256(), 0, ""

    def write(self, piece: bytes) -> None:
        """Add a piece; refuses a content that is too large for memory."""
        self.seen += len(piece)
        if self._part is None and self.seen > BYTES_MAX:
            raise _too_large()
        self._hasher.update(piece)
        self._out.write(piece)

    def cut(self, why: str) -> None:
        """Store why it was interrupted."""
        self.why = why or "the connection ended"

    def whole(self, _body: bytes) -> bool:
        """Whether all of it arrived; raises ArtifactDamaged if its hash is wrong."""
        found = self._hasher.hexdigest()
        if not self.why and found != self._digest:
            raise ArtifactDamaged(
                f"The artifact is damaged, or was changed on its way: {self.seen:,} bytes came, "
                f"with hash {found} instead of {self._digest}."
            )
        return not self.why

    def keep(self) -> bytes | Path:
        """The content, or the file that contains it."""
        if self._target is None or self._part is None:
            self._out.seek(0)
            return self._out.read()
        self._out.close()
        return self._part.replace(self._target)

    def close(self) -> None:
        """Delete the temporary file."""
        self._out.close()
        if self._part is not None:
            self._part.unlink(missing_ok=True)
