# SPDX-License-Identifier: MIT
"""A small S3 on this machine: as much of its protocol as artifacts need, over real HTTP."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

NAME = "bucket"


class Bucket(ThreadingHTTPServer):
    """Objects in memory, whole or not at all, and a count of what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Door)
        self.objects: dict[str, tuple[bytes, datetime]] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.asked: list[str] = []

    @property
    def environment(self) -> dict[str, str]:
        """What makes an S3 client come here."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }


@contextmanager
def open_bucket() -> Iterator[Bucket]:
    """A bucket for a while."""
    with Bucket() as bucket:
        thread = threading.Thread(target=bucket.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield bucket
        bucket.shutdown()
        thread.join()


class _Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Bucket

    def log_message(self, *_args: Any) -> None:
        """Log nothing."""

    def _asked(self) -> tuple[str, dict[str, str], bytes]:
        parts = urlsplit(self.path)
        asked = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        self.server.asked.append(f"{self.command} {','.join(sorted(asked))}".strip())
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return unquote(parts.path).removeprefix(f"/{NAME}").lstrip("/"), asked, body

    def _answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.pop("size", str(len(body))))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _keep(self, key: str, body: bytes) -> None:
        # S3's times have a resolution of a second, so each change gets its own.
        stamps = [at for _, at in self.server.objects.values()]
        now = max([datetime.now(UTC), *(at + timedelta(seconds=1) for at in stamps)])
        self.server.objects[key] = (body, now)

    def do_PUT(self) -> None:
        key, asked, body = self._asked()
        tag = f'"{md5(body, usedforsecurity=False).hexdigest()}"'
        if "uploadId" in asked:
            self.server.uploads[asked["uploadId"]][int(asked["partNumber"])] = body
        else:
            self._keep(key, body)
        self._answer(200, ETag=tag)

    def do_POST(self) -> None:
        key, asked, body = self._asked()
        if "uploads" in asked:
            number = f"u{len(self.server.asked)}"
            self.server.uploads[number] = {}
            found = f"<UploadId>{number}</UploadId><Key>{escape(key)}</Key><Bucket>{NAME}</Bucket>"
            kind = "InitiateMultipartUploadResult"
        elif "uploadId" in asked:
            parts = self.server.uploads.pop(asked["uploadId"])
            self._keep(key, b"".join(parts[number] for number in sorted(parts)))
            found, kind = (
                f'<ETag>"e"</ETag><Key>{escape(key)}</Key>',
                "CompleteMultipartUploadResult",
            )
        else:
            doomed = re.findall(r"<Key>(.*?)</Key>", body.decode())
            for name in doomed:
                self.server.objects.pop(name, None)
            found = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in doomed)
            kind = "DeleteResult"
        self._answer(200, f"<{kind}>{found}</{kind}>".encode(), Content_Type="application/xml")

    def do_DELETE(self) -> None:
        key, asked, _ = self._asked()
        self.server.uploads.pop(asked.get("uploadId", ""), None)
        self.server.objects.pop(key, None)
        self._answer(204)

    def do_GET(self) -> None:
        key, asked, _ = self._asked()
        if "list-type" in asked:
            self._list(asked)
        elif key not in self.server.objects:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            body, at = self.server.objects[key]
            stamp = format_datetime(at.replace(microsecond=0), usegmt=True)
            self._answer(200, body, ETag='"e"', Last_Modified=stamp)

    do_HEAD = do_GET  # noqa: N815 -- what http.server calls.

    def _list(self, asked: dict[str, str]) -> None:
        """One page, so that who lists has to come again."""
        prefix, after = asked.get("prefix", ""), asked.get("continuation-token", "")
        names = sorted(k for k in self.server.objects if k.startswith(prefix) and k > after)
        page = names[:2]
        found = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>"
            f"{self.server.objects[name][1].replace(microsecond=0):%Y-%m-%dT%H:%M:%S.000Z}"
            f'</LastModified><ETag>"e"</ETag><Size>{len(self.server.objects[name][0])}</Size>'
            "</Contents>"
            for name in page
        )
        more = len(names) > len(page)
        found += f"<IsTruncated>{str(more).lower()}</IsTruncated><KeyCount>{len(page)}</KeyCount>"
        if more:
            found += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        kind = "ListBucketResult"
        self._answer(200, f"<{kind}>{found}</{kind}>".encode(), Content_Type="application/xml")
