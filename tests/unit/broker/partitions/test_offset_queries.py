from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.partitions.fetch_params import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.errors import FencedLeaderEpoch, NotLeaderOrFollower, OffsetNotAvailable
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log import offset_lookup
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import NOW, TP, Replicas


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    """Two replicas; two of three records are on both."""
    replicas = Replicas(tmp_path)
    replicas.lead(epoch=3, replicas=(1, 2))
    replicas.append(1, acks=1, timestamp=NOW)
    replicas.append(1, acks=1, timestamp=NOW + 10)
    replicas.append(1, acks=1, timestamp=NOW + 20)
    replicas.follow(2, 2)
    yield replicas
    replicas.close()


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(offset_lookup.LATEST, 2), (offset_lookup.EARLIEST, 0), (NOW, 0), (NOW + 1, 1), (NOW + 10, 1)],
)
def test_a_consumer_finds_offsets_below_the_high_watermark(replicas: Replicas, timestamp: int, offset: int) -> None:
    offsets = replicas.manager.list_offsets(TP, timestamp, READ_UNCOMMITTED)
    assert offsets is not None
    assert offsets.offset == offset


@pytest.mark.parametrize("timestamp", [NOW + 11, NOW + 21, offset_lookup.MAX_TIMESTAMP])
def test_what_is_not_replicated_is_not_found(replicas: Replicas, timestamp: int) -> None:
    assert replicas.manager.list_offsets(TP, timestamp, READ_UNCOMMITTED) is None


def test_a_broker_sees_up_to_the_log_end(replicas: Replicas) -> None:
    offsets = replicas.manager.list_offsets(TP, offset_lookup.LATEST, None)
    assert offsets is not None
    assert (offsets.offset, offsets.leader_epoch) == (3, 3)


def test_read_committed_stops_at_the_last_stable_offset(replicas: Replicas) -> None:
    offsets = replicas.manager.list_offsets(TP, offset_lookup.LATEST, READ_COMMITTED)
    assert offsets is not None
    assert offsets.offset == 2


def test_an_older_epoch_is_fenced(replicas: Replicas) -> None:
    with pytest.raises(FencedLeaderEpoch):
        replicas.manager.list_offsets(TP, offset_lookup.LATEST, READ_UNCOMMITTED, current_leader_epoch=2)


def test_a_new_leader_does_not_answer_before_it_knows_its_high_watermark(replicas: Replicas) -> None:
    replicas.lead(epoch=4, replicas=(1, 2))
    for timestamp in (offset_lookup.LATEST, NOW + 15):
        with pytest.raises(OffsetNotAvailable):
            replicas.manager.list_offsets(TP, timestamp, READ_UNCOMMITTED)
    assert replicas.manager.list_offsets(TP, offset_lookup.EARLIEST, READ_UNCOMMITTED) is not None
    assert replicas.manager.list_offsets(TP, offset_lookup.LATEST, None) is not None


def test_a_follower_answers_only_those_who_do_not_mind(replicas: Replicas) -> None:
    replicas.lead(leader=2, epoch=4, replicas=(1, 2))
    with pytest.raises(NotLeaderOrFollower):
        replicas.manager.list_offsets(TP, offset_lookup.LATEST, READ_UNCOMMITTED)
    assert replicas.manager.list_offsets(TP, offset_lookup.LATEST, READ_UNCOMMITTED, -1, False) is not None


def test_old_clients_get_offsets_of_segments_up_to_the_high_watermark(replicas: Replicas) -> None:
    assert replicas.manager.legacy_offsets(TP, offset_lookup.LATEST, 10) == [2, 0]
    assert replicas.manager.legacy_offsets(TP, offset_lookup.LATEST, 10, is_from_consumer=False) == [3, 0]
    assert replicas.manager.legacy_offsets(TP, offset_lookup.EARLIEST, 10) == [0]


def test_an_epoch_ends_where_the_next_begins(replicas: Replicas) -> None:
    replicas.lead(epoch=7, replicas=(1, 2))
    ended = replicas.manager.last_offset_for_leader_epoch(TP, -1, 5)
    assert (ended.error, ended.leader_epoch, ended.end_offset) == (ErrorCode.NONE, 3, 3)
    latest = replicas.manager.last_offset_for_leader_epoch(TP, 7, 7)
    assert (latest.error, latest.leader_epoch, latest.end_offset) == (ErrorCode.NONE, 7, 3)


def test_an_epoch_that_has_not_been_is_not_known(replicas: Replicas) -> None:
    ended = replicas.manager.last_offset_for_leader_epoch(TP, -1, 99)
    assert (ended.error, ended.leader_epoch, ended.end_offset) == (ErrorCode.NONE, -1, -1)


def test_errors_about_epochs_are_part_of_the_answer(replicas: Replicas) -> None:
    assert replicas.manager.last_offset_for_leader_epoch(TP, 2, 3).error == ErrorCode.FENCED_LEADER_EPOCH
    assert replicas.manager.last_offset_for_leader_epoch(TP, 9, 3).error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert replicas.manager.last_offset_for_leader_epoch(TopicPartition("none", 0), -1, 3).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_those_who_wrote_lately_are_known(replicas: Replicas) -> None:
    replicas.append(1, acks=1, producer_id=9, producer_epoch=2, base_sequence=0)
    assert [(entry.producer_id, entry.producer_epoch, entry.last_sequence) for entry in replicas.manager.active_producers(TP)] == [
        (9, 2, 0)
    ]
