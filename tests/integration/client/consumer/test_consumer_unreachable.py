"""A consumer whose brokers cannot be reached: every call ends when its time is over."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.errors import Timeout
from barnabas.topic_partition import TopicPartition

PARTITION = TopicPartition("t", 0)
DEFAULT_TIMEOUT_S = 60  # default.api.timeout.ms


@pytest.fixture
def nowhere() -> str:
    """An address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_polls_return_nothing_in_time(nowhere: str) -> None:
    with Consumer[bytes, bytes]({"bootstrap.servers": nowhere, "group.id": "g"}) as consumer:
        consumer.subscribe(["t"])
        before = time.monotonic()
        assert consumer.poll(0.5).is_empty()
        assert 0.4 < time.monotonic() - before < DEFAULT_TIMEOUT_S / 2
        consumer.close(1)


CALLS: dict[str, Callable[[Consumer[bytes, bytes]], object]] = {
    "position": lambda consumer: consumer.position(PARTITION, 0.3),
    "committed": lambda consumer: consumer.committed(PARTITION, 0.3),
    "commit_sync": lambda consumer: consumer.commit_sync({PARTITION: OffsetAndMetadata(1)}, 0.3),
    "end_offsets": lambda consumer: consumer.end_offsets([PARTITION], 0.3),
    "beginning_offsets": lambda consumer: consumer.beginning_offsets([PARTITION], 0.3),
    "offsets_for_times": lambda consumer: consumer.offsets_for_times({PARTITION: 1}, 0.3),
    "partitions_for": lambda consumer: consumer.partitions_for("t", 0.3),
    "list_topics": lambda consumer: consumer.list_topics(0.3),
}


@pytest.mark.parametrize("call", CALLS)
def test_calls_with_a_result_time_out(nowhere: str, call: str) -> None:
    with Consumer[bytes, bytes]({"bootstrap.servers": nowhere, "group.id": "g"}) as consumer:
        consumer.assign([PARTITION])
        before = time.monotonic()
        with pytest.raises(Timeout):
            CALLS[call](consumer)
        assert time.monotonic() - before < DEFAULT_TIMEOUT_S / 2  # the time that was given counts
        consumer.close(1)
