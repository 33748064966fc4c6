"""Infers a schema from a sample of the present records: `value.inferSchema=true`.

Runs on the driver, once, when Spark asks for the columns. The sample has the newest records of each partition, because they resemble the
coming ones most. Types are those that spark.read.json and spark.read.csv infer from the same texts. A restarted stream infers again: give
the schema of a query whose columns must not change.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql.types import StructType

from barnabas.client import Consumer, ConsumerRecord
from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.cluster import ClusterClient
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.options import boolean, client_settings, given
from pyspark_barnabas.subscription import parse_subscription
from pyspark_barnabas.values.csv.csv_inference import infer_csv
from pyspark_barnabas.values.csv.csv_text import CsvSyntax
from pyspark_barnabas.values.json.json_inference import JsonRules, infer_json
from pyspark_barnabas.values.json.json_text import Leniency
from pyspark_barnabas.values.settings import ValueSettings
from pyspark_barnabas.values.text.times import Times

OPTION: Final = "value.inferSchema"
SAMPLE_TIMEOUT_S: Final = 60.0
_EARLIEST: Final = -2
_LATEST: Final = -1
# Settings of the query's consumers that would change the sample, or that need a group.
_NOT_FOR_A_SAMPLE: Final = ("group.id", "group.instance.id", "max.poll.records")


def inferred_struct(settings: ValueSettings, options: Mapping[str, str]) -> StructType:
    """The inferred columns. Raises OptionError if there are no records."""
    if given(options, "logDirs") is not None:
        raise OptionError(OPTION, "asks a broker for a sample, and 'logDirs' is for none. Set 'value.schema'.")
    texts = [value.decode("utf-8", "replace") for value in sample(options, settings.sample_records)]
    struct = struct_of_texts(settings, texts)
    if not struct.fields:
        raise OptionError(OPTION, f"there is no {settings.format} among the newest {settings.sample_records} records. Set 'value.schema'.")
    return struct


def struct_of_texts(settings: ValueSettings, texts: Iterable[str]) -> StructType:
    times = Times.of(settings.parser)
    if settings.format == "csv":
        return infer_csv(texts, CsvSyntax.of(settings.parser), times)
    rules = JsonRules(_flag(settings, "primitivesAsString"), _flag(settings, "prefersDecimal"))
    return infer_json(texts, Leniency.of(settings.parser), rules)


def sample(options: Mapping[str, str], count: int) -> list[bytes]:
    """Values of the newest records, about the same number from each partition."""
    clients = {"isolation.level": "read_committed", **client_settings(options)}
    with ClusterClient(clients) as cluster:
        subscription = parse_subscription(options)
        topics = cluster.topics(subscription)
        subscription.check(topics, clients["bootstrap.servers"])
        partitions = subscription.partitions(topics.values())
        starts = cluster.offsets(dict.fromkeys(partitions, _EARLIEST))
        ends = cluster.offsets(dict.fromkeys(partitions, _LATEST))
    filled = [partition for partition in partitions if ends[partition] > starts[partition]]
    if not filled:
        return []
    share = max(count // len(filled), 1)
    ranges = {partition: (max(starts[partition], ends[partition] - share), ends[partition]) for partition in filled}
    return _read(clients, ranges, count)


def _read(clients: Mapping[str, str], ranges: Mapping[TopicPartition, tuple[int, int]], count: int) -> list[bytes]:
    values: list[bytes] = []
    left = dict(ranges)
    settings = {name: value for name, value in clients.items() if name not in _NOT_FOR_A_SAMPLE}
    until = time.monotonic() + SAMPLE_TIMEOUT_S
    consumer: Consumer[bytes, bytes]
    with Consumer({**settings, "enable.auto.commit": "false"}) as consumer:
        consumer.assign(list(ranges))
        for partition, (start, _) in ranges.items():
            consumer.seek(partition, start)
        while left and len(values) < count:
            if time.monotonic() > until:
                raise OptionError(OPTION, f"the brokers gave no sample within {SAMPLE_TIMEOUT_S:.0f} seconds. Set 'value.schema'.")
            values += _newest(consumer.poll(1.0), ranges)
            # Offsets without records (control batches, compaction) count as read when the position is past them.
            for partition in list(left):
                if consumer.position(partition) >= left[partition][1]:
                    del left[partition]
    return values[:count]


def _newest(records: Iterable[ConsumerRecord[bytes, bytes]], ranges: Mapping[TopicPartition, tuple[int, int]]) -> list[bytes]:
    """The records that were there when the sampling began, so that later records do not change the sample."""
    return [
        record.value
        for record in records
        if record.value is not None and record.offset < ranges[TopicPartition(record.topic, record.partition)][1]
    ]


def _flag(settings: ValueSettings, name: str) -> bool:
    option = f"value.{name}"
    return boolean({option: settings.parser[name.lower()]} if name.lower() in settings.parser else {}, option, False)
