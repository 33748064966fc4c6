"""Tasks and drivers of the exactly-once writer without a Spark around them: the real writer, the real steps, a real broker.

A `Driver` is one process of Spark's driver with a token per batch; its tasks run here, one after the other or left half-way.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa

from pyspark_barnabas.connections import Client
from pyspark_barnabas.exactly_once.runner import Runner
from pyspark_barnabas.exactly_once.steps import Report, RunOf, Steps, abort, commit
from pyspark_barnabas.exactly_once.stream_writer import limit_ms
from pyspark_barnabas.exactly_once.write_task import WriteTask
from pyspark_barnabas.write.write_options import WriteOptions

QUERY = "6d1f8f3c-query"


def batch_of(values: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"key": pa.array(values).cast(pa.binary()), "value": pa.array(values).cast(pa.binary())})


class Driver:
    """One run after the other of batches of one query. Its client is its own, as that of another process would be."""

    def __init__(self, bootstrap: str, topic: str, prefix: str, query: str = QUERY, **more: str) -> None:
        options = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "exactlyOnce": "true", "transactionalIdPrefix": prefix}
        self.options = WriteOptions.of(options | more, streaming=True)
        self.client = Client(self.options.settings, "producer")
        self.query = query

    def run_of(self, batch: int, token: str | None = None) -> RunOf:
        return RunOf(self.query, batch, token or uuid.uuid4().hex, limit_ms(self.options))

    def task(self, run: RunOf, partition: int, values: Sequence[str]) -> Report:
        return WriteTask(self.client, self.options, run, partition).write(_one(values))

    def tasks(self, run: RunOf, values: Sequence[Sequence[str]]) -> list[Report]:
        return [self.task(run, partition, some) for partition, some in enumerate(values)]

    def commit(self, run: RunOf, reports: Sequence[Report]) -> None:
        runner = Runner(self.client, self.options)
        runner.run(commit(run, reports, runner.names, self.options.verify))

    def abort(self, run: RunOf, reports: Sequence[Report]) -> None:
        runner = Runner(self.client, self.options)
        runner.run(abort(run, reports, runner.names))

    def whole(self, batch: int, values: Sequence[Sequence[str]]) -> None:
        run = self.run_of(batch)
        self.commit(run, self.tasks(run, values))

    def take(self, steps: Steps[object], count: int) -> object:
        """Takes so many steps and then goes away, as a process that is killed does; what the last of them answered."""
        runner = Runner(self.client, self.options)
        answer: object = None
        for _ in range(count):
            answer = self.client.run(runner.take(steps.send(answer)))
        return answer

    @property
    def runner(self) -> Runner:
        return Runner(self.client, self.options)

    def close(self) -> None:
        self.client.close()


def _one(values: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if values:
        yield batch_of(values)
