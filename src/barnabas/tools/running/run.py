"""Runs one broker in this process, from its settings to its exit code: what `barnabas server` and `barnabas up` have in common.

Standard output gets exactly one line, when the broker is ready, for programs that wait for it; banner and log go to standard error.
SIGTERM and SIGINT shut the broker down cleanly; a second signal ends the wait for connections and requests. An error that the user can
mend is one line, never a traceback.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas import system
from barnabas.endpoint import host_and_port
from barnabas.file_modes import keep_files_private
from barnabas.network import event_loop
from barnabas.security.new_user import NewUser
from barnabas.storage.log_manager import AllLogDirsFailed
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode, explain
from barnabas.tools.running import logs
from barnabas.tools.running.open_listeners import open_listeners_remark
from barnabas.tools.running.service_status import report_status
from barnabas.tools.running.settings import Settings

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig
    from barnabas.broker.server.server import BrokerServer
    from barnabas.tools.running.console_child import ConsoleChild

# Reference counting frees most objects of a broker at once. The collector only finds cycles, and each run stops the process: a run over the
# 20,000 newest objects takes a few milliseconds, over 100,000 about 40. Runs over all objects are made nearly never.
GC_THRESHOLDS: Final = (20_000, 5, 500)
# Parameters of glibc's mallopt. By default its mmap threshold grows with every freed block, up to 32 MB: a large block is then taken from
# the heap, and a small block behind it keeps that memory from being returned.
M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
LARGE_BYTES: Final = 4 * 1024 * 1024  # above the size of common requests, for which the heap is faster
QUICK_TIMEOUT_MS: Final = 0

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

Serve = Callable[["BrokerConfig", str], Coroutine[Any, Any, int]]
Usage = Callable[[str, str | None], Sequence[str]]  # lines for people, of the addresses of the first broker and of its metrics

_log = logging.getLogger(__name__)


def no_usage(address: str, metrics: str | None = None) -> Sequence[str]:
    return ()


def run(
    make_settings: Callable[[], Settings],
    log_level: str,
    log_format: str,
    serve_with: Serve | None = None,
    reword: Callable[[str], str] = str,
    log_directory: str | None = None,
) -> int:
    """Runs the broker and returns the exit code. An error that stops it is printed in one line that begins with `barnabas:`. `serve_with`
    replaces the default of one broker with these settings; `reword` turns the names of settings in that line into options of the
    command; `log_directory` gets the log files."""
    logs.configure(log_level, log_format)
    try:
        if log_directory is not None:
            _open_log_files(log_level, log_format, log_directory)
        settings = make_settings()
        for remark in settings.remarks:
            _log.warning("%s", remark)
        if (open_listeners := open_listeners_remark(settings.config)) is not None:
            _log.warning("%s", open_listeners)
        _prepare_process()
        return event_loop.run((serve_with or serve)(settings.config, log_format))
    except Exception as error:
        return tell(error, log_format, reword)


def _open_log_files(log_level: str, log_format: str, directory: str) -> None:
    try:
        logs.configure(log_level, log_format, directory=directory)
    except OSError as error:
        fix = "let this user write there, or name another directory with --logs or $LOG_DIR"
        raise CannotRun(ExitCode.DISK_UNUSABLE, f"No log files can be written in {directory} ({error}); {fix}") from error


def tell(error: Exception, log_format: str = "text", reword: Callable[[str], str] = str) -> int:
    """Prints on standard error what the error means and returns its exit code."""
    known = explain(error)
    if known is None:
        _log.error("%s is a fault in Barnabas itself", type(error).__name__, exc_info=error)
        known = CannotRun(ExitCode.INTERNAL_ERROR, f"{type(error).__name__}: {error}; please report this, with the last line of the log")
    text = reword(" ".join(str(known).split()))
    if log_format == "json":
        _log.critical("%s", text, extra={"exit_code": int(known.code)})
    else:
        print(f"barnabas: {text}", file=sys.stderr, flush=True)
    return known.code


async def serve(
    config: BrokerConfig,
    log_format: str,
    new_users: Sequence[NewUser] = (),
    usage: Usage = no_usage,
    console: ConsoleChild | None = None,
) -> int:
    from barnabas.broker.server.server import BrokerServer

    stop = StopSignals()
    server = BrokerServer(config, new_users=new_users)
    await server.start()
    enable_collector()
    try:
        _announce(server, config, log_format, usage, console)
        start_console(console, [server])
        reporting = asyncio.ensure_future(report_status(server, notify)) if os.environ.get("NOTIFY_SOCKET") else None
        failed = server.failed
        await either(failed, stop.first)
        if reporting is not None:
            reporting.cancel()
    finally:
        notify("STOPPING=1")
        if console is not None:
            await console.stop()
        await shut_down(server, stop)
        ignore_signals()
    if failed.done():
        raise why_it_failed(failed.result(), config)
    return ExitCode.STOPPED


def ignore_signals() -> None:
    """Once everything is closed, another signal must not change the exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def enable_collector() -> None:
    gc.freeze()  # loaded modules stay alive: the collector need not look at them again
    gc.enable()


def why_it_failed(error: BaseException, config: BrokerConfig) -> BaseException:
    if not isinstance(error, AllLogDirsFailed):
        return error
    advice = f"check the disks of {', '.join(config.log_dirs)} and start it again"
    return CannotRun(ExitCode.LOG_DIRS_FAILED, f"every log directory has failed ({error}); {advice}")


async def shut_down(server: BrokerServer, stop: StopSignals, *, is_controlled: bool = True) -> None:
    """Shuts down with the server's own timeouts, or at once on a second signal."""
    shutting_down = asyncio.ensure_future(server.shutdown(is_controlled=is_controlled))
    await either(shutting_down, stop.second)
    if not shutting_down.done():
        _log.warning("Second stop signal: the broker closes all connections and does not wait for requests")
        await server.sockets.shutdown(QUICK_TIMEOUT_MS)
    await shutting_down


async def either(one: asyncio.Future[Any], other: asyncio.Future[Any]) -> None:
    await asyncio.wait((one, other), return_when=asyncio.FIRST_COMPLETED)


class StopSignals:
    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.first: asyncio.Future[str] = loop.create_future()
        self.second: asyncio.Future[str] = loop.create_future()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._told, number.name)

    def _told(self, name: str) -> None:
        for signal_future in (self.first, self.second):
            if not signal_future.done():
                _log.info("Stopping on %s", name)
                signal_future.set_result(name)
                return


def hand_large_pieces_back() -> None:
    """Configures malloc to return large blocks to the system as soon as they are freed."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another C library than glibc
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
    mallopt(M_TRIM_THRESHOLD, 4 * LARGE_BYTES)


def _prepare_process() -> None:
    keep_files_private()
    hand_large_pieces_back()
    gc.disable()  # until all modules are loaded there is no garbage
    gc.set_threshold(*GC_THRESHOLDS)
    error = system.raise_open_files_limit()
    if error is not None:
        _log.warning("The limit of open files stays at %d: %s", resource.getrlimit(resource.RLIMIT_NOFILE)[0], error)


def start_console(console: ConsoleChild | None, servers: Sequence[BrokerServer]) -> None:
    """Starts the console of brokers that are ready."""
    if console is not None:
        addresses = [host_and_port(endpoint.host, endpoint.port) for server in servers for endpoint in server.advertised[:1]]
        console.start(",".join(addresses), metrics_addresses(servers))


def metrics_addresses(servers: Sequence[BrokerServer]) -> list[str]:
    return [server.metrics.address for server in servers if server.metrics is not None and server.metrics.address is not None]


def _announce(server: BrokerServer, config: BrokerConfig, log_format: str, usage: Usage, console: ConsoleChild | None) -> None:
    """Prints the banner for people and the ready line for programs, and notifies the service manager."""
    listening = ",".join(str(endpoint) for endpoint in server.endpoints)
    cluster_id, node_id = server.broker.cluster_id, server.broker.broker_id
    addresses = ", ".join(host_and_port(endpoint.host, endpoint.port) for endpoint in server.advertised)
    consoles = [] if console is None else console.announce()
    if log_format == "text":
        about = f"cluster {cluster_id}, node {node_id}, data in {', '.join(config.log_dirs)}"
        print_banner(addresses, about, usage, metrics_addresses([server]), consoles)
    print(f"ready listeners={listening} node.id={node_id} cluster.id={cluster_id} pid={os.getpid()}", flush=True)
    notify("READY=1")


def print_banner(addresses: str, about: str, usage: Usage, metrics: Sequence[str], consoles: Sequence[str] = ()) -> None:
    shown = [f"metrics at {', '.join(f'{address}/metrics' for address in metrics)}"] if metrics else []
    how = usage(addresses.partition(",")[0], metrics[0] if metrics else None)
    lines = [f"Barnabas is ready at {addresses}", about, *consoles, *shown, *how, "stop it with Ctrl-C"]
    print("\n  ".join(lines), file=sys.stderr, flush=True)


def notify(state: str) -> None:
    """systemd's sd_notify, for units of Type=notify."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
    except OSError as error:
        _log.warning("The service manager did not accept %s: %s", state, error)
