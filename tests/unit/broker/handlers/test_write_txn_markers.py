from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.broker.scheduling.turns import Turns
from barnabas.broker.security.access import Access
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import request_frame
from barnabas.protocol.messages.write_txn_markers_request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.unit.broker.handlers.asking import no_quotas
from tests.unit.broker.handlers.leader import Asked
from tests.unit.broker.marking import Marking
from tests.unit.broker.replicas import BROKER
from tests.unit.broker.verifying import PRODUCER

Told = dict[int, dict[tuple[str, int], int]]


@pytest.fixture
def marking(tmp_path: Path) -> Iterator[Marking]:
    marking = Marking(tmp_path)
    yield marking
    marking.replicas.close()


def write(marking: Marking, *markers: WritableTxnMarker, version: int = 2, access: Access | None = None) -> Asked:
    pending = Asked(api_keys.WRITE_TXN_MARKERS, version)
    broker: Any = SimpleNamespace(markers=marking.appender, cluster=None, access=access or Access(None), quotas=no_quotas(), turns=Turns())
    frame = b"".join(request_frame(WriteTxnMarkersRequest(list(markers)), pending.api, version, 7, "client"))
    RequestDispatcher(broker).dispatch(pending.exchange, frame[4:])
    return pending


def a_marker(topics: dict[str, list[int]], producer_id: int = PRODUCER, epoch: int = 0, **how: Any) -> WritableTxnMarker:
    given = [WritableTxnMarkerTopic(name, partitions) for name, partitions in topics.items()]
    return WritableTxnMarker(producer_id, epoch, how.pop("committed", True), given, **how)


def told(pending: Asked) -> Told:
    return {
        marker.producer_id: {(topic.name, part.partition_index): part.error_code for topic in marker.topics for part in topic.partitions}
        for marker in pending.response().markers
    }


@pytest.mark.parametrize("version", [1, 2])
def test_every_partition_of_every_marker_is_told_by_itself(marking: Marking, version: int) -> None:
    markers = (
        a_marker({"orders": [0, 1], "gone": [3]}),
        a_marker({"orders": [1, 7], "__consumer_offsets": [0]}, 10, committed=False),
    )
    assert told(write(marking, *markers, version=version)) == {
        PRODUCER: {("orders", 0): 0, ("orders", 1): 0, ("gone", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        10: {("orders", 1): 0, ("orders", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ("__consumer_offsets", 0): 0},
    }


def test_two_markers_of_one_producer_are_told_as_one(marking: Marking) -> None:
    assert told(write(marking, a_marker({"orders": [0]}), a_marker({"orders": [1]}, committed=False))) == {
        PRODUCER: {("orders", 0): 0, ("orders", 1): 0}
    }


def test_without_markers_or_without_partitions_there_is_nothing_to_tell(marking: Marking) -> None:
    assert told(write(marking)) == {}
    assert told(write(marking, a_marker({}), a_marker({"orders": []}, 10))) == {}


def test_the_version_of_the_transaction_comes_with_version_2(marking: Marking) -> None:
    marking.verifying.append(marking.verifying.verify())
    late = a_marker({"orders": [0]}, transaction_version=2)
    assert told(write(marking, late)) == {PRODUCER: {("orders", 0): ErrorCode.INVALID_PRODUCER_EPOCH}}
    assert told(write(marking, a_marker({"orders": [0]}), version=1)) == {PRODUCER: {("orders", 0): 0}}


def test_a_version_that_a_leader_cannot_have_is_an_error(marking: Marking) -> None:
    impossible = a_marker({"orders": [0]}, transaction_version=-1)
    assert told(write(marking, impossible)) == {PRODUCER: {("orders", 0): ErrorCode.UNKNOWN_SERVER_ERROR}}


def test_the_answer_waits_for_the_replicas_and_takes_no_place_in_the_queue_until_then(tmp_path: Path) -> None:
    marking = Marking(tmp_path, replicas=(BROKER, 2))
    pending = write(marking, a_marker({"orders": [0]}), a_marker({"gone": [0]}, 10))
    assert pending.is_waiting
    marking.replicas.follow(2, 1)
    assert told(pending) == {10: {("gone", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, PRODUCER: {("orders", 0): 0}}
    marking.replicas.close()
