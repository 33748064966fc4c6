"""Runs `spark-pipelines` as a process, with the settings a project needs, and shows what it says and how it goes.

Spark's tables outlive a run only with a catalog that does: without one, the second run of any project with a table would fail. So, unless
the project or the user says otherwise, catalog and tables are kept in the project's directory. On a cluster or a server that is up already
(--master, --remote) its own settings count and nothing is set.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final

from barnabas.tools._pipeline_progress import ask_flows, ask_lag, progress_line
from barnabas.tools._pipeline_project import GROUP_KEY, SERVERS_KEY, ProjectRefused
from barnabas.tools._spark import environment
from barnabas.tools._spark_home import HOME, home_settings, is_local
from barnabas.tools._text import coloured

_EVENT: Final = re.compile(r"\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d): (.*)")
# Where a Spark that spark-pipelines starts is told the definitions; no other port can be chosen.
CONNECT_PORT: Final = 15002
_SERVER: Final = "sc://"
_LOOK_S: Final = 1.0
_PIPE_EVERY_S: Final = 10.0
_TAIL_LINES: Final = 40
_STOP_S: Final = 30.0
_LAG_TIMEOUTS: Final = {"request.timeout.ms": "2000", "default.api.timeout.ms": "3000", "socket.connection.setup.timeout.ms": "2000"}


def run_pipeline(given: Namespace, spec: Path) -> int:
    configuration = read_configuration(spec)
    port = _free_port()
    environ = {**os.environ, **environment(), "PYSPARK_SUBMIT_ARGS": submit_arguments(given, spec.parent, configuration, port)}
    where = where_it_runs(given, configuration)
    if not where.startswith(_SERVER):
        require_free(CONNECT_PORT)
    if is_local(where):
        environ |= home_settings()
    command = [_script(environ), "dry-run" if given.dry_run else "run", *cluster_options(given)]
    if given.master is None and given.remote is None:
        environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    process = subprocess.Popen(
        [*command, "--spec", str(spec), *_refreshes(given)],
        cwd=spec.parent,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    assert process.stdout is not None
    with ExitStack() as stack:
        stack.callback(_stop, process)
        admin = _admin(stack, configuration) if not given.dry_run else None
        output = Output(process.stdout, verbose=given.verbose)
        _watch(process, output, admin, configuration.get(GROUP_KEY, ""), port)
        output.finish()
    if process.returncode != 0 and not given.verbose:
        print(f"barnabas: the pipeline failed; the end of what Spark printed:\n{output.tail()}", file=sys.stderr)
    return 0 if process.returncode == 0 else 1


def _refreshes(given: Namespace) -> list[str]:
    if given.dry_run:
        return []
    words = [word for name in ("full_refresh", "refresh") if getattr(given, name) for word in (_flag(name), getattr(given, name))]
    return [*words, *(["--full-refresh-all"] if given.full_refresh_all else [])]


def read_configuration(spec: Path) -> dict[str, str]:
    """The settings in a project's spec; spark-pipelines checks the rest of it."""
    import yaml  # type: ignore[import-untyped]

    try:
        document: Any = yaml.safe_load(spec.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ProjectRefused(f"{spec}: {' '.join(str(error).split())}") from None
    configuration = document.get("configuration") if isinstance(document, dict) else None
    if configuration is None:
        return {}
    if not isinstance(configuration, dict):
        raise ProjectRefused(f"{spec}: configuration holds names with values, as in {SERVERS_KEY}: localhost:9092")
    return {str(name): str(value) for name, value in configuration.items()}


def cluster_options(given: Namespace) -> list[str]:
    """What the user said of Spark, for the command line."""
    options = [word for name in ("master", "remote") if getattr(given, name) for word in (_flag(name), getattr(given, name))]
    return [*options, *(word for setting in given.conf for word in ("--conf", setting))]


def submit_arguments(given: Namespace, directory: Path, configuration: Mapping[str, str], port: int) -> str:
    """The same, and what must be set, for the Spark that spark-pipelines starts: of a long command line it passes on only the last ten."""
    settings: dict[str, str] = {}
    if given.remote is None:
        settings |= {"spark.sql.streaming.metricsEnabled": "true", "spark.ui.port": str(port), "spark.ui.showConsoleProgress": "false"}
    if given.remote is None and given.master is None:
        settings |= {
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),  # Spark's 200 are for clusters: each costs time in every batch
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={directory / 'catalog'};create=true",
            "spark.sql.warehouse.dir": (directory / "tables").as_uri(),
            "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={directory / 'catalog.log'}",
        }
    settings = {name: value for name, value in settings.items() if name not in configuration}  # the project's own counts
    settings |= dict(setting.partition("=")[::2] for setting in given.conf)
    return shlex.join([*(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")), "pyspark-shell"])


class Output:
    """What the process prints: events are shown as they come, the rest is kept for the case that it fails."""

    def __init__(self, stream: IO[str], *, verbose: bool) -> None:
        self._verbose = verbose
        self._lines: deque[str] = deque(maxlen=_TAIL_LINES)
        self._status = ""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def show_status(self, line: str) -> None:
        """On a terminal the last line is drawn over again; a pipe gets a line where it has changed."""
        with self._lock:
            if sys.stdout.isatty():
                self._clear()
                self._status = line
                print(coloured(line, "dim"), end="", flush=True)
            elif line != self._status:
                self._status = line
                print(line, flush=True)

    def finish(self) -> None:
        self._thread.join()
        with self._lock:
            self._clear()

    def tail(self) -> str:
        return "\n".join(self._lines)

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._take(line.rstrip("\n"))

    def _take(self, line: str) -> None:
        event = _EVENT.fullmatch(line)
        if event is None and not self._verbose:
            self._lines.append(line)
            return
        with self._lock:
            self._clear()
            print(line if event is None else f"{event[1]}  {event[2]}", flush=True)

    def _clear(self) -> None:
        if self._status and sys.stdout.isatty():
            print("\r\x1b[K", end="")
            self._status = ""


def _watch(process: subprocess.Popen[str], output: Output, admin: Any, group: str, port: int) -> None:
    shown_at = time.monotonic()
    while True:
        try:
            process.wait(_LOOK_S)
            return
        except subprocess.TimeoutExpired:
            pass
        if not sys.stdout.isatty() and time.monotonic() - shown_at < _PIPE_EVERY_S:
            continue
        flows = ask_flows(port)
        if flows:
            shown_at = time.monotonic()
            output.show_status(progress_line(flows, ask_lag(admin, group) if admin is not None and group else None))


def _admin(stack: ExitStack, configuration: Mapping[str, str]) -> Any:
    """For the lag; a pipeline may have brokers that cannot be asked from here."""
    servers = configuration.get(SERVERS_KEY)
    if not servers:
        return None
    from barnabas.client import Admin
    from barnabas.config_def import InvalidConfig
    from barnabas.errors import KafkaError

    try:
        return stack.enter_context(Admin({"bootstrap.servers": servers, **_LAG_TIMEOUTS}))
    except (KafkaError, InvalidConfig):
        return None


def _stop(process: subprocess.Popen[str]) -> None:
    """All of them: the script, the JVM it becomes, and the server that one starts are one session."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        try:
            os.killpg(process.pid, number)
            process.wait(_STOP_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def where_it_runs(given: Namespace, configuration: Mapping[str, str]) -> str:
    """The server that is up already or, if there is none, the cluster of a Spark that is started for this run; by default this machine."""
    settings = {**configuration, **dict(setting.partition("=")[::2] for setting in given.conf)}
    remote = given.remote or settings.get("spark.remote") or os.environ.get("SPARK_REMOTE") or ""
    return remote if remote.startswith(_SERVER) else given.master or settings.get("spark.master") or "local"


def require_free(port: int) -> None:
    """Refuses to begin what could only fail: one machine has place for one pipeline at a time."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise ProjectRefused(
                f"port {port} of this machine is in use, by another pipeline or by a Spark Connect server: wait until that has ended, "
                "or name a server that is up, with --remote sc://host:port"
            ) from None


def _script(environ: Mapping[str, str]) -> str:
    import pyspark

    home = environ.get(HOME) or os.path.dirname(pyspark.__file__)
    script = Path(home, "bin", "spark-pipelines")
    if not script.is_file():
        raise ProjectRefused(f"{script} is missing: this Spark has no declarative pipelines; they came with 4.1")
    return str(script)


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number
