"""The work of a task that writes: read Arrow batches, encode and send them, and wait until all are written."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from barnabas.client.config.config import ClientConfig
from barnabas.records.codecs.compression import codec_id
from pyspark_barnabas.connections import Client, shared_client
from pyspark_barnabas.queries.task_reports import wrote
from pyspark_barnabas.write.encode import Compression, Encoder, ProducerFields, gathered
from pyspark_barnabas.write.send import TaskSender, idempotent_producer, topology

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_barnabas.write.write_options import WriteOptions


def write_rows(batches: Iterator[pa.RecordBatch], options: WriteOptions) -> int:
    """Writes all rows, at least once; returns their number."""
    began_ms = int(time.time() * 1000)
    with shared_client(options.settings, "producer") as client:
        writer: RowWriter | None = None
        try:
            count = 0
            for batch in gathered(batches):
                if batch.num_rows:
                    writer = writer or RowWriter(client, options, _producer(client), TaskSender(client))
                    writer.write(batch)
                    count += batch.num_rows
            if writer is not None:
                writer.flush()
        finally:
            if writer is not None:
                writer.close()
        wrote(options, () if writer is None else writer.topics, began_ms)
        return count


class RowWriter:
    """Encodes on the task's thread; the sender sends on the client's thread."""

    def __init__(self, client: Client, options: WriteOptions, producer: ProducerFields, sender: TaskSender) -> None:
        self._sender = sender
        self._topic = options.topic
        partitions: dict[str, tuple[int, list[int]]] = {}
        self._partitions = partitions

        def known(topic: str) -> tuple[int, list[int]]:
            if topic not in partitions:  # fixed for a whole task: a key must not change its partition between two rows
                partitions[topic] = client.run(topology(client, topic))
            return partitions[topic]

        self._encoder = Encoder(producer, _compression(client.config), options.batch_size, known, client.clock.now_ms, random.randrange)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that rows were written to."""
        return tuple(self._partitions)

    def write(self, batch: pa.RecordBatch) -> None:
        for encoded in self._encoder.encode(batch, self._topic):
            self._sender.put(encoded)

    def flush(self) -> None:
        self._sender.flush()

    def close(self) -> None:
        self._sender.close()


def _producer(client: Client) -> ProducerFields:
    return client.run(idempotent_producer(client)) if client.config["enable.idempotence"] else ProducerFields()


def _compression(config: ClientConfig | Mapping[str, object]) -> Compression:
    name = str(config["compression.type"])
    level = config[f"compression.{name}.level"] if name in ("gzip", "lz4", "zstd") else None
    if name == "gzip" and level == -1:
        level = None
    return Compression(codec_id(name), None if level is None else int(str(level)))
