"""The console as a process that is measured, and a browser that does as little as possible: requests, and live pages that are only
received."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.peers import Peer

TIMEOUT_S: Final = 60.0
IDLE_S: Final = 10.0  # the console closes a connection that is not used for 30 seconds
_READY: Final = re.compile(r"url=http://\S+:(\d+)")


class Browser:
    """One connection, kept open, with the cookie of its first response."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._headers: dict[str, str] = {}
        self._used_s = time.monotonic()

    def get(self, path: str) -> bytes:
        """The body. Raises RuntimeError for another status than 200."""
        response = self.open(path)
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path} was answered with {response.status}: {body[:500]!r}")
        return body

    def open(self, path: str) -> HTTPResponse:
        """The response, whose body is not yet read."""
        now_s = time.monotonic()
        if now_s - self._used_s > IDLE_S:
            self._connection.close()  # the next request opens it again
        self._used_s = now_s
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        cookie = response.headers.get("set-cookie")
        if cookie is not None:
            self._headers["cookie"] = cookie.partition(";")[0]
        return response

    def timed(self, path: str) -> tuple[float, bytes]:
        """Milliseconds from the request to the last byte of the body, and the body."""
        began = time.perf_counter()
        body = self.get(path)
        return 1000 * (time.perf_counter() - began), body

    def close(self) -> None:
        stream = self._connection.sock
        if stream is not None:
            stream.shutdown(socket.SHUT_RDWR)  # also ends a thread that receives
        self._connection.close()


class LivePage:
    """A live page that somebody looks at: received on a thread, and its events counted by name."""

    def __init__(self, port: int, path: str) -> None:
        self.events: dict[bytes, int] = {}
        self.path = path
        self._browser = Browser(port)
        self._is_closing = False
        self._error: Exception | None = None
        self._response = self._browser.open(path)
        if self._response.status != 200:
            raise RuntimeError(f"{path} was answered with {self._response.status}")
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Raises RuntimeError if the page ended by itself."""
        self._is_closing = True
        self._browser.close()
        self._thread.join(TIMEOUT_S)
        if self._error is not None:
            raise RuntimeError(f"{self.path} has ended: {self._error}")

    def _receive(self) -> None:
        try:
            while line := self._response.readline():
                if line.startswith(b"event: "):
                    name = line[7:].strip()
                    self.events[name] = self.events.get(name, 0) + 1
            raise ConnectionError("the console has closed the stream")
        except Exception as error:
            if not self._is_closing:
                self._error = error


class ConsolePeer(Peer):
    """A console process."""

    def browser(self) -> Browser:
        return Browser(self.port)

    @contextmanager
    def live(self, paths: Sequence[str]) -> Iterator[list[LivePage]]:
        """Live pages that are open meanwhile."""
        with ExitStack() as cleanup:
            pages: list[LivePage] = []
            for path in paths:
                pages.append(LivePage(self.port, path))
                cleanup.callback(pages[-1].close)
            yield pages


@contextmanager
def console(bootstrap: str, niceness: int = 0) -> Iterator[ConsolePeer]:
    """A console before a cluster, of the same code as the brokers. It has not looked at the cluster yet."""
    command = ["nice", "-n", str(niceness), sys.executable, "-m", "barnabas", "console", "--bootstrap-server", bootstrap]
    command += ["--host", "127.0.0.1", "--port", "0"]
    began = time.perf_counter()
    with TemporaryDirectory(prefix="barnabas-bench-") as directory:
        errors = Path(directory, "console.err")
        with errors.open("w") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        try:
            assert process.stdout is not None
            ready = _READY.search(process.stdout.readline().decode())
            if ready is None:
                raise RuntimeError(f"The console did not start: {errors.read_text()[-2000:]}")
            peer = ConsolePeer("console", process, int(ready[1]), Path(directory), time.perf_counter() - began)
            yield peer
            if process.poll() is not None:
                raise RuntimeError(f"The console has ended with {process.returncode}: {errors.read_text()[-2000:]}")
            peer.stop()
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
