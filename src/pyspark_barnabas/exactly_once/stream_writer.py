"""The stream writer that Spark calls with `exactlyOnce`: tasks write in open transactions, the driver decides and ends them.

Spark makes an instance for the tasks of each batch and another for its commit, in different processes; only messages of tasks go from one
to the other. So the token of a run is made here, goes to all tasks, and comes back with their messages. Nothing else is done when an
instance is made. What a transaction wrote becomes visible when it is ended: of one batch, not at once but shortly one after the other.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from barnabas.client.errors import KafkaError
from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.connections import Client, shared_client
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.exactly_once.errors import ExactlyOnceError
from pyspark_barnabas.exactly_once.fingerprint import fingerprint
from pyspark_barnabas.exactly_once.runner import Runner
from pyspark_barnabas.exactly_once.steps import Begun, Report, RunOf, abort, begin, commit
from pyspark_barnabas.exactly_once.transactions import PRODUCE_VERSION_MAX_V1
from pyspark_barnabas.write.encode import Producer, gathered
from pyspark_barnabas.write.rows import check_schema
from pyspark_barnabas.write.send import Sender
from pyspark_barnabas.write.stream_arrow import DataSourceStreamArrowWriter, arrow_batches
from pyspark_barnabas.write.write_options import VERIFY_ROWS, WriteOptions
from pyspark_barnabas.write.write_task import RowWriter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_log: Final = logging.getLogger(__name__)

GIVE_UP_TIMEOUT_S: Final = 10.0
MARGIN_MS_MAX: Final = 120_000  # of the transaction timeout is left for ending what was decided, but no more than half of it

# Undocumented, but what Spark's own streaming code sets for every task of a micro-batch.
BATCH_PROPERTY: Final = "streaming.sql.batchId"
QUERY_PROPERTY: Final = "sql.streaming.queryId"


class Reported(WriterCommitMessage):
    """What a task of a run tells the driver."""

    def __init__(self, query: str, batch: int, token: str, report: Report) -> None:
        self.query = query
        self.batch = batch
        self.token = token
        self.report = report


class ExactlyOnceWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("outputMode", "must be 'append': records of a topic cannot be overwritten.")
        self.options = WriteOptions.of(options, streaming=True)
        self.schema = schema
        self.token = uuid.uuid4().hex
        check_schema(schema, self.options.topic)

    # On executors

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Reported:
        query, batch, partition = task_identity()
        run = RunOf(query, batch, self.token, limit_ms(self.options))
        with shared_client(self.options.settings, "producer") as client:
            report = WriteTask(client, self.options, run, partition).write(arrow_batches(iterator, self.schema))
        return Reported(query, batch, self.token, report)

    # On the driver

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        reported = [message for message in messages if isinstance(message, Reported)]
        if not reported:
            return
        run = self._run_of(reported, batchId)
        with shared_client(self.options.settings, "producer") as client:
            runner = Runner(client, self.options)
            runner.run(commit(run, [message.report for message in reported], runner.names, self.options.verify))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        reported = [message for message in messages if isinstance(message, Reported)]
        if not reported:
            return
        run = self._run_of(reported, batchId)
        with shared_client(self.options.settings, "producer") as client:
            runner = Runner(client, self.options)
            runner.run(abort(run, [message.report for message in reported], runner.names))

    def _run_of(self, reported: list[Reported], batch: int) -> RunOf:
        runs = {(message.query, message.batch, message.token) for message in reported}
        if len(runs) != 1 or next(iter(runs))[1] != batch:
            raise ExactlyOnceError(f"Tasks of several runs reported for batch {batch}: {sorted(runs)}")
        query, _, token = runs.pop()
        return RunOf(query, batch, token, limit_ms(self.options))


class WriteTask:
    """One attempt at one partition of a batch. It begins a transaction when its first row comes, and not before."""

    def __init__(self, client: Client, options: WriteOptions, run: RunOf, partition: int) -> None:
        self._client = client
        self._options = options
        self._run = run
        self._partition = partition
        self._runner = Runner(client, options)
        self._begun: Begun | None = None
        self._writer: RowWriter | None = None

    def write(self, batches: Iterator[pa.RecordBatch]) -> Report:
        rows = checksum = 0
        try:
            for batch in gathered(batches):
                if batch.num_rows == 0:
                    continue
                if not rows:
                    self._begin()
                rows += batch.num_rows
                if self._options.verify == VERIFY_ROWS:
                    checksum += fingerprint(batch, self._options.topic)
                if self._writer is not None:
                    self._writer.write(batch)
            if self._writer is not None:
                self._writer.flush()
        except BaseException:
            self._give_up()
            raise
        finally:
            if self._writer is not None:
                self._writer.close()
        checksum &= 2**64 - 1
        if self._begun is None:
            return Report(rows, checksum)
        return Report(rows, checksum, self._begun.transaction, self._begun.freed)

    def _begin(self) -> None:
        begun = self._runner.run(begin(self._run, self._partition, self._runner.names))
        if not isinstance(begun, Begun):
            return
        self._begun = begun
        transaction, transactions = begun.transaction, self._runner.transactions
        announced = not transactions.is_version_2()

        async def announce(partition: TopicPartition) -> None:
            await transactions.announce(transaction, partition)

        sender = Sender(
            self._client,
            transactional_id=transaction.slot.transactional_id(self._options.prefix),
            version_max=PRODUCE_VERSION_MAX_V1 if announced else None,
            before_first=announce if announced else None,
        )
        producer = Producer(transaction.producer_id, transaction.epoch, transactional=True)
        self._writer = RowWriter(self._client, self._options, producer, sender)

    def _give_up(self) -> None:
        """The attempt failed: its transaction need not hold up readers until somebody else finds it."""
        if self._begun is None:
            return
        try:
            if self._writer is not None:
                self._writer.close()
            self._client.run(self._runner.transactions.end([self._begun.transaction], False), GIVE_UP_TIMEOUT_S)
        except KafkaError as error:
            _log.warning("The transaction of a failed task stays open until it is found: %s", error)


def task_identity() -> tuple[str, int, int]:
    """The query, the batch and the partition that this task is for."""
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(QUERY_PROPERTY)
    batch = None if context is None else context.getLocalProperty(BATCH_PROPERTY)
    if context is None or query is None or batch is None:
        raise ExactlyOnceError(
            f"This Spark does not tell its tasks {QUERY_PROPERTY} and {BATCH_PROPERTY}, and 'exactlyOnce' cannot work without them. "
            "Leave 'exactlyOnce' out, or use a version of Spark that is tested."
        )
    return query, int(batch), context.partitionId()


def limit_ms(options: WriteOptions) -> int:
    """So long after its first claim a batch may be decided."""
    timeout_ms = options.transaction_timeout_ms
    return timeout_ms - min(timeout_ms // 2, MARGIN_MS_MAX)
