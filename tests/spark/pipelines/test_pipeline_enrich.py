"""A stream joined with a compacted topic: each record gets what the table says of its key when its batch begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_barnabas.pipelines import enrich
from pyspark_barnabas.pipelines.enrich import Enrichment
from pyspark_barnabas.pipelines.topics import ONCE, Source, Target
from tests.broker import TopicMaker
from tests.spark.topic_contents import Sent, read, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_MS = 1_763_294_400_000


def customer(key: str, name: str | None, partition: int = 0) -> Sent:
    return Sent(key, None if name is None else json.dumps({"name": name}), AT_MS, partition)


def order(number: int, customer: str) -> Sent:
    return Sent(f"o{number}", json.dumps({"customer": customer, "items": number}), AT_MS + number)


def results(bootstrap: str, topic: str) -> list[Any]:
    return sorted((record.key, json.loads(record.value or "")["customer_row"]) for record in read(bootstrap, topic))


def test_records_are_joined_with_the_newest_row_of_their_key(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, tmp_path: Path
) -> None:
    customers = new_topic("customers", partitions=2, cleanup_policy="compact")
    orders, out = new_topic("orders"), new_topic("out")
    enrichment = Enrichment(schema="customer STRING, items INT", table_schema="name STRING", key="customer", name="customer_row")

    def run() -> None:
        target = Target(bootstrap, out, transactional_id_prefix=f"enrich-{out}")
        query = enrich.start(spark, Source(bootstrap, orders), Source(bootstrap, customers), target, enrichment, str(tmp_path), ONCE)
        query.awaitTermination()

    send(
        bootstrap,
        customers,
        [customer("a", "Ann"), customer("b", "Bob", 1), customer("a", "Anna"), customer("c", "Cyd"), customer("c", None)],
    )
    send(bootstrap, orders, [order(1, "a"), order(2, "b"), order(3, "c"), order(4, "nobody")])
    run()
    first = [("o1", {"name": "Anna"}), ("o2", {"name": "Bob"}), ("o3", None), ("o4", None)]
    assert results(bootstrap, out) == first
    assert json.loads(read(bootstrap, out)[0].value or "").keys() == {"customer", "items", "customer_row"}

    send(bootstrap, customers, [customer("a", "Annabel"), customer("c", "Cid"), customer("b", None, 1)])
    send(bootstrap, orders, [order(5, "a"), order(6, "b"), order(7, "c")])
    run()
    assert results(bootstrap, out) == [*first, ("o5", {"name": "Annabel"}), ("o6", None), ("o7", {"name": "Cid"})]


def test_a_running_query_sees_the_table_as_it_is_when_a_batch_begins(
    spark: SparkSession, our_broker: str, our_topic: TopicMaker, tmp_path: Path
) -> None:
    customers, orders, out = our_topic("customers", cleanup_policy="compact"), our_topic("orders"), our_topic("out")
    enrichment = Enrichment("customer STRING", "name STRING", key="customer", name="customer_row", keeps_unmatched=False)
    send(our_broker, customers, [customer("a", "Ann")])
    query = enrich.start(
        spark, Source(our_broker, orders), Source(our_broker, customers), Target(our_broker, out), enrichment, str(tmp_path)
    )
    try:
        send(our_broker, orders, [order(1, "a"), order(2, "nobody")])
        query.processAllAvailable()
        send(our_broker, customers, [customer("a", "Anna")])
        send(our_broker, orders, [order(3, "a")])
        query.processAllAvailable()
    finally:
        query.stop()
    assert results(our_broker, out) == [("o1", {"name": "Ann"}), ("o3", {"name": "Anna"})]
