"""The child process of one broker: starts it, reads its reports, starts it again when it ends, and stops it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from barnabas.tools.processes.messages import Announcement, Instructions, decode_report
from barnabas.tools.processes.process_life import ProcessLife, describe_end

_MODULE: Final = "barnabas.tools.processes.child"
_NOT_INHERITED: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")  # the service manager knows the parent alone
_log = logging.getLogger(__name__)


class BrokerProcess:
    """`on_change` is called after each event, `on_reaped` with the id of a process that has ended, and `is_hopeless` decides whether an end
    during the start is final: then `failed` is done, with the exit code."""

    def __init__(
        self,
        life: ProcessLife,
        instructions: Instructions,
        is_hopeless: Callable[[ProcessLife, int | None], bool],
        on_reaped: Callable[[int], None],
        on_change: Callable[[], None],
    ) -> None:
        self.life = life
        loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[int | None] = loop.create_future()
        self._instructions = instructions
        self._is_hopeless = is_hopeless
        self._on_reaped = on_reaped
        self._on_change = on_change
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._task = loop.create_task(self._live())

    async def stop(self) -> None:
        """Asks the broker to stop, and returns when its process has ended."""
        self._stopping.set()
        self.signal(signal.SIGTERM)
        await asyncio.wait({self._task})

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _live(self) -> None:
        while not self._stopping.is_set():
            code = await self._run_once()
            if self._stopping.is_set():
                break
            is_hopeless = self._is_hopeless(self.life, code)
            pause_ms = self.life.ended(code, monotonic_ms())
            self._on_change()
            if is_hopeless:
                self.failed.set_result(code)
                break
            _log.warning("Node %d: %s. It starts again in %.1f s", self.life.node_id, describe_end(code), pause_ms / 1000)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_ms / 1000)
        self.life.stopped()
        self._on_change()

    async def _run_once(self) -> int | None:
        """Its exit code; None if it could not be started."""
        environment = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
        try:
            # A session of its own: Ctrl-C on the terminal is for the parent, which then stops one broker after the other.
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", _MODULE, str(self.life.node_id)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            _log.error("Node %d cannot be started: %s", self.life.node_id, error)
            return None
        self._process = process
        self.life.started(process.pid)
        if self._stopping.is_set():
            self.signal(signal.SIGTERM)
        try:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(self._instructions.encode())  # and stays open: its end is the end of this process
            await self._read(process.stdout)
        finally:
            code = await process.wait()
            self._on_reaped(process.pid)
        return code

    async def _read(self, reports: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await reports.readline()
            except ValueError:
                continue  # a line without an end is none of a broker
            if not line:
                return
            self._received(line)

    def _received(self, line: bytes) -> None:
        report = decode_report(line)
        if isinstance(report, Announcement):
            self._instructions = self._instructions.with_ports(report.listeners)
            self.life.announced(report, monotonic_ms())
        elif report is not None:
            self.life.reported(report.problem, monotonic_ms())
        self._on_change()


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
