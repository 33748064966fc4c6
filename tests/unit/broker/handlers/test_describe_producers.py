"""DescribeProducers: the active producers of a partition, and their open transactions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from barnabas.records.validation.validation import REPLICATION
from tests.unit.broker.handlers.leader import NOW, OTHER_BROKER, Leader, batch


def describe(directory: Path, topic: str, partition: int, *batches: bytes) -> Any:
    """What is told of a partition. Topic t is led here, topic other by another broker."""

    async def scenario() -> Any:
        leader = Leader(directory)
        try:
            leader.create_topic("t")
            leader.create_topic("other", leader=OTHER_BROKER, replicas=(OTHER_BROKER,), hosted=False)
            for data in batches:
                leader.produce("t", 0, data, origin=REPLICATION)  # of whom no transaction has to be verified
            request = DescribeProducersRequest([TopicRequest(topic, [partition])])
            return await leader.ask(api_keys.DESCRIBE_PRODUCERS, request, 0).answer()
        finally:
            leader.close()

    (answered,) = asyncio.run(scenario()).topics
    assert answered.name == topic
    (result,) = answered.partitions
    assert result.partition_index == partition
    return result


def test_a_partition_without_idempotent_producers_has_none(tmp_path: Path) -> None:
    result = describe(tmp_path, "t", 0, batch())
    assert (result.error_code, result.error_message, result.active_producers) == (0, None, [])


def test_an_idempotent_producer_is_told_with_its_last_sequence(tmp_path: Path) -> None:
    result = describe(tmp_path, "t", 0, batch(3, producer_id=5, producer_epoch=2, base_sequence=0))
    (producer,) = result.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (5, 2, 2)
    assert (producer.last_timestamp, producer.coordinator_epoch, producer.current_txn_start_offset) == (NOW + 2, -1, -1)


def test_an_open_transaction_is_told_with_its_first_offset(tmp_path: Path) -> None:
    written = batch(2, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    (producer,) = describe(tmp_path, "t", 0, batch(4), written).active_producers
    assert producer.current_txn_start_offset == 4


@pytest.mark.parametrize(
    ("topic", "partition", "code", "message"),
    [
        ("t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        ("other", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, None),
        ("nope", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
        (
            "a b",
            0,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
    ],
)
def test_a_partition_that_is_not_led_here_is_refused(tmp_path: Path, topic: str, partition: int, code: int, message: str | None) -> None:
    result = describe(tmp_path, topic, partition)
    assert (result.error_code, result.error_message, result.active_producers) == (code, message, [])
