"""`barnabas demo` as a newcomer runs it, in a pipe: it counts every order once and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jvm import spark_environment

TIMEOUT_S = 900


def demo(directory: Path, *options: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **spark_environment(), "TMPDIR": str(directory)}
    command = [sys.executable, "-m", "barnabas", "demo", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=environment)


def remains(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if path.name.startswith("barnabas-demo")]


@pytest.mark.timeout(TIMEOUT_S + 20)
def test_a_demo_of_some_orders_counts_each_of_them_once(tmp_path: Path) -> None:
    process = demo(tmp_path, "--records", "20000", "--rate", "4000")
    out, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    *windows, summary = out.splitlines()
    counts = [int(match[1].replace(",", "")) for line in windows if (match := re.match(r"\d\d:\d\d:\d\d  ([\d,]+) orders: apples ", line))]
    assert sum(counts) == 20_000
    assert len(counts) == len(windows)
    assert summary.startswith("20,000 orders sent, 20,000 read by Spark, 20,000 in windows that are out; ")
    assert remains(tmp_path) == []


@pytest.mark.timeout(TIMEOUT_S + 20)
def test_ctrl_c_ends_a_demo_cleanly(tmp_path: Path) -> None:
    process = demo(tmp_path)
    assert process.stdout is not None
    assert " orders: " in process.stdout.readline()  # a window is out
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    assert " orders sent, " in out.splitlines()[-1]
    assert "Traceback" not in errors
    assert remains(tmp_path) == []
