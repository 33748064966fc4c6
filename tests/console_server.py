"""A console that serves HTTP from a thread of the test's process, for tests that need its sockets."""

from __future__ import annotations

import dataclasses
import html
import http.client
import re
import threading
import time
import urllib.parse
from collections.abc import Generator
from contextlib import contextmanager

from barnabas.console.config import ConsoleConfig
from barnabas.console.listening import listen
from barnabas.console.serving import make_server
from barnabas.console.web.connections import Connection

DEADLINE_S = 60


@contextmanager
def served(config: ConsoleConfig, connection: type[Connection] = Connection) -> Generator[tuple[str, int], None, None]:
    """The address of a console that serves as long as the block does. Its port is one that is free."""
    sockets = listen("127.0.0.1", 0)
    address: tuple[str, int] = sockets[0].getsockname()
    server = make_server(dataclasses.replace(config, host=address[0], port=address[1]), connection)
    thread = threading.Thread(target=server.run, args=(sockets,), name="console", daemon=True)
    thread.start()
    until = time.monotonic() + DEADLINE_S
    while not server.started:
        assert thread.is_alive() and time.monotonic() < until, "the console has not started"
        time.sleep(0.01)
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "the console has not stopped"


class Browser:
    """A browser without JavaScript."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._cookie = ""

    def page(self, path: str, status: int = 200) -> str:
        """The page at a path, or the first event of a live view."""
        found, text, _ = self._request("GET", path)
        assert found == status, f"{path}: {found} {_words(text)[-2_000:]}"
        return text

    def words(self, path: str, status: int = 200) -> str:
        """What a person reads on a page."""
        return _words(self.page(path, status))

    def send(self, path: str, form_on: str = "/", **fields: str) -> tuple[int, str]:
        """Sends a form. The status, and the words of the page that the person sees then."""
        token = re.search(r"X-CSRF-Token&#34;: &#34;([0-9a-f]+)", self.page(form_on))
        assert token is not None
        status, text, location = self._request("POST", path, {"csrf": token[1], **fields})
        return status, _words(text) if location is None else self.words(location)

    def _request(self, method: str, path: str, fields: dict[str, str] | None = None) -> tuple[int, str, str | None]:
        connection = http.client.HTTPConnection(*self._address, timeout=DEADLINE_S)
        headers = {"cookie": self._cookie} if self._cookie else {}
        body = None if fields is None else urllib.parse.urlencode(fields)
        if body is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            if cookie := response.headers.get("set-cookie"):
                self._cookie = cookie.partition(";")[0]
            if response.headers.get_content_type() == "text/event-stream":
                line = b""
                while not line.startswith(b"data:"):
                    line = response.readline()
                    assert line, "the live view has ended"
                return response.status, line.decode(), None
            return response.status, response.read().decode("utf-8", "replace"), response.headers.get("location")
        finally:
            connection.close()


def _words(page: str) -> str:
    notice = re.search(r'class="notice good" role="status">([^<]+)', page)
    text = (notice[1] if notice is not None else "") + (page.partition("<main")[2].partition(">")[2].partition("<dialog")[0] or page)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
