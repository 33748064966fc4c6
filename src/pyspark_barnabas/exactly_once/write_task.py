"""The work of a task in an exactly-once query: it begins a transaction at its first row, writes in it, and leaves it open.

It runs on executors; `stream_writer` calls it. It never ends a transaction that it has reported: the driver decides about that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from barnabas.client.errors import KafkaError
from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.exactly_once.fingerprint import fingerprint
from pyspark_barnabas.exactly_once.runner import Runner
from pyspark_barnabas.exactly_once.steps import Begun, Report, RunOf, begin
from pyspark_barnabas.exactly_once.transactions import PRODUCE_VERSION_MAX_V1
from pyspark_barnabas.write.encode import ProducerFields, gathered
from pyspark_barnabas.write.send import TaskSender
from pyspark_barnabas.write.write_options import VERIFY_ROWS
from pyspark_barnabas.write.write_task import RowWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_barnabas.connections import Client
    from pyspark_barnabas.write.write_options import WriteOptions

_log: Final = logging.getLogger(__name__)

GIVE_UP_TIMEOUT_S: Final = 10.0


class WriteTask:
    """One attempt at one partition of a batch. It begins a transaction at its first row."""

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

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that rows were written to."""
        return () if self._writer is None else self._writer.topics

    def _begin(self) -> None:
        begun = self._runner.run(begin(self._run, self._partition, self._runner.names))
        if not isinstance(begun, Begun):
            return
        self._begun = begun
        transaction, transactions = begun.transaction, self._runner.transactions
        announced = not transactions.is_version_2()

        async def announce(partition: TopicPartition) -> None:
            await transactions.announce(transaction, partition)

        sender = TaskSender(
            self._client,
            transactional_id=transaction.slot.transactional_id(self._options.prefix),
            version_max=PRODUCE_VERSION_MAX_V1 if announced else None,
            before_first=announce if announced else None,
        )
        producer = ProducerFields(transaction.producer_id, transaction.epoch, transactional=True)
        self._writer = RowWriter(self._client, self._options, producer, sender)

    def _give_up(self) -> None:
        """Aborts the transaction of a failed attempt, so that it does not block readers until it is found."""
        if self._begun is None:
            return
        try:
            if self._writer is not None:
                self._writer.close()
            self._client.run(self._runner.transactions.end([self._begun.transaction], False), GIVE_UP_TIMEOUT_S)
        except KafkaError as error:
            _log.warning("The transaction of a failed task stays open until it is found: %s", error)
