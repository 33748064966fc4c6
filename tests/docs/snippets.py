"""The Python of a page, run block after block in one namespace against the broker on localhost:9092.

A page may speak of functions that are its reader's. `handle` takes a record and ends the block, unless the block asks `stopping()`, which
is true once something was handled or written. Tests that a block defines are called, with Barnabas's fixtures. A query that a block leaves
running reads what there is, and is stopped; what a block defines for a declarative pipeline is run.
"""

from __future__ import annotations

import inspect
import io
import re
import signal
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from types import FrameType
from typing import TYPE_CHECKING, Any

from barnabas.client import Admin, Consumer, NewTopic, OffsetSpec, Producer, TopicPartition
from barnabas.client.errors import TopicExists
from barnabas.testing import broker
from tests.documentation import Block

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADDRESS = "localhost:9092"
TIMEOUT_S = 120
ORDERS = 30
PARTITIONS = 3
_PRINTS = re.compile(r"  # (?:.*[,;:] )?prints (.+)$", re.MULTILINE)


class SnippetFailed(Exception):
    """The message has the traceback, with the lines of the page."""


class Enough(Exception):
    """The block has shown what it can: its loop would go on for ever."""


class Company:
    """What docs/serializers.md writes a serializer for."""


class Snippets:
    def __init__(self, spark: SparkSession | None = None, *, stand_alone: bool = False) -> None:
        self.names = self._given(spark)
        self._spark = spark
        self._stand_alone = stand_alone  # whether a block must not use names of the blocks before it
        self._handled: list[tuple[Any, ...]] = []
        self._ends_at_first = True
        self._deadline = 0.0

    def prepare(self) -> str:
        """Makes the topics that pages speak of, with records in `orders`."""
        with _failures(""):
            with Admin(bootstrap_servers=ADDRESS) as admin:
                _create_topics(admin)
            with Producer(bootstrap_servers=ADDRESS) as producer:
                for number in range(ORDERS):
                    order = b'{"product": "apples", "quantity": %d, "at": "2026-11-16T12:00:%02dZ"}' % (number, number)
                    producer.send("orders", order, key=b"%d" % number, partition=number % PARTITIONS)
        return ""

    def run(self, block: Block) -> str:
        """What the block prints. Raises SnippetFailed."""
        if self._stand_alone:
            self.names = self._given(self._spark)
        self._handled, self._ends_at_first = [], "stopping()" not in block.source
        self._deadline = time.monotonic() + TIMEOUT_S
        before = dict(self.names)
        printed = io.StringIO()
        with _failures(block.page, printed), redirect_stdout(printed):
            try:
                self._execute(block)
            except Enough:
                pass
            assert self._handled or "handle(" not in block.source, "no record was given to handle()"
            for name in [name for name in self.names if name.startswith("test_") and name not in before]:
                self._call(self.names[name])
            if self._spark is not None:
                self._finish_queries(self._spark, block, before)
        return printed.getvalue()

    def finish(self) -> str:
        """The next page is for another reader: what this one has told Spark is taken back."""
        if self._spark is not None:
            from pyspark.sql.streaming import StreamingQueryListener

            for value in self.names.values():
                if isinstance(value, StreamingQueryListener):
                    self._spark.streams.removeListener(value)
        return ""

    def _given(self, spark: SparkSession | None) -> dict[str, Any]:
        functions = (self.handle, self.stopping, self.count_orders, self.send, self.read)
        names = {"__name__": "shown", "Company": Company, "spark": spark}
        return names | {function.__name__: function for function in functions}

    def handle(self, *seen: Any) -> None:
        self._handled.append(seen)
        if self._ends_at_first:
            raise Enough

    def stopping(self) -> bool:
        assert time.monotonic() < self._deadline, "nothing was handled or written"
        return bool(self._handled) or _end_of(TopicPartition("invoices", 0)) > 0

    def count_orders(self, bootstrap_servers: str) -> int:
        with Consumer[bytes, bytes](bootstrap_servers=bootstrap_servers) as consumer:
            partitions = [info.topic_partition for info in consumer.partitions_for("orders")]
            return sum(consumer.end_offsets(partitions).values())

    def send(self, bootstrap_servers: str, topic: str, value: bytes) -> None:
        with Producer(bootstrap_servers=bootstrap_servers) as producer:
            producer.send(topic, value).result(TIMEOUT_S)

    def read(self, bootstrap_servers: str, topic: str) -> bytes | None:
        with Consumer[bytes, bytes](bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            return next(iter(consumer)).value

    def _execute(self, block: Block) -> None:
        if "pyspark import pipelines" not in block.source:
            exec(compiled(block), self.names)
            return
        from pyspark.pipelines.graph_element_registry import graph_element_registration_context

        from tests.docs.definitions import Definitions

        definitions = Definitions()
        with graph_element_registration_context(definitions):
            exec(compiled(block), self.names)
        definitions.run()

    def _call(self, function: Any) -> None:
        parameters = inspect.signature(function).parameters
        if not parameters:
            function()
            return
        with broker(topics=["of-one-test"]) as running:
            fixtures = {"broker": running, "broker_topic": "of-one-test"}
            function(**{name: fixtures[name] for name in parameters})

    def _finish_queries(self, spark: SparkSession, block: Block, before: dict[str, Any]) -> None:
        """A stream that the block has only defined is read once, so that its options and columns are tried."""
        new = [value for name, value in self.names.items() if value is not before.get(name)]
        for rows in new if "writeStream" not in block.source else ():
            if getattr(rows, "isStreaming", False):
                rows.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
        for query in spark.streams.active:
            query.processAllAvailable()
            query.stop()


def _create_topics(admin: Admin) -> None:
    """A Spark worker keeps its client from page to page: its metadata request may have created `orders` on the new broker already."""
    failures = admin.create_topics([NewTopic("orders", PARTITIONS), NewTopic("invoices", 1)]).errors
    for error in failures.values():
        if not isinstance(error, TopicExists):
            raise error
    if "orders" in failures:
        admin.create_partitions({"orders": PARTITIONS}).all()


def compiled(block: Block) -> Any:
    """With the line numbers of the page."""
    return compile("\n" * (block.line - 1) + block.source, block.page, "exec")


def prints(block: Block) -> str:
    """The lines that the page says it prints, in comments: `print(x)  # prints …`."""
    return "\n".join(_PRINTS.findall(block.source))


@contextmanager
def _failures(page: str, printed: io.StringIO | None = None) -> Generator[None, None, None]:
    """Any exception of the block as SnippetFailed, and one if the block does not end."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"the block did not end within {TIMEOUT_S} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(TIMEOUT_S)
    try:
        yield
    except (Exception, SystemExit):
        traceback_text = traceback.format_exc()
        place = traceback_text.find(f'  File "{page}"')  # what the runner did before the page's own lines says nothing
        raise SnippetFailed(("" if printed is None else printed.getvalue()) + traceback_text[max(place, 0) :]) from None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _end_of(partition: TopicPartition) -> int:
    with Admin(bootstrap_servers=ADDRESS) as admin:
        return admin.list_offsets({partition: OffsetSpec.latest()})[partition].offset
