"""Kafka's own `kafka-producer-perf-test`, the Java client that clusters and transactions are measured with."""

from __future__ import annotations

import re
import subprocess

from tests import kafka

_TOOL = "org.apache.kafka.tools.ProducerPerformance"
_RATE = re.compile(r"records/sec \(([\d.]+) MB/sec\)")


def produce(bootstrap: str, topic: str, records: int, record_bytes: int, *more: str) -> float:
    """MB/s, as the tool says at its end; acks of all and idempotence are its defaults. `more` options may follow."""
    options = {
        "--bootstrap-server": bootstrap,
        "--topic": topic,
        "--num-records": str(records),
        "--record-size": str(record_bytes),
        "--throughput": "-1",
    }
    java = ["java", "-Xmx512m", kafka.QUIET, "-cp", f"{kafka.prepare()}/*", _TOOL]
    command = [*java, *(word for option in options.items() for word in option), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    matches = _RATE.findall(done.stdout)
    if done.returncode or not matches:
        raise RuntimeError(f"{_TOOL} at {bootstrap}: {done.stdout[-500:]} {done.stderr[-500:]}")
    return float(matches[-1]) * 1.048576  # its MB are 2**20 bytes
