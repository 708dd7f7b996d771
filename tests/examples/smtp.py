# SPDX-License-Identifier: MIT
"""An SMTP server for a test: speaks the protocol on a real socket and keeps what it was given."""

import asyncio
import threading


class MailServer:
    """Listens on 127.0.0.1; `answers` are its replies to the next DATA commands, in order."""

    def __init__(self) -> None:
        self.mails: list[bytes] = []
        self.answers: list[bytes] = []
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 test\r\n")
        while line := await reader.readline():
            verb = line[:4].upper().strip()
            match verb:
                case b"DATA":
                    writer.write(b"354 go on\r\n")
                    text = await reader.readuntil(b"\r\n.\r\n")
                    answer = self.answers.pop(0) if self.answers else b"250 taken\r\n"
                    if answer.startswith(b"250"):
                        self.mails.append(text[:-5])
                    writer.write(answer)
                case b"RCPT" if b"<nobody@" in line:
                    writer.write(b"550 no such user\r\n")
                case b"QUIT":
                    writer.write(b"221 bye\r\n")
                    break
                case _:
                    writer.write(b"250 fine\r\n")
        writer.close()

    def close(self) -> None:
        """End the server."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
