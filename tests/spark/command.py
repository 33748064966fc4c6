"""The command `barnabas`, as a user runs it in a directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.spark.queries import STARTS_MAX, TOO_SLOW

TIMEOUT_S = 900


def barnabas(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "barnabas", *words]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, encoding="utf-8", timeout=TIMEOUT_S)


def run_pipeline(project: Path) -> subprocess.CompletedProcess[str]:
    """`barnabas pipeline run`, again where a machine was too busy for Spark: a run goes on where the one before it ended."""
    for _ in range(STARTS_MAX - 1):
        ran = barnabas(project, "pipeline", "run")
        if ran.returncode == 0 or TOO_SLOW not in ran.stderr:
            return ran
    return barnabas(project, "pipeline", "run")
