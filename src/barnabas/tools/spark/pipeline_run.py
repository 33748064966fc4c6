"""Runs `spark-pipelines` as a process, with the settings of the project, and shows its output and progress.

Spark's tables outlive a run only with a persistent catalog: without one, the second run of a project with a table would fail. Therefore
catalog and tables are kept in the project's directory unless the project or the user sets something else. With --master or --remote the
settings of that cluster or server apply.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final

from barnabas.tools.command_line.text import coloured
from barnabas.tools.spark.pipeline_progress import Flows, ask_lag, failure_in, progress_line, short_name, terminal_line
from barnabas.tools.spark.pipeline_project import GROUP_KEY, SERVERS_KEY, ProjectRefused
from barnabas.tools.spark.spark import environment
from barnabas.tools.spark.spark_event_log import PREFIX as EVENT_LOG
from barnabas.tools.spark.spark_event_log import SparkEventLog, log_settings
from barnabas.tools.spark.spark_home import HOME, home_settings, is_local

_EVENT: Final = re.compile(r"\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d): (.*)")
_FLOW_STATE: Final = re.compile(r"Flow (\S+) (is QUEUED|has COMPLETED)\.")
# For such a flow Spark reports completion before it reports the failure.
_FAILED_QUERY: Final = re.compile(r"ERROR MicroBatchExecution: Query (\S+) \[id = .* terminated with error")
# The port of the Spark Connect server that spark-pipelines starts; it cannot be changed.
CONNECT_PORT: Final = 15002
_SERVER: Final = "sc://"
_LOOK_S: Final = 1.0
_PIPE_EVERY_S: Final = 10.0
_TAIL_LINES: Final = 40
_STOP_S: Final = 30.0
_LAG_TIMEOUTS: Final = {"request.timeout.ms": "2000", "default.api.timeout.ms": "3000", "socket.connection.setup.timeout.ms": "2000"}


def run_pipeline(given: Namespace, spec: Path) -> int:
    configuration = read_configuration(spec)
    where = where_it_runs(given, configuration)
    if not where.startswith(_SERVER):
        require_free(CONNECT_PORT)
    with ExitStack() as stack:
        log = Path(stack.enter_context(TemporaryDirectory(prefix="barnabas-pipeline-")))
        process = stack.enter_context(_started(given, spec, configuration, where, log))
        assert process.stdout is not None
        admin = _admin(stack, configuration) if not given.dry_run else None
        output = Output(process.stdout, verbose=given.verbose)
        group = configuration.get(GROUP_KEY, "")
        run = PipelineRun(process, output, SparkEventLog(log), lambda: ask_lag(admin, group) if admin is not None and group else None)
        is_ended_early = run.watch()
        _stop(process)
        output.finish()
        run.look()
    return run.report(is_ended_early, verbose=given.verbose)


@contextmanager
def _started(
    given: Namespace, spec: Path, configuration: Mapping[str, str], where: str, log: Path
) -> Generator[subprocess.Popen[str], None, None]:
    """The process of spark-pipelines; it is ended when the context exits."""
    environ = {**os.environ, **environment(), "PYSPARK_SUBMIT_ARGS": submit_arguments(given, spec.parent, configuration, log)}
    if is_local(where):
        environ |= home_settings()
    if given.master is None and given.remote is None:
        environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    command = [_script(environ), "dry-run" if given.dry_run else "run", *cluster_options(given)]
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
    try:
        yield process
    finally:
        _stop(process)


def _refreshes(given: Namespace) -> list[str]:
    if given.dry_run:
        return []
    words = [word for name in ("full_refresh", "refresh") if getattr(given, name) for word in (_flag(name), getattr(given, name))]
    return [*words, *(["--full-refresh-all"] if given.full_refresh_all else [])]


def read_configuration(spec: Path) -> dict[str, str]:
    """The settings in a project's spec; spark-pipelines validates the rest."""
    import yaml

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
    """The options for Spark that the user gave."""
    options = [word for name in ("master", "remote") if getattr(given, name) for word in (_flag(name), getattr(given, name))]
    return [*options, *(word for setting in given.conf for word in ("--conf", setting))]


def submit_arguments(given: Namespace, directory: Path, configuration: Mapping[str, str], log: Path) -> str:
    """The options for Spark and our settings, as PYSPARK_SUBMIT_ARGS: spark-pipelines passes on only the last ten of a long command
    line."""
    settings: dict[str, str] = {}
    chosen = [*configuration, *given.conf]
    if given.remote is None:
        settings |= {"spark.ui.showConsoleProgress": "false"}
    if given.remote is None and not any(name.startswith(EVENT_LOG) for name in chosen):  # the user's own event log settings are kept
        settings |= log_settings(log)
    if given.remote is None and given.master is None:
        settings |= {
            # Spark's default of 200 is for clusters: each partition costs time in every batch
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={directory / 'catalog'};create=true",
            "spark.sql.warehouse.dir": (directory / "tables").as_uri(),
            "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={directory / 'catalog.log'}",
        }
    settings = {name: value for name, value in settings.items() if name not in configuration}  # the setting of the project applies
    settings |= dict(setting.partition("=")[::2] for setting in given.conf)
    return shlex.join([*(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")), "pyspark-shell"])


class Output:
    """The output of the process: events are shown at once, the rest is kept and shown if the process fails."""

    def __init__(self, stream: IO[str], *, verbose: bool) -> None:
        self._verbose = verbose
        self._lines: deque[str] = deque(maxlen=_TAIL_LINES)
        self._status = ""
        self.unfinished: set[str] = set()  # flows that Spark announced and that are not completed
        self._failed: set[str] = set()
        self._is_quiet = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def show_status(self, line: str) -> None:
        """On a terminal the last line is overwritten; in a pipe a line is printed when it has changed."""
        with self._lock:
            if sys.stdout.isatty():
                self._clear()
                self._status = line
                print(coloured(line[: shutil.get_terminal_size().columns - 1], "dim"), end="", flush=True)
            elif line != self._status:
                self._status = line
                print(line, flush=True)

    def hush(self) -> None:
        """Suppresses further output, because the run is being ended."""
        self._is_quiet = True

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
        is_news = event is not None and self._note(event[2])
        if event is None:
            self._lines.append(line)
            if (failed := _FAILED_QUERY.search(line)) is not None:
                self._failed.add(short_name(failed[1]))
        if not self._verbose and (self._is_quiet or not is_news):
            return
        with self._lock:
            self._clear()
            print(line if event is None else f"{event[1]}  {event[2]}", flush=True)

    def _note(self, event: str) -> bool:
        """Records the event of a flow; returns whether to show it."""
        state = _FLOW_STATE.fullmatch(event)
        if state is None:
            return True
        name = short_name(state[1])
        if state[2] == "is QUEUED":
            self.unfinished.add(name)
            self._failed.discard(name)
        elif state[2] == "has COMPLETED":
            self.unfinished.discard(name)
            return name not in self._failed
        return True

    def _clear(self) -> None:
        if self._status and sys.stdout.isatty():
            print("\r\x1b[K", end="")
            self._status = ""


class PipelineRun:
    """A run of a pipeline: shows its progress from Spark's event log and the broker, and a summary at the end."""

    def __init__(self, process: subprocess.Popen[str], output: Output, log: SparkEventLog, lag: Callable[[], int | None]) -> None:
        self._process = process
        self._output = output
        self._log = log
        self._lag = lag
        self._flows = Flows()

    def watch(self) -> bool:
        """Shows progress until Spark ends. Returns True if the run can be ended early, because the failed flows would fail again."""
        shown_at = time.monotonic()
        while True:
            try:
                self._process.wait(_LOOK_S)
                return False
            except subprocess.TimeoutExpired:
                self.look()
            if self._flows.are_hopeless(self._output.unfinished):
                self._output.hush()
                return True
            running = self._flows.running()
            if running and (sys.stdout.isatty() or time.monotonic() - shown_at >= _PIPE_EVERY_S):
                shown_at = time.monotonic()
                line = terminal_line if sys.stdout.isatty() else progress_line
                self._output.show_status(line(running, self._lag()))

    def look(self) -> None:
        """Reads the events since the last call."""
        for kind, event in self._log.events():
            self._flows.take(kind, event)

    def report(self, is_ended_early: bool, *, verbose: bool) -> int:
        """Prints the summary and returns the exit code."""
        if self._process.returncode == 0 and not is_ended_early:
            for line in (line for flow in self._flows.all for line in flow.summary()):
                print(line, flush=True)
            return 0
        failures = self._flows.failures()
        if not failures and (failure := failure_in(self._output.tail())) is not None:
            failures = [failure.message]  # the definitions failed before any flow started
        for line in failures:
            print(f"barnabas: {line}", file=sys.stderr)
        if not failures and not verbose:
            print(f"barnabas: the pipeline failed; the end of what Spark printed:\n{self._output.tail()}", file=sys.stderr)
        return 1


def _admin(stack: ExitStack, configuration: Mapping[str, str]) -> Any:
    """The admin client for the lag; None if the brokers of the pipeline cannot be reached from here."""
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
    """Ends the script, its JVM and the server of that JVM: all are in one session."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        try:
            os.killpg(process.pid, number)
            process.wait(_STOP_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def where_it_runs(given: Namespace, configuration: Mapping[str, str]) -> str:
    """The server of --remote, else the cluster of the Spark that is started for this run; by default this machine."""
    settings = {**configuration, **dict(setting.partition("=")[::2] for setting in given.conf)}
    remote = given.remote or settings.get("spark.remote") or os.environ.get("SPARK_REMOTE") or ""
    return remote if remote.startswith(_SERVER) else given.master or settings.get("spark.master") or "local"


def require_free(port: int) -> None:
    """Raises an error if another pipeline runs on this machine: only one can run at a time."""
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
