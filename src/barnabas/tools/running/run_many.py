"""Runs several brokers in this process, a cluster on one embedded store: `barnabas up --brokers N`. For laptops and for tests.

The brokers connect to each other through their listeners, as brokers on separate machines do. They start and stop together.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.endpoint import host_and_port
from barnabas.layout.layout import Layout
from barnabas.layout.layout_file import LayoutFile
from barnabas.security.new_user import NewUser
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.files import Files
from barnabas.tools.command_line.exit_codes import ExitCode
from barnabas.tools.running import run
from barnabas.tools.running.data_home import refuse_other_layout

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig
    from barnabas.broker.server.server import BrokerServer
    from barnabas.broker.server.shared_store import SharedStore
    from barnabas.metadata.local import LocalTree
    from barnabas.tools.running.console_child import ConsoleChild


async def serve_many(
    configs: Sequence[BrokerConfig],
    data: str,
    log_format: str,
    new_users: Sequence[NewUser] = (),
    usage: run.Usage = run.no_usage,
    console: ConsoleChild | None = None,
) -> int:
    """`data` holds the metadata store of all brokers, and one directory for the logs of each."""
    from barnabas.broker.clock import Clock
    from barnabas.metadata.embedded import STORE_NAME, open_embedded

    stop = run.StopSignals()
    async with AsyncExitStack() as cleanup:
        _claim(data, Layout(len(configs)), cleanup)
        tree = open_embedded(f"{data}/{STORE_NAME}", Clock().now_ms)
        cleanup.push_async_callback(tree.close)
        servers: list[BrokerServer] = []
        for config in configs:
            server = _made(config, tree, () if servers else new_users)
            await server.start()
            cleanup.push_async_callback(run.shut_down, server, stop)
            servers.append(server)
        run.enable_collector()
        _announce(servers, configs, log_format, usage, console)
        run.start_console(console, servers)
        if console is not None:
            cleanup.push_async_callback(console.stop)
        failed = [server.failed for server in servers]
        ends: list[asyncio.Future[Any]] = [*failed, stop.first]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        run.notify("STOPPING=1")
    for future in failed:
        if future.done():
            raise future.result()
    return ExitCode.STOPPED


def _claim(data: str, layout: Layout, cleanup: AsyncExitStack) -> None:
    """Locks the data directory, so that no conversion starts, and records in it the number of brokers."""
    files = Files()
    cleanup.callback(LogDir(files, data).release)
    refuse_other_layout(data, layout)
    noted = LayoutFile(files, data)
    if noted.read() != layout:
        noted.write(layout)


def _made(config: BrokerConfig, tree: LocalTree, new_users: Sequence[NewUser]) -> BrokerServer:
    from barnabas.broker.environment import Environment
    from barnabas.broker.server.server import BrokerServer

    return BrokerServer(config, environment=Environment(tree=partial(_view, tree), is_shared=True), new_users=new_users)


async def _view(tree: LocalTree, _: str) -> SharedStore:
    from barnabas.broker.server.shared_store import SharedStore

    return SharedStore(tree)


def _announce(
    servers: Sequence[BrokerServer], configs: Sequence[BrokerConfig], log_format: str, usage: run.Usage, console: ConsoleChild | None
) -> None:
    listening = ",".join(str(endpoint) for server in servers for endpoint in server.endpoints)
    addresses = ", ".join(host_and_port(endpoint.host, endpoint.port) for server in servers for endpoint in server.advertised)
    cluster_id = servers[0].broker.cluster_id
    nodes = ",".join(str(server.broker.broker_id) for server in servers)
    consoles = [] if console is None else console.announce()
    if log_format == "text":
        log_dirs = ", ".join(log_dir for config in configs for log_dir in config.log_dirs)
        about = f"cluster {cluster_id}, {len(servers)} brokers, data in {log_dirs}"
        run.print_banner(addresses, about, usage, run.metrics_addresses(servers), consoles)
    print(f"ready listeners={listening} node.id={nodes} cluster.id={cluster_id} pid={os.getpid()}", flush=True)
    run.notify("READY=1")
