"""A real Prometheus (Debian's package `prometheus`) that scrapes brokers every second with the files of deploy/prometheus."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster import free_port

DEPLOYED = Path(__file__).parents[1] / "deploy" / "prometheus"
_TARGETS = ("broker-1:9404", "broker-2:9404", "broker-3:9404")  # those of deploy/prometheus/prometheus.yml
_START_S = 60
_STOP_S = 60


class Prometheus:
    def __init__(self, address: str, process: subprocess.Popen[bytes]) -> None:
        self._address = address
        self._process = process

    def get(self, path: str, **parameters: str) -> Any:
        """`data` of a response of the HTTP API."""
        url = f"{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression selects now."""
        result: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return result

    def value(self, expression: str) -> float:
        """The value of an expression with one series; -1 if it has none."""
        series = self.query(expression)
        return float(series[0]["value"][1]) if series else -1.0

    def targets_up(self) -> int:
        return sum(target["health"] == "up" for target in self.get("targets")["activeTargets"])

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]

    def wait_ready(self) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            assert self._process.poll() is None, f"prometheus ended with code {self._process.poll()}"
            try:
                with urllib.request.urlopen(f"{self._address}/-/ready", timeout=5):
                    return
            except OSError:
                assert time.monotonic() < deadline, "prometheus is not ready"
                time.sleep(0.05)


@contextmanager
def running(directory: Path, targets: Sequence[str]) -> Generator[Prometheus, None, None]:
    """`targets` replace those of deploy/prometheus/prometheus.yml; 15 seconds become one."""
    text = (DEPLOYED / "prometheus.yml").read_text().replace("15s", "1s").replace("alerts.yml", str(DEPLOYED / "alerts.yml"))
    for example, target in zip(_TARGETS, targets, strict=True):
        assert example in text
        text = text.replace(example, target)
    config = directory / "prometheus.yml"
    config.write_text(text)
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'prometheus'}",
        f"--web.listen-address={address}",
    ]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        prometheus = Prometheus(f"http://{address}", process)
        prometheus.wait_ready()
        yield prometheus
    finally:
        process.terminate()
        process.wait(_STOP_S)
