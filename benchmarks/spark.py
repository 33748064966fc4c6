"""The Spark data source next to Spark's own Kafka connector (spark-sql-kafka 4.2.0 with kafka-clients 3.9.2, on PySpark 4.3), measured by
turns in one Spark (`local[2]`) against one Barnabas broker: records of 8 B key and 184 B value in 4 partitions, 16 KB batches, not
compressed.

Batches read a whole topic: to count it, to add up the lengths of its values, to write it as Parquet. Streams read it once from its
beginning (`availableNow`) into Parquet, or into another topic, key and value only. The direct reader reads the segment files instead,
and is compared with this project's reader through the broker. The exactly-once writer is compared with this project's at-least-once
writer. CPU seconds are those of Spark alone: JVM, Python workers and driver. About 1 µs of them for each row is Spark's own, whichever
way the row takes (a task that reads files takes 0.4 µs by itself); this bounds how much faster the direct reader can be than the reader
through the broker.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from typing import Any, NamedTuple

from barnabas.client import Producer
from benchmarks import peers
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure
from benchmarks.spark_loads import EXACTLY_ONCE, FILES, KAFKA, OURS, PARTITIONS
from benchmarks.wire import Client

TOPIC = "spark"
KEY_BYTES = 8
VALUE_BYTES = 184
RECORDS_MAX = 1_000_000
RECORD_BYTES = 200
TIMEOUT_S = 3600

CONNECTOR = "Spark's own connector"
BROKER = "our source through the broker"
AT_LEAST_ONCE = "our writer, at least once"
ROWS, PER_CPU = "rows/s", "rows/CPU-s"

Measured = dict[tuple[str, str], list[dict[str, float]]]


class Pair(NamedTuple):
    """A load through two ways; the aims are of the ratios."""

    what: str
    ours: str
    theirs: str
    whose: str
    aim: float
    aim_per_cpu: float | None = None


PAIRS = (
    Pair("count", OURS, KAFKA, CONNECTOR, 1.3, 1.0),
    Pair("sum(length(value))", OURS, KAFKA, CONNECTOR, 1.3, 1.0),
    Pair("to Parquet", OURS, KAFKA, CONNECTOR, 1.3, 1.0),
    Pair("stream to Parquet", OURS, KAFKA, CONNECTOR, 1.0),
    Pair("topic to topic", OURS, KAFKA, CONNECTOR, 1.0),
    Pair("count", FILES, OURS, BROKER, 1.3),
    Pair("sum(length(value))", FILES, OURS, BROKER, 1.3),
    Pair("topic to topic", EXACTLY_ONCE, OURS, AT_LEAST_ONCE, 0.8),
)
NAMES = {FILES: "segment files: ", EXACTLY_ONCE: "exactly once: "}


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    records = min(megabytes * 1_000_000 // RECORD_BYTES, RECORDS_MAX)
    with peers.barnabas() as broker, tempfile.TemporaryDirectory(prefix="barnabas-spark-") as directory:
        _fill(broker, records)
        measured = _loads(broker, directory, turns + 1, records)
    return [_comparison(measured, pair, unit) for pair in PAIRS for unit in (ROWS, PER_CPU)]


def _comparison(measured: Measured, pair: Pair, unit: str) -> Comparison:
    took = "seconds" if unit == ROWS else "cpu_seconds"
    ours, theirs = ([run["rows"] / run[took] for run in measured[pair.what, through]] for through in (pair.ours, pair.theirs))
    aim = pair.aim if unit == ROWS else pair.aim_per_cpu
    return Comparison(f"{NAMES.get(pair.ours, '')}{pair.what}", unit, aim, ours, theirs, other=pair.whose)


def _fill(broker: Peer, records: int) -> None:
    with Client("127.0.0.1", broker.port) as client:
        client.create_topics([TOPIC], PARTITIONS)
    values = os.urandom(VALUE_BYTES * 1000)
    with Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50}) as producer:
        for number in range(records):
            at = number % 1000 * VALUE_BYTES
            producer.send(TOPIC, values[at : at + VALUE_BYTES], number.to_bytes(KEY_BYTES, "big"))
        producer.flush()


def _loads(broker: Peer, directory: str, turns: int, records: int) -> Measured:
    """What each load took, turn by turn; the first turn is for the JVM to get warm, and does not count. Each is told as it is done."""
    command = [sys.executable, "-m", "benchmarks.spark_loads", broker.bootstrap, TOPIC, str(broker.data), directory, str(turns)]
    measured: Measured = {}
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
        assert process.stdout is not None
        too_late = threading.Timer(TIMEOUT_S, process.kill)
        too_late.start()
        try:
            for line in process.stdout:
                document = json.loads(line)
                if document["rows"] != records:
                    raise RuntimeError(f"{document['what']} through {document['through']} had {document['rows']} rows, not {records}")
                print(_said(document), file=sys.stderr, flush=True)
                if document["turn"] > 0:
                    measured.setdefault((document["what"], document["through"]), []).append(document)
        except BaseException:
            process.kill()
            raise
        finally:
            too_late.cancel()
        if process.wait():
            errors.seek(0)
            raise RuntimeError(f"Spark failed: {errors.read()[-3000:]}")
    return measured


def _said(run: dict[str, Any]) -> str:
    per_s, per_cpu = (run["rows"] / run[took] for took in ("seconds", "cpu_seconds"))
    return f"turn {run['turn']}  {run['what']} through {run['through']}: {per_s:,.0f} rows/s, {per_cpu:,.0f} rows/CPU-s"
