# SPDX-License-Identifier: MIT
"""An HTTPS receiver for tests: records requests and returns the configured responses."""

import http.server
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any


def certificate(folder: Path, host: str) -> tuple[Path, Path]:
    """A certificate for this host, signed by itself, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    names = f"subjectAltName=DNS:{host}"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", f"/CN={host}", "-addext", names,
         "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key


class Receiver:
    """Answers POST with the next of `answers`: a status and headers; 200 when there is none."""

    def __init__(self, cert: Path, key: Path) -> None:
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.calls.append(
                    ({name.lower(): value for name, value in self.headers.items()}, body)
                )
                status, headers = receiver.answers.pop(0) if receiver.answers else (200, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_args: Any) -> None:
                return

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
