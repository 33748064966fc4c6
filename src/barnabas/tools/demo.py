"""See it work: a broker, a stream of orders, a pipeline on Spark that counts them, and the result. (Not in Kafka.)

Everything runs on this machine and is thrown away at the end. Orders go to a topic; Spark groups them into windows of event time and writes
each finished window to another topic, exactly once; what is shown is read from there.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from barnabas.tools.administration.status_text import size_text
from barnabas.tools.command_line.text import on_terminal
from barnabas.tools.running.process_memory import tree_bytes
from barnabas.tools.spark.demo_orders import SCHEMA, Pace, Shop
from barnabas.tools.spark.demo_screen import Figures, Tally, line, screen
from barnabas.tools.spark.spark import environment, open_session, or_missing, require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from barnabas.client.consumer.consumer import Consumer

RATE: Final = 10_000
ORDERS: Final = "orders"
SALES: Final = "sales"
PARTITIONS: Final = 4
WINDOW: Final = "5 seconds"
LATENESS: Final = "5 seconds"
_LOOK_S: Final = 0.5
_MEMORY_EVERY_S: Final = 2.0
_BROKER_START_S: Final = 30.0
_STOP_S: Final = 15.0
_READY: Final = "ready listeners=PLAINTEXT://"
# Counted orders may be deleted, so that the demo can run for days on a small disk.
_ORDERS_CONFIG: Final = {"retention.bytes": str(512 * 1024 * 1024), "segment.bytes": str(64 * 1024 * 1024)}
_BROKER_SETTINGS: Final = {
    "log.retention.check.interval.ms": "10000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
_SPARK_SETTINGS: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.minBatchesToRetain": "10",
}
_ROWS_PER_BATCH: Final = 500_000
# Spark gives a Python process ten seconds to start, which cannot be changed; a busy machine may need longer.
_TOO_SLOW: Final = "failed to connect back"
_STARTS_MAX: Final = 10


class DemoFailed(Exception):
    """The demo cannot go on; the text is printed for the user."""


def main(arguments: Sequence[str]) -> int:
    parser = build_parser()
    given = parser.parse_args(arguments)
    if given.records < 0 or given.rate < 0:
        parser.error("--records and --rate are numbers of orders: 0 or more")
    return or_missing(lambda: _run(given))


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas demo", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--records", type=int, default=0, metavar="N", help="end after so many orders; default: go on until Ctrl-C")
    parser.add_argument("--rate", type=int, default=RATE, metavar="N", help="orders a second, 0 for as many as go; default: %(default)s")
    parser.add_argument("--data", metavar="DIR", default=None, help="keep the broker's data, Spark's checkpoint and log in this directory")
    return parser


def _run(given: Namespace) -> int:
    version = require_spark()
    try:
        with _interruptible(), _directory(given.data) as directory, ExitStack() as stack:
            _say("starting a broker …")
            servers = stack.enter_context(_broker(directory))
            _say(f"starting Spark {version} …")
            demo = stack.enter_context(_demo(given, directory, servers, version))
            demo.watch()
        return 0
    except DemoFailed as failure:
        print(f"barnabas: {failure}", file=sys.stderr)
        return 1


@dataclass
class Demo:
    """The running parts of the demo, and its figures."""

    about: list[str]
    shop: Shop
    start_query: Callable[[], StreamingQuery]
    sales: Consumer[Any, Any]
    records: int

    def __post_init__(self) -> None:
        self.query = self.start_query()
        self._starts = 1
        self.figures = Figures()
        self.tally = Tally()
        self._batch = -1
        self._rows_read = 0  # read by Spark, including the record that closes all windows
        self._looked_at_memory = float("-inf")
        self._began = time.monotonic()
        self._printed: set[str] = set()
        self._is_quiet = False

    def watch(self) -> None:
        """Shows the result until all orders are counted or the user ends the demo."""
        enough: list[int] = []
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
        ):  # only a flag: an exception inside a call would break the connection to the JVM
            signal.signal(number, lambda number, frame: enough.append(number))
        while not enough and not self._is_done():
            self._look()
            self._show()
        self._show(last=True)
        print(self._summary(), flush=True)
        if self.records and self._is_finished() and self.tally.counted != self.shop.sent:
            raise DemoFailed(f"{self.shop.sent - self.tally.counted:,} orders came too late to be counted")

    def _is_done(self) -> bool:
        failure = self.query.exception()
        if failure is not None and _TOO_SLOW in str(failure) and self._starts < _STARTS_MAX:
            self._starts += 1
            self.query = self.start_query()
        elif failure is not None:
            raise DemoFailed(f"the pipeline failed: {str(failure).splitlines()[0]}")
        if self.shop.failure is not None:
            raise DemoFailed(f"orders could not be sent: {self.shop.failure}")
        return self._is_finished()

    def _is_finished(self) -> bool:
        """Whether all orders are sent and counted, or all windows are closed, so that nothing more can arrive."""
        if not self.records or not self.shop.is_over:
            return False
        if self.tally.counted >= self.records:
            return True
        # The orders and the record that closes all windows. The windows are written in the batch after the one that reads it.
        return self._rows_read > self.records and self._idle_batches() and not self._poll()

    def _idle_batches(self) -> bool:
        progress = self.query.lastProgress
        return progress is not None and progress["numInputRows"] == 0 and not self.query.status["isTriggerActive"]

    def _look(self) -> None:
        self._is_quiet = not self._poll()
        for progress in self.query.recentProgress:
            if progress["batchId"] > self._batch:
                self._batch = progress["batchId"]
                self._rows_read += progress["numInputRows"]
                self.figures.rows_per_s = progress["processedRowsPerSecond"] or 0.0
                self.figures.batch_s = progress["durationMs"].get("triggerExecution", 0) / 1000
        self.figures.sent = self.shop.sent
        self.figures.processed = self.shop.orders_among(self._rows_read)
        self.shop.processed = self.figures.processed
        if time.monotonic() - self._looked_at_memory >= _MEMORY_EVERY_S:
            self._looked_at_memory = time.monotonic()
            self.figures.memory = tree_bytes(os.getpid())
            self.figures.memory_peak = max(self.figures.memory_peak, self.figures.memory or 0)

    def _poll(self) -> bool:
        rows = [json.loads(record.value) for record in self.sales.poll(_LOOK_S) if record.value is not None]
        for row in rows:
            self.tally.add(row)
        return bool(rows)

    def _show(self, *, last: bool = False) -> None:
        if on_terminal():
            print(screen(self.about, self.figures, self.tally, self.records), flush=True)
            return
        if not (last or self._is_quiet):  # the rows of a window arrive one by one and are shown together
            return
        for start in sorted(self.tally.windows)[: None if last else -1]:
            if start not in self._printed:
                self._printed.add(start)
                print(line(start, self.tally.windows[start]), flush=True)
        self._printed &= set(self.tally.windows)

    def _summary(self) -> str:
        elapsed_s = time.monotonic() - self._began
        peak = f", memory at most {size_text(self.figures.memory_peak)}" if self.figures.memory_peak else ""
        return (
            f"{self.shop.sent:,} orders sent, {self.figures.processed:,} read by Spark, {self.tally.counted:,} in windows that are out; "
            f"{elapsed_s:.0f} s, {self.figures.processed / max(elapsed_s, 0.001):,.0f} a second{peak}"
        )


@contextmanager
def _demo(given: Namespace, directory: Path, servers: str, version: str) -> Generator[Demo, None, None]:
    from barnabas.client import Admin, Consumer, NewTopic, Producer, TopicPartition

    with ExitStack() as stack:
        with Admin(bootstrap_servers=servers) as admin:
            topics = [NewTopic(ORDERS, PARTITIONS, 1, configs=_ORDERS_CONFIG), NewTopic(SALES, 1, 1)]
            admin.create_topics(topics).all()
        spark = open_session("barnabas demo", {**_SPARK_SETTINGS, "spark.local.dir": str(directory / "scratch")}, directory / "spark.log")
        stack.callback(spark.stop)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark has replaced the handler by its own
        sales: Consumer[Any, Any] = stack.enter_context(Consumer(bootstrap_servers=servers, isolation_level="read_committed"))
        sales.assign([TopicPartition(SALES, 0)])
        sales.seek_to_beginning([TopicPartition(SALES, 0)])
        producer = stack.enter_context(Producer(bootstrap_servers=servers, linger_ms=20, batch_size=64 * 1024))
        shop = Shop(producer, ORDERS, Pace(given.rate, given.records))
        stack.callback(shop.stop)
        shop.start()
        checkpoint = str(directory / "checkpoint")
        demo = Demo(_about(servers, version), shop, lambda: _start_query(spark, servers, checkpoint), sales, given.records)
        stack.callback(lambda: demo.query.stop())
        yield demo


def _about(servers: str, version: str) -> list[str]:
    return [
        "Barnabas demo: orders are counted by Spark, and the counts read from a topic. Ctrl-C ends it.",
        f"  broker    {servers}, topics {ORDERS} ({PARTITIONS} partitions) and {SALES}",
        f"  pipeline  Spark {version}: windows of {WINDOW} by product, {LATENESS} for late orders, exactly once",
    ]


def _start_query(spark: SparkSession, servers: str, checkpoint: str) -> StreamingQuery:
    from pyspark_barnabas.pipelines import windows
    from pyspark_barnabas.pipelines.topics import Source, Target

    spark.sparkContext.setLogLevel("ERROR")
    source = Source(servers, ORDERS, options={"maxOffsetsPerTrigger": str(_ROWS_PER_BATCH), "kafka.group.id": "demo"})
    counts = windows.Windows(keys={"product": "product"}, aggregates={"orders": "count(*)"}, size=WINDOW, lateness=LATENESS, schema=SCHEMA)
    return windows.start(spark, source, Target(servers, SALES, transactional_id_prefix="demo"), counts, checkpoint)


@contextmanager
def _broker(directory: Path) -> Generator[str, None, None]:
    """The address of a broker in a process and session of its own, so that Ctrl-C does not reach it."""
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--host", "127.0.0.1", "--data", str(directory / "broker")]
    for name, value in _BROKER_SETTINGS.items():
        command += ["--override", f"{name}={value}"]
    log = directory / "broker.log"
    with open(log, "wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **environment()}, encoding="utf-8", start_new_session=True
        )
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        if not ready.startswith(_READY):
            raise DemoFailed(f"the broker did not start: {log.read_text(errors='replace').strip()}")
        yield ready.removeprefix(_READY).split()[0]
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@contextmanager
def _directory(given: str | None) -> Generator[Path, None, None]:
    """The directory of the demo; a temporary one is removed afterwards."""
    if given is not None:
        path = Path(given).expanduser().absolute()
        if path.exists() and any(path.iterdir()):
            raise DemoFailed(f"{path} is not empty; name a new directory with --data")
        path.mkdir(parents=True, exist_ok=True)
        yield path
        return
    path = Path(tempfile.mkdtemp(prefix="barnabas-demo-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _interruptible() -> Generator[None, None, None]:
    """SIGTERM ends the demo as Ctrl-C does, also before the first output."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt), signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
