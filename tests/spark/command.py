"""The command `barnabas`, as a user runs it in a directory."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.jvm import spark_environment
from tests.spark.queries import STARTS_MAX, TOO_SLOW

TIMEOUT_S = 900


def barnabas(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **spark_environment(), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "barnabas", *words]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, encoding="utf-8", timeout=TIMEOUT_S)


def run_pipeline(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`barnabas pipeline run`, again where a machine was too busy for Spark: a run goes on where the one before it ended."""
    with _alone():
        for _ in range(STARTS_MAX - 1):
            ran = barnabas(project, "pipeline", "run", *options)
            if ran.returncode == 0 or TOO_SLOW not in ran.stderr:
                return ran
        return barnabas(project, "pipeline", "run", *options)


@contextmanager
def _alone() -> Generator[None, None, None]:
    """A machine has place for one pipeline at a time, and tests run side by side."""
    with (Path(tempfile.gettempdir()) / "barnabas-tests-pipeline.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
