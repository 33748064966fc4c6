"""The parent of several broker processes: serves them the metadata store, watches them, and speaks for all of them.

It has the ready line, the banner, the console and the service manager, as a single broker has. It handles no request of a client. Where the
brokers have no `zookeeper.connect`, it has the embedded metadata store open and serves it on a Unix socket in the data directory.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from barnabas.layout.layout_file import LayoutFile
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.files import Files
from barnabas.tools.command_line.exit_codes import ExitCode
from barnabas.tools.processes.broker_process import BrokerProcess, monotonic_ms
from barnabas.tools.processes.machine import Machine, ReadyMachine
from barnabas.tools.processes.machine_listener import MachineListener
from barnabas.tools.processes.messages import Instructions
from barnabas.tools.processes.process_plan import SOCKET_NAME, ProcessPlan
from barnabas.tools.running import run
from barnabas.tools.running.service_status import INTERVAL_S

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig
    from barnabas.metadata.local import LocalTree
    from barnabas.metadata.serving.tree_server import TreeServer
    from barnabas.tools.running.console_child import ConsoleChild

_log = logging.getLogger(__name__)


async def serve_processes(plan: ProcessPlan, usage: run.Usage = run.no_usage, console: ConsoleChild | None = None) -> int:
    stop = run.StopSignals()
    async with AsyncExitStack() as cleanup:
        _claim(plan, cleanup)
        machine = Machine({number: config.broker_id for number, config in enumerate(plan.configs, 1)})
        served = await _serve_store(plan.store, plan.roots[0], cleanup) if plan.store is not None else None
        if served is not None:
            machine.store_problem = served.problem
        health = await _serve_health(machine, plan, cleanup)
        parent = _Parent(machine, plan, served)
        cleanup.push_async_callback(parent.stop, stop)
        if not await parent.becomes_ready(stop):
            return parent.failure
        ready = machine.ready()
        assert ready is not None
        run.enable_collector()
        _announce(ready, plan, usage, console, health)
        if console is not None:
            console.start(ready.bootstrap, ready.metrics)
            cleanup.push_async_callback(console.stop)
        watching = asyncio.ensure_future(parent.watch())
        await asyncio.wait({stop.first})
        watching.cancel()
        run.notify("STOPPING=1")
    run.ignore_signals()
    return ExitCode.STOPPED


@dataclass(frozen=True)
class _ServedStore:
    tree: LocalTree
    server: TreeServer
    socket: str

    def problem(self) -> str:
        trouble = self.tree.trouble
        return "" if trouble is None else f"the metadata store {trouble.path} cannot save changes: {trouble.reason}"


class _Parent:
    def __init__(self, machine: Machine, plan: ProcessPlan, served: _ServedStore | None) -> None:
        self.machine = machine
        self.failure: int = ExitCode.STOPPED
        self._changed = asyncio.Event()
        self._processes = {
            number: BrokerProcess(
                self.machine.lives[number],
                _instructions(plan, number, config, None if served is None else served.socket),
                self.machine.is_start_hopeless,
                served.server.process_ended if served is not None else _no_store,
                self._changed.set,
            )
            for number, config in enumerate(plan.configs, 1)
        }

    async def becomes_ready(self, stop: run.StopSignals) -> bool:
        """False if a signal came first, or if a process has failed for a reason that a restart does not mend: see `failure`."""
        failures = [process.failed for process in self._processes.values()]
        while True:
            self._changed.clear()
            for failed in failures:
                if failed.done():
                    code = failed.result()
                    self.failure = ExitCode.INTERNAL_ERROR if code is None else code
                    return False
            if stop.first.done():
                return False
            if self.machine.ready() is not None:
                return True
            changed = asyncio.ensure_future(self._changed.wait())
            events: list[asyncio.Future[Any]] = [changed, stop.first, *failures]
            await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()

    async def watch(self) -> None:
        """Reports to the service manager, and ends brokers whose event loop does not run. Runs until it is cancelled."""
        while True:
            run.notify(f"WATCHDOG=1\nSTATUS={self.machine.status()}")
            await asyncio.sleep(INTERVAL_S)
            for life in self.machine.hanging(monotonic_ms()):
                _log.error("Node %d does not report any more: its process is ended", life.node_id)
                self._processes[life.number].signal(signal.SIGKILL)

    async def stop(self, stop: run.StopSignals) -> None:
        """Stops one broker after the other, so that its leaders can move; all at once on a second signal."""
        for number in self.machine.stop_order():
            stopping = asyncio.ensure_future(self._processes[number].stop())
            await run.either(stopping, stop.second)
            if stop.second.done():
                break
        ends = [asyncio.ensure_future(process.stop()) for process in self._processes.values()]
        await asyncio.wait(ends)


def _no_store(_: int) -> None:
    """With zookeeper.connect the session of a process that has ended expires there."""


def _instructions(plan: ProcessPlan, number: int, config: BrokerConfig, socket: str | None) -> Instructions:
    return Instructions(
        number,
        config.broker_id,
        config.properties,
        socket,
        plan.log_level,
        plan.log_format,
        plan.log_directory,
        plan.new_users if number == 1 else (),
    )


def _claim(plan: ProcessPlan, cleanup: AsyncExitStack) -> None:
    """Locks the directories, so that no other broker and no conversion uses them, and records the number of processes."""
    files = Files()
    for root in plan.roots:
        cleanup.callback(LogDir(files, root).release)
    if plan.layout is not None:
        noted = LayoutFile(files, plan.roots[0])
        if noted.read() != plan.layout:
            noted.write(plan.layout)


async def _serve_store(store: str, data: str, cleanup: AsyncExitStack) -> _ServedStore:
    from barnabas.broker.clock import Clock
    from barnabas.metadata.embedded import open_embedded
    from barnabas.metadata.serving.tree_server import TreeServer
    from barnabas.metadata.serving.unix_server import UnixServer

    tree = open_embedded(store, Clock().now_ms)
    cleanup.push_async_callback(tree.close)
    server = TreeServer(tree, SystemRandom())
    listening = UnixServer(server, _socket_path(data, cleanup), monotonic_ms)
    await listening.start()
    cleanup.push_async_callback(listening.close)
    return _ServedStore(tree, server, listening.path)


def _socket_path(data: str, cleanup: AsyncExitStack) -> str:
    """In the data directory; where its name is too long for a socket, in a new directory of this user."""
    from barnabas.metadata.serving.unix_server import PATH_BYTES_MAX

    path = os.path.abspath(f"{data}/{SOCKET_NAME}")
    if len(os.fsencode(path)) <= PATH_BYTES_MAX:
        return path
    directory = tempfile.mkdtemp(prefix="barnabas-")
    cleanup.callback(shutil.rmtree, directory, ignore_errors=True)
    return f"{directory}/{SOCKET_NAME}"


async def _serve_health(machine: Machine, plan: ProcessPlan, cleanup: AsyncExitStack) -> list[str]:
    """Before the brokers start: the port is the first, theirs are the next. Returns the address, if there is one."""
    if plan.listener is None:
        return []
    listener = MachineListener(machine, plan.listener)
    await listener.start()
    cleanup.push_async_callback(listener.stop)
    return [] if listener.address is None else [listener.address]


def _announce(ready: ReadyMachine, plan: ProcessPlan, usage: run.Usage, console: ConsoleChild | None, health: Sequence[str]) -> None:
    nodes = ",".join(map(str, ready.node_ids))
    consoles = [] if console is None else console.announce()
    if plan.log_format == "text":
        about = f"cluster {ready.cluster_id}, {len(plan.configs)} broker processes, data in {', '.join(plan.roots)}"
        run.print_banner(", ".join(ready.advertised), about, usage, [*health, *ready.metrics], consoles)
    print(f"ready listeners={','.join(ready.listeners)} node.id={nodes} cluster.id={ready.cluster_id} pid={os.getpid()}", flush=True)
    run.notify("READY=1")
