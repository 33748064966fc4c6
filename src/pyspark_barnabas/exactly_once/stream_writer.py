"""The stream writer for `exactlyOnce`: tasks write in open transactions, the driver decides and ends them.

Spark creates one instance for the tasks of each batch and another for its commit, in different processes; only the messages of tasks
connect them. Therefore the constructor creates the token of a run, which goes to all tasks and returns with their messages. The
constructor does nothing else. The transactions of one batch become visible one shortly after the other.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from pyspark_barnabas.error_first import error_first
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.exactly_once.errors import ExactlyOnceError
from pyspark_barnabas.exactly_once.steps import Report, RunOf, Steps, abort, commit
from pyspark_barnabas.write.first_contact import require_answer
from pyspark_barnabas.write.rows import check_schema
from pyspark_barnabas.write.stream_arrow import DataSourceStreamArrowWriter, arrow_batches
from pyspark_barnabas.write.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pyspark_barnabas.exactly_once.steps import Names

MARGIN_MS_MAX: Final = 120_000  # reserved from the transaction timeout for the commit after the decision, at most half of it

# Undocumented; Spark's streaming code sets it for every task of a micro-batch.
BATCH_PROPERTY: Final = "streaming.sql.batchId"
QUERY_PROPERTY: Final = "sql.streaming.queryId"


class Reported(WriterCommitMessage):
    """The message of a task to the driver."""

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
        require_answer(self.options)

    # On executors

    @error_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Reported:
        query, batch, partition = task_identity()
        run = RunOf(query, batch, self.token, limit_ms(self.options))
        from pyspark_barnabas.connections import shared_client  # not imported while a query is planned: it takes time to load
        from pyspark_barnabas.exactly_once.write_task import WriteTask
        from pyspark_barnabas.queries.task_reports import wrote

        began_ms = int(time.time() * 1000)
        with shared_client(self.options.settings, "producer") as client:
            task = WriteTask(client, self.options, run, partition)
            report = task.write(arrow_batches(iterator, self.schema))
        wrote(self.options, task.topics, began_ms)
        return Reported(query, batch, self.token, report)

    # On the driver

    @error_first()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._take(messages, batchId, lambda run, reports, names: commit(run, reports, names, self.options.verify))

    @error_first()
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._take(messages, batchId, abort)

    def _take(
        self, messages: list[WriterCommitMessage | None], batch: int, steps: Callable[[RunOf, list[Report], Names], Steps[None]]
    ) -> None:
        reported = [message for message in messages if isinstance(message, Reported)]
        if not reported:
            return
        from pyspark_barnabas.connections import shared_client
        from pyspark_barnabas.exactly_once.runner import Runner

        run = self._run_of(reported, batch)
        with shared_client(self.options.settings, "producer") as client:
            runner = Runner(client, self.options)
            runner.run(steps(run, [message.report for message in reported], runner.names))

    def _run_of(self, reported: list[Reported], batch: int) -> RunOf:
        runs = {(message.query, message.batch, message.token) for message in reported}
        if len(runs) != 1 or next(iter(runs))[1] != batch:
            raise ExactlyOnceError(f"Tasks of several runs reported for batch {batch}: {sorted(runs)}")
        query, _, token = runs.pop()
        return RunOf(query, batch, token, limit_ms(self.options))


def task_identity() -> tuple[str, int, int]:
    """The query, batch and partition of this task."""
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
    """The time after its first claim within which a batch may be decided."""
    timeout_ms = options.transaction_timeout_ms
    return timeout_ms - min(timeout_ms // 2, MARGIN_MS_MAX)
