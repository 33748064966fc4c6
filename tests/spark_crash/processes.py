"""The processes of a Spark that runs a pipeline: found by their session, told apart by what they were started with, killed one by one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import IO

from barnabas.tools.spark.spark_home import home_settings
from tests.jvm import spark_environment


class Kind(Enum):
    """What may be killed of a Spark, by a word in the command line of the process."""

    DRIVER = "org.apache.spark.deploy.SparkSubmit"
    EXECUTOR = "CoarseGrainedExecutorBackend"
    WORKER = "pyspark.daemon"


class Application:
    """A pipeline in a session of its own, so that whatever it starts can be found even after its driver is dead."""

    def __init__(self, script: Path, arguments: Sequence[str], output: IO[str], home: Path) -> None:
        interpreters = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        environment = {**os.environ, **interpreters, **home_settings(home), **spark_environment()}
        self._process = subprocess.Popen(
            [sys.executable, str(script), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )

    def ended(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.poll()

    def processes(self, kind: Kind) -> list[int]:
        return [pid for pid, command in _of_session(self._process.pid) if kind.value in command]

    def all_processes(self) -> list[int]:
        """Whatever is left of it."""
        return [pid for pid, _ in _of_session(self._process.pid)]

    def kill(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def kill_driver(self) -> None:
        """Python's half and Java's half; executors and their workers find out for themselves."""
        for pid in self.processes(Kind.DRIVER):
            self.kill(pid)
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Nothing of it is left."""
        self._process.kill()
        self._process.wait()
        for pid, _ in _of_session(self._process.pid):
            self.kill(pid)


def _of_session(session: int) -> list[tuple[int, str]]:
    processes: list[tuple[int, str]] = []
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        with suppress(OSError):
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                processes.append((int(directory.name), (directory / "cmdline").read_text().replace("\0", " ")))
    return processes
