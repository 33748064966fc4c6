"""When a leader may acknowledge records: they are on the in-sync replicas, or on disk, or it is too late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.partitions.ack_status import ACKNOWLEDGED, NOT_LEADER, PENDING, TOO_FEW_IN_SYNC
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log_config import LogConfig
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import Replicas


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    """Broker 1 leads with three records, broker 2 follows and is in sync."""
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=(1, 2))
    replicas.append(3, acks=1)
    yield replicas
    replicas.close()


def test_records_above_the_high_watermark_are_pending(replicas: Replicas) -> None:
    assert replicas.partition().check_replicated(3) is PENDING


def test_records_below_the_high_watermark_are_acknowledged(replicas: Replicas) -> None:
    replicas.follow(2, 3)
    assert replicas.partition().check_replicated(3) is ACKNOWLEDGED


def test_an_isr_that_shrank_below_the_minimum_is_an_error(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"min.insync.replicas": "2"}))
    replicas.follow(2, 3)
    replicas.partition().isr.commit([1])
    assert replicas.partition().check_replicated(3) is TOO_FEW_IN_SYNC


def test_a_follower_acknowledges_nothing(replicas: Replicas) -> None:
    replicas.lead(leader=2, epoch=1, replicas=(1, 2))
    assert replicas.partition().check_replicated(0) is NOT_LEADER
    assert replicas.partition().check_flushed(0) is NOT_LEADER


def test_records_that_must_be_flushed_are_pending_until_they_are(replicas: Replicas) -> None:
    assert replicas.partition().check_flushed(3) is PENDING
    replicas.log().flush()
    assert replicas.partition().check_flushed(3) is ACKNOWLEDGED


def test_a_partition_that_is_gone_is_an_error_of_its_own(replicas: Replicas) -> None:
    results = replicas.append(partition=TopicPartition("none", 0)).results
    assert results is not None
    (result,) = results
    assert replicas.manager.check_replicated(result).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_only_an_end_without_an_error_is_an_acknowledgement() -> None:
    assert [status.is_acknowledged for status in (PENDING, ACKNOWLEDGED, NOT_LEADER)] == [False, True, False]
