"""`python -m benchmarks.spark_loads BOOTSTRAP TOPIC LOG_DIR DIRECTORY TURNS`: one Spark that reads and writes a topic, by turns.

Every load is a query as a user would write it, once through Spark's own Kafka connector and once through ours. For each it prints a line of
JSON: what, through what, in which turn, how many rows, in how many seconds, and how many CPU seconds Spark took for it: of its JVM, of
the Python workers, and of this process. The broker's are not among them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.client import Admin, NewTopic
from tests import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KAFKA, OURS, FILES, EXACTLY_ONCE = "kafka", "barnabas", "files", "exactly-once"
PARTITIONS = 4
SETTINGS = {"spark.driver.memory": "3g"}

Load = Callable[[], int]


def main() -> None:
    bootstrap, topic, log_dir, directory, turns = sys.argv[1:]
    with spark_session.running(Path(directory) / "spark", SETTINGS) as spark:
        loads = Loads(spark, bootstrap, topic, log_dir, Path(directory))
        for turn in range(int(turns)):
            for what, through, load in loads.all():
                started, cpu = time.perf_counter(), cpu_seconds()
                rows = load()
                measured = {"seconds": time.perf_counter() - started, "cpu_seconds": cpu_seconds() - cpu}
                print(json.dumps({"what": what, "through": through, "turn": turn, "rows": rows, **measured}), flush=True)


class Loads:
    """The queries. Each gives the number of rows that went through it."""

    def __init__(self, spark: SparkSession, bootstrap: str, topic: str, log_dir: str, directory: Path) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._topic = topic
        self._log_dir = log_dir
        self._directory = directory
        self._outputs = 0

    def all(self) -> list[tuple[str, str, Load]]:
        return [
            *(("count", source, lambda source=source: self._count(source)) for source in (KAFKA, OURS, FILES)),
            *(("sum(length(value))", source, lambda source=source: self._sum(source)) for source in (KAFKA, OURS, FILES)),
            *(("to Parquet", source, lambda source=source: self._to_parquet(source)) for source in (KAFKA, OURS)),
            *(("stream to Parquet", source, lambda source=source: self._stream_to_parquet(source)) for source in (KAFKA, OURS)),
            *(("topic to topic", sink, lambda sink=sink: self._topic_to_topic(sink)) for sink in (KAFKA, OURS, EXACTLY_ONCE)),
        ]

    def _read(self, source: str) -> DataFrame:
        if source == FILES:
            return self._spark.read.format(OURS).options(logDirs=self._log_dir, subscribe=self._topic).load()
        return self._spark.read.format(source).options(**self._options()).load()

    def _options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._bootstrap, "subscribe": self._topic, "startingOffsets": "earliest"}

    def _count(self, source: str) -> int:
        return self._read(source).count()

    def _sum(self, source: str) -> int:
        from pyspark.sql import functions as f

        (row,) = self._read(source).select(f.sum(f.length("value")), f.count("value")).collect()
        return int(row[1])

    def _to_parquet(self, source: str) -> int:
        return self._written(lambda output: self._read(source).write.parquet(str(output)))

    def _stream_to_parquet(self, source: str) -> int:
        def write(output: Path) -> None:
            stream = self._stream(source).writeStream.format("parquet").option("path", str(output))
            stream.option("checkpointLocation", f"{output}.checkpoint").trigger(availableNow=True).start().awaitTermination()

        return self._written(write)

    def _stream(self, source: str) -> DataFrame:
        return self._spark.readStream.format(source).options(**self._options()).load()

    def _written(self, write: Callable[[Path], None]) -> int:
        self._outputs += 1
        output = self._directory / f"out-{self._outputs}"
        write(output)
        rows = self._spark.read.parquet(str(output)).count()  # from the footers of the files: costs nothing
        shutil.rmtree(output)
        return rows

    def _topic_to_topic(self, sink: str) -> int:
        self._outputs += 1
        topic = f"{self._topic}-out-{self._outputs}"
        with Admin({"bootstrap.servers": self._bootstrap}) as admin:
            admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
        source = KAFKA if sink == KAFKA else OURS
        options: dict[str, Any] = {"kafka.bootstrap.servers": self._bootstrap, "topic": topic}
        if sink == EXACTLY_ONCE:
            options |= {"exactlyOnce": "true", "transactionalIdPrefix": topic}
        stream = self._stream(source).select("key", "value").writeStream.format(source).options(**options)
        query = stream.option("checkpointLocation", str(self._directory / topic)).trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(progress["numInputRows"] for progress in query.recentProgress)


def cpu_seconds() -> float:
    """Of this process and everything it has started, those that have ended included."""
    processes: dict[int, tuple[int, int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        processes[int(name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    mine, waiting = 0, [os.getpid()]
    while waiting:
        parent = waiting.pop()
        mine += processes[parent][1]
        waiting += [process for process, (its_parent, _) in processes.items() if its_parent == parent]
    return mine / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
