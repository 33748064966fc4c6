"""The console beside a broker: a process of its own, started when the broker is ready, watched, and ended with it.

This process opens the console's sockets, so that the link in the banner is valid and a restart keeps the port. It serves nothing, and
nothing of the console's life matters to the broker. The console's standard input is a pipe from here: when this process ends, also by
SIGKILL, the console ends too.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket

DEFAULT_PORT: Final = 8080
PORT_MAX: Final = 65_535
PACKAGES: Final = ("starlette", "uvicorn", "jinja2")
INSTALL: Final = "pip install 'barnabas[console]'"
_HOST: Final = "localhost"
_PAUSE_S: Final = 1.0
_PAUSE_S_MAX: Final = 60.0
_STABLE_S: Final = 60.0  # a console that ran this long starts again after the shortest pause
_STOP_S: Final = 4.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """What the command line says about the console. `client_file` has the settings of its clients, without a password where people log
    in."""

    port: int
    may_write: bool
    client_file: str | None = None


def is_installed() -> bool:
    """Whether the packages of the extra `console` are there."""
    return all(find_spec(name) is not None for name in PACKAGES)


def add_console_options(parser: ArgumentParser) -> None:
    """The options of `up` and `server` alike."""
    parser.add_argument("--console-port", type=port_number, default=None, metavar="PORT", help=f"of the console; default: {DEFAULT_PORT}")
    parser.add_argument(
        "--console-write", action="store_true", help="let the console change topics, groups, settings …; without it, it only reads"
    )


def console_options(given: Namespace, is_wanted: bool, client_file: str | None = None) -> ConsoleOptions | None:
    """The options of a console that is wanted, or whose port is named; None for no console."""
    if not is_wanted and given.console_port is None:
        return None
    return ConsoleOptions(DEFAULT_PORT if given.console_port is None else given.console_port, given.console_write, client_file)


def port_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > PORT_MAX:
        raise ArgumentTypeError(f"a port is a number from 0 to {PORT_MAX}, not {text}")
    return int(text)


class ConsoleChild:
    """The console of one broker process. `announce` opens its sockets, `start` begins to run and watch it, and `stop` ends it."""

    def __init__(self, options: ConsoleOptions) -> None:
        self._options = options
        self._sockets: list[socket.socket] = []
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._command: list[str] = []

    def announce(self) -> list[str]:
        """Lines for the banner: the link, or why there is no console and what to do."""
        from barnabas.console.listening import PortInUse, listen, url_at

        if not is_installed():
            return [f"the console is not installed: {INSTALL}"]
        try:
            self._sockets = listen(_HOST, self._options.port)
        except PortInUse as error:
            _log.warning("There is no console, because it cannot listen at %s; name another port with --console-port", error.strerror)
            return []
        access = "" if self._options.may_write else ", read-only (--console-write lets it make changes)"
        return [f"console at {url_at('http', _HOST, self._sockets[0].getsockname()[1])}{access}"]

    def start(self, bootstrap: str, metrics: Sequence[str] = ()) -> None:
        """Starts the console, if `announce` could listen, and starts it again when it ends."""
        if not self._sockets:
            return
        options = self._options
        self._command = [
            *(sys.executable, "-P", "-m", "barnabas", "console", "--exit-with-parent", "--bootstrap-server", bootstrap),
            *("--port", str(self._sockets[0].getsockname()[1])),
            *(() if options.client_file is None else ("--command-config", options.client_file)),
            *(() if not options.may_write else ("--console-write",)),
            *(word for address in metrics for word in ("--metrics", address)),
            *("--listen-fds", *(str(one.fileno()) for one in self._sockets)),
        ]
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        """Ends the console: first by SIGTERM, then by SIGKILL."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), _STOP_S)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()
        for one in self._sockets:
            one.close()
        self._sockets = []

    async def _watch(self) -> None:
        loop, pause_s = asyncio.get_running_loop(), _PAUSE_S
        while True:
            began_s = loop.time()
            try:
                # A session of its own: Ctrl-C on the terminal is for this process, which then stops the console.
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    pass_fds=[one.fileno() for one in self._sockets],
                    start_new_session=True,
                )
                code = await self._process.wait()
                why = f"with {code}"
            except OSError as error:
                why = f"at its start ({error})"
            pause_s = _PAUSE_S if loop.time() - began_s > _STABLE_S else min(_PAUSE_S_MAX, pause_s * 2)
            _log.warning("The console ended %s; it starts again in %.0f s. The broker is not affected", why, pause_s)
            await asyncio.sleep(pause_s)
