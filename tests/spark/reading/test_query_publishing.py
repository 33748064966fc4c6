"""What a query publishes about itself while it runs, read from the topic with librdkafka."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_barnabas.subscription import QUERIES_TOPIC
from tests.broker import TopicMaker
from tests.spark import topic_contents
from tests.spark.queries import finish
from tests.spark.reader_world import fill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

DEADLINE_S = 60


def test_a_query_publishes_what_it_reads_and_where_it_writes(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = new_topic("orders", partitions=2), new_topic("bills", partitions=2)
    fill(bootstrap, source, (40, 5))

    def start() -> StreamingQuery:
        stream = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("subscribe", source)
        rows = stream.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 30).load()
        writer = rows.writeStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("topic", target)
        return writer.queryName("billing").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()

    query = finish(start)
    documents = published(bootstrap, query)
    first, last = documents["source", 0], documents["source", 1]
    assert {(one["name"], one["runId"]) for one in documents.values()} == {("billing", str(query.runId))}
    cut = first["inputRows"]  # close to the limit of 30, which is divided among the partitions
    assert cut + last["inputRows"] == 45
    assert [(one["name"], one["partitions"], one["start"], one["end"], one["latest"]) for one in last["topics"]] == [
        (source, 2, cut, 45, 45)
    ]
    assert [one["inputRows"] for one in last["batches"]] == [cut]
    for batch in (0, 1):
        assert documents["sink", batch]["topics"] == [{"name": target}]
        planned_ms, sink = documents["source", batch]["plannedMs"], documents["sink", batch]  # either of two tasks may write last
        assert planned_ms <= documents["read", batch]["endedMs"]
        assert planned_ms <= sink["beganMs"] <= sink["endedMs"]


def published(bootstrap: str, query: StreamingQuery) -> dict[tuple[str, int], dict[str, Any]]:
    """The newest document of each kind and batch, once those of two batches are there: they are sent in the background."""
    deadline = time.monotonic() + DEADLINE_S
    documents: dict[tuple[str, int], dict[str, Any]] = {}
    while len(documents) < 6:
        assert time.monotonic() < deadline, documents
        for record in topic_contents.read(bootstrap, QUERIES_TOPIC):
            document = json.loads(record.value or "{}")
            if document.get("queryId") == str(query.id):
                documents[document["kind"], document["batch"]] = document
    return documents
