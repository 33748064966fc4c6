"""Makes the directories fit the number of processes, before they start. No data is left behind.

A data directory with the embedded metadata store is converted, as by `barnabas convert`: logs are renamed, not copied, and every partition
keeps the replica that has all acknowledged records. Data that cannot be converted as it is, because its brokers were killed, is first
started with as many processes as it was made for, and stopped.

Several log directories, and brokers with zookeeper.connect, keep their node ids. The directories of a single broker become those of the
first process. For fewer processes the old number is started once more, the brokers that go are drained, and all are stopped.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import SystemRandom
from types import FrameType
from typing import Final, NoReturn

from barnabas.layout.converter import ConversionProgress, Converter
from barnabas.layout.data_directory import locked_data
from barnabas.layout.embedded_store import EmbeddedStore
from barnabas.layout.errors import DirectoryInUse, LayoutError, NeedsStart, NotConvertible
from barnabas.layout.layout import Layout, node_dir
from barnabas.layout.layout_file import LAYOUT_FILE, find_layout, used_nodes
from barnabas.metadata.embedded import STORE_NAME
from barnabas.storage.directory import names
from barnabas.storage.directory.log_dir import CONVERSION_DIR, CONVERSION_JOURNAL, LOCK_FILE, SECURE_DIR, LogDir
from barnabas.storage.directory.meta_properties import META_PROPERTIES, MetaPropertiesFile
from barnabas.storage.disk.files import Files
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode
from barnabas.tools.processes.process_plan import SOCKET_NAME

_LISTENER: Final = re.compile(r"listeners=[^:]+://(\[[^\]]*\]|[^:,]*):(\d+)")
_OF_MACHINE: Final = frozenset({LOCK_FILE, SOCKET_NAME, LAYOUT_FILE, SECURE_DIR})  # files that stay where they are
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger(__name__)


def fit(roots: Sequence[str], store: str | None, processes: int, first_id: int, command: Sequence[str]) -> None:
    """`roots` have, or get, the directories of the processes. `store` is the embedded metadata store, None with zookeeper.connect.
    `command` is that of this process, which `--processes` may follow. Raises CannotRun."""
    files = Files()
    try:
        if is_convertible(roots, store):
            _fit_by_conversion(files, roots[0], processes, command)
        else:
            _fit_by_draining(files, roots, processes, first_id, command)
    except DirectoryInUse as error:
        raise CannotRun(ExitCode.DIRECTORY_IN_USE, str(error)) from error
    except LayoutError as error:
        raise CannotRun(ExitCode.FOREIGN_DIRECTORY, str(error)) from error


def is_convertible(roots: Sequence[str], store: str | None) -> bool:
    """Whether all data is in one directory, with its metadata store."""
    return len(roots) == 1 and store == f"{roots[0]}/{STORE_NAME}"


def process_layout(data: str, processes: int) -> Layout:
    """Processes of one machine have one disk: one replica is the default, unless the data was made for more."""
    existing = find_layout(Files(), data)
    return Layout(processes, 1 if existing is None or existing.is_single else existing.replicas_max)


# One directory with its metadata store


def _fit_by_conversion(files: Files, data: str, processes: int, command: Sequence[str]) -> None:
    if files.exists(f"{data}/{CONVERSION_DIR}/{CONVERSION_JOURNAL}"):
        _convert(files, data, Layout(processes, 1))  # finishes the one that was interrupted
    existing = find_layout(files, data)
    if existing is None or existing.brokers == processes:
        return
    target = process_layout(data, processes)
    try:
        _convert(files, data, target)
    except NeedsStart as error:
        _log.warning("%s: %s", data, error)
        with _started(command, existing.brokers):
            pass
        _convert(files, data, target)


def _convert(files: Files, data: str, target: Layout) -> None:
    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    progress = ConversionProgress(
        lambda plan: _log.warning("Converting %s from %s to %s: %d logs are renamed", data, plan.source, plan.target, plan.moved.logs),
        lambda journal: _log.warning("Finished the conversion of %s from %s to %s", data, journal.source, journal.target),
    )
    Converter(files, data, EmbeddedStore(f"{data}/{STORE_NAME}", now_ms), SystemRandom(), now_ms()).convert(target, progress)


# Several directories, or metadata in ZooKeeper


def _fit_by_draining(files: Files, roots: Sequence[str], processes: int, first_id: int, command: Sequence[str]) -> None:
    used = max((number for root in roots for number in used_nodes(files, root)), default=0)
    if processes > 1:
        for root in roots:
            adopt(files, root, first_id)
    if used <= processes:
        return
    removed = range(used, processes, -1)
    with _started(command, used) as address:
        for number in removed:
            _drain(first_id + number - 1, address)
    for root in roots:
        for number in removed:
            _remove(files, f"{root}/{node_dir(number)}")


def adopt(files: Files, root: str, node_id: int) -> None:
    """Moves the logs of a single broker into the directory of the first process, by renaming. An interrupted run is continued by the next:
    meta.properties, which makes the directory that of a single broker, is moved last."""
    meta = MetaPropertiesFile(files, root).read()
    if meta is None:
        return
    if meta.node_id not in (None, node_id):
        raise NotConvertible(f"{root} is of broker {meta.node_id}: set broker.id={meta.node_id}, then it becomes that of the first process")
    with locked_data(files, root):
        target = f"{root}/{node_dir(1)}"
        _log.warning("Moving the logs of the single broker in %s into %s", root, target)
        files.make_dirs(target)
        entries = [entry.name for entry in files.list_dir(root)]
        for name in sorted(filter(_is_of_broker, entries), key=lambda name: name == META_PROPERTIES):
            if name == META_PROPERTIES:
                files.sync_dir(target)
            files.rename(f"{root}/{name}", f"{target}/{name}")
        files.sync_dir(target)
        files.sync_dir(root)


def _is_of_broker(name: str) -> bool:
    return name not in _OF_MACHINE and not name.startswith(STORE_NAME) and names.NODE_DIR.fullmatch(name) is None


def _drain(node_id: int, address: str) -> None:
    _log.warning("Draining node %d, which has no process any more", node_id)
    code = subprocess.run(
        [sys.executable, "-P", "-m", "barnabas", "drain", str(node_id), "--bootstrap-server", address, "--sample-seconds", "0"],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,  # standard output has the ready line alone
        check=False,
    ).returncode
    if code:
        raise NotConvertible(f"node {node_id} could not be drained, as the lines before say: nothing was removed, start with all processes")


def _remove(files: Files, directory: str) -> None:
    """The directory of a broker that was drained. Logs that were deleted are removed with it."""
    if not files.is_dir(directory):
        return
    log_dir = LogDir(files, directory)
    try:
        left = [name for name in log_dir.partition_dirs() if not name.endswith(names.DELETE_DIR_SUFFIX)]
    finally:
        log_dir.release()
    if left:
        raise NotConvertible(
            f"{directory} still has {left[0]} although its broker was drained: start with all processes, and drain it again"
        )
    files.remove_tree(directory)


@contextmanager
def _started(command: Sequence[str], processes: int) -> Iterator[str]:
    """Runs as many brokers as the data was made for. Yields the address of a listener when they are ready, and stops them cleanly."""
    before = [(number, signal.signal(number, _interrupt)) for number in _STOP_SIGNALS]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "barnabas", *command, "--processes", str(processes)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"},
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        ready = _LISTENER.search(process.stdout.readline())
        if ready is not None:
            yield f"{ready[1] or 'localhost'}:{ready[2]}"
    finally:
        process.terminate()
        code = process.wait()
        for number, handler in before:
            signal.signal(number, handler)
    if ready is None or code:
        known = ExitCode(code) if code in list(ExitCode) else ExitCode.INTERNAL_ERROR
        raise CannotRun(
            known, f"the {processes} processes that the data was made for could not be started and stopped, see the lines before"
        )


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
