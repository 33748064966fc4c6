"""Serves the console in this process, from its configuration to its end: uvicorn with bounds, and one line on standard output when it is
ready."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn

from barnabas.console.app import make_app
from barnabas.console.config import ConsoleConfig
from barnabas.console.listening import url_at
from barnabas.console.web.audit import AUDIT_LOGGER
from barnabas.console.web.connections import CONNECTIONS_MAX, Connection

HEADER_BYTES_MAX: Final = 32_768
_KEEP_ALIVE_S: Final = 30
_STOP_S: Final = 2
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def serve(config: ConsoleConfig, sockets: list[socket.socket]) -> None:
    """Serves until SIGTERM or SIGINT."""
    _log_changes(config.audit_file)
    server = make_server(config)
    gc.freeze()  # loaded modules stay alive: the collector, which pages wait for, need not look at them again
    server.run(sockets)


def make_server(config: ConsoleConfig, connection: type[Connection] = Connection) -> uvicorn.Server:
    """A server with all bounds, which is not started."""
    return _Server(
        uvicorn.Config(
            make_app(config),
            http=connection,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS_MAX,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_STOP_S,
            ws="none",
        ),
        config,
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, console: ConsoleConfig) -> None:
        super().__init__(config)
        self._console = console

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, but without a second delivery of the signal afterwards: a console that was stopped ends with 0. Signals reach only
        the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(f"ready url={url_of(self._console)} pid={os.getpid()}", flush=True)


def url_of(config: ConsoleConfig) -> str:
    """The address for people."""
    return url_at(config.scheme, config.host, config.port)


def _log_changes(path: str | None) -> None:
    logger = logging.getLogger(AUDIT_LOGGER)
    logger.setLevel(logging.INFO)
    handler: logging.Handler = logging.StreamHandler() if path is None else logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    logger.propagate = False
