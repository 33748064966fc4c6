"""The process of one of several brokers of a machine: `python -m barnabas.tools.processes.child NODE`, started by the parent.

The first line of standard input has the instructions. The rest of that pipe is the life of the parent: it is the only one that holds it
open, and the system closes it with the parent. The broker then stops cleanly, without its metadata store, which ended with the parent.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from barnabas.endpoint import host_and_port
from barnabas.tools.command_line.exit_codes import ExitCode
from barnabas.tools.processes.messages import Announcement, Instructions, StatusReport
from barnabas.tools.running import run
from barnabas.tools.running.service_status import INTERVAL_S, problem_of
from barnabas.tools.running.settings import Settings, settings

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig
    from barnabas.broker.environment import Environment
    from barnabas.broker.server.server import BrokerServer
    from barnabas.metadata.zookeeper.tree import ZooKeeperTree

_STDIN: Final = 0
_STDOUT: Final = 1
_READ_BYTES: Final = 4096

_log = logging.getLogger("barnabas.tools.processes.child")  # __name__ is that of the program


def main() -> int:
    line = sys.stdin.buffer.readline()
    if not line:
        return ExitCode.STOPPED  # the parent has ended meanwhile
    given = Instructions.decode(line)
    os.set_blocking(_STDOUT, False)
    _mark_lines(given.node_id)

    def make_settings() -> Settings:
        return Settings(settings(given.properties).config, ())  # the parent has logged the remarks

    return run.run(
        make_settings,
        given.log_level,
        given.log_format,
        lambda config, _: _Child(config, given).serve(),
        lambda text: f"node {given.node_id}: {text}",
        None if given.log_directory is None else os.path.join(given.log_directory, f"broker-{given.node_id}"),
    )


def _mark_lines(node_id: int) -> None:
    """Each line of the log gets the node id as a field."""
    make = logging.getLogRecordFactory()

    def make_marked(*arguments: object, **named: object) -> logging.LogRecord:
        record = make(*arguments, **named)
        record.node_id = node_id
        return record

    logging.setLogRecordFactory(make_marked)


class _Child:
    def __init__(self, config: BrokerConfig, given: Instructions) -> None:
        self._config = config
        self._given = given
        self._store: ZooKeeperTree | None = None  # of the parent

    async def serve(self) -> int:
        from barnabas.broker.server.server import BrokerServer

        stop, orphaned = run.StopSignals(), _end_of_parent()
        server = BrokerServer(self._config, environment=self._environment(), new_users=self._given.new_users)
        starting = asyncio.ensure_future(server.start())
        await run.either(starting, orphaned)
        if not starting.done():
            self._abandon_store()
            starting.cancel()
            await asyncio.wait({starting})
            return ExitCode.STOPPED
        await starting
        run.enable_collector()
        try:
            _write(self._announcement(server).encode())
            reporting = asyncio.ensure_future(_report(server))
            ends: list[asyncio.Future[Any]] = [server.failed, stop.first, orphaned]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            reporting.cancel()
        finally:
            if orphaned.done():
                _log.warning("The parent process has ended: this broker stops")
                self._abandon_store()
            await run.shut_down(server, stop, is_controlled=not orphaned.done())
            run.ignore_signals()
        if server.failed.done():
            raise run.why_it_failed(server.failed.result(), self._config)
        return ExitCode.STOPPED

    def _environment(self) -> Environment:
        from barnabas.broker.environment import Environment

        if self._given.socket is None:
            return Environment()
        return Environment(tree=self._open_store, is_shared=True)

    async def _open_store(self, _: str) -> ZooKeeperTree:
        from barnabas.broker.cluster import cluster_member  # noqa: F401 - a slow import while the session is open would let it expire
        from barnabas.broker.server.zookeeper_store import parent_tree

        assert self._given.socket is not None
        self._store = parent_tree(self._given.socket, self._config)
        return self._store

    def _abandon_store(self) -> None:
        """Its parent does not come back: what waits for the store ends at once."""
        if self._store is not None:
            self._store.abandon()

    def _announcement(self, server: BrokerServer) -> Announcement:
        return Announcement(
            server.broker.broker_id,
            server.broker.cluster_id,
            [str(endpoint) for endpoint in server.endpoints],
            [host_and_port(endpoint.host, endpoint.port) for endpoint in server.advertised],
            next(iter(run.metrics_addresses([server])), None),
        )


def _end_of_parent() -> asyncio.Future[None]:
    """Done when standard input ends."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    os.set_blocking(_STDIN, False)

    def read() -> None:
        with suppress(BlockingIOError):
            if not os.read(_STDIN, _READ_BYTES):
                loop.remove_reader(_STDIN)
                ended.set_result(None)

    loop.add_reader(_STDIN, read)
    return ended


async def _report(server: BrokerServer) -> None:
    """Runs until it is cancelled."""
    while True:
        await asyncio.sleep(INTERVAL_S)
        _write(StatusReport(problem_of(server)).encode())


def _write(line: bytes) -> None:
    """A parent that is suspended does not read: a full pipe must not hold this broker."""
    with suppress(BlockingIOError, BrokenPipeError):
        os.write(_STDOUT, line)


if __name__ == "__main__":
    sys.exit(main())
