"""Which quota applies to a client: Kafka's order, the same as the broker's."""

from __future__ import annotations

import itertools

from barnabas.administration.quota_choice import quotas_of
from barnabas.client.admin.access.quotas import ClientQuotaEntity

ORDER = (
    {"user": "alice", "client-id": "c"},
    {"user": "alice", "client-id": None},
    {"user": "alice"},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
)


def test_the_first_entity_in_kafkas_order_that_has_the_quota_applies() -> None:
    entities = [ClientQuotaEntity(names) for names in ORDER]
    for first, second in itertools.combinations(entities, 2):
        known = {second: {"producer_byte_rate": 2.0, "consumer_byte_rate": 3.0}, first: {"producer_byte_rate": 1.0}}
        applied = quotas_of(known, "alice", "c")
        producer, consumer = applied["producer_byte_rate"], applied["consumer_byte_rate"]
        assert producer is not None and (producer.entity, producer.value) == (first, 1.0)
        assert consumer is not None and (consumer.entity, consumer.value) == (second, 3.0)


def test_a_client_that_no_quota_is_about_has_no_bound() -> None:
    assert quotas_of({ClientQuotaEntity({"user": "bob"}): {"producer_byte_rate": 1.0}}, "alice", "c")["producer_byte_rate"] is None
