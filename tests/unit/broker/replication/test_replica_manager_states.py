from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.errors import KafkaStorageError, NotLeaderOrFollower, UnknownTopicId, UnknownTopicOrPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import serialize
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest, StopReplicaTopicV1
from barnabas.simulation.disk import SimulatedFiles
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.broker.replicas import BROKER, TOPIC_ID, TP, Replicas

OTHER = TopicPartition("other", 0)


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    yield replicas
    replicas.close()


def test_the_controller_makes_a_leader_with_a_log_of_its_topic(replicas: Replicas) -> None:
    assert replicas.lead(epoch=4) == ErrorCode.NONE
    assert replicas.partition().is_leader
    assert replicas.log().topic_id == TOPIC_ID
    assert replicas.log().latest_epoch == 4


def test_those_who_asked_are_told_of_new_leaders_and_followers(replicas: Replicas) -> None:
    calls: list[tuple[list[TopicPartition], list[TopicPartition]]] = []
    replicas.manager.on_leadership_change.append(
        lambda leaders, followers: calls.append(([one.partition for one in leaders], [one.partition for one in followers]))
    )
    replicas.lead()
    replicas.lead(leader=2, epoch=1, replicas=(1, 2))
    assert calls == [([TP], []), ([], [TP])]


def test_an_old_controller_is_refused(replicas: Replicas) -> None:
    replicas.lead(controller_epoch=5)
    assert replicas.lead(epoch=9, controller_epoch=4, tell=False) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert replicas.tell(controller_epoch=4) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert replicas.stop(controller_epoch=4) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert replicas.partition().leader_epoch == 0


@pytest.mark.parametrize("epoch", [2, 3])
def test_an_epoch_that_is_not_newer_is_refused(replicas: Replicas, epoch: int) -> None:
    replicas.lead(epoch=3)
    assert replicas.lead(leader=2, epoch=epoch, replicas=(1, 2)) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert replicas.partition().is_leader


def test_a_partition_assigned_to_others_is_not_taken(replicas: Replicas) -> None:
    assert replicas.lead(leader=2, replicas=(2, 3)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replicas.manager.partition(TP) is None


def test_another_topic_of_the_same_name_is_refused(replicas: Replicas) -> None:
    replicas.lead()
    assert replicas.lead(epoch=1, topic_id=Uuid(b"x" * 16), tell=False) == ErrorCode.INCONSISTENT_TOPIC_ID


def test_a_topic_gets_its_id_without_a_new_epoch(replicas: Replicas) -> None:
    replicas.lead(topic_id=Uuid.ZERO)
    assert replicas.lead(topic_id=TOPIC_ID) == ErrorCode.NONE
    assert replicas.log().topic_id == TOPIC_ID


def test_old_versions_are_answered_by_names(replicas: Replicas) -> None:
    state = LeaderAndIsrPartitionState("orders", 0, 1, BROKER, 0, [BROKER], 0, [BROKER], is_new=True)
    request = LeaderAndIsrRequest(BROKER, controller_epoch=1, ungrouped_partition_states=[state])
    response = replicas.manager.become_leader_or_follower(request, version=1)
    assert [(e.topic_name, e.partition_index, e.error_code) for e in response.partition_errors] == [("orders", 0, 0)]
    serialize(response, 1)


def test_a_stopped_replica_keeps_its_log_unless_it_is_deleted(replicas: Replicas) -> None:
    replicas.lead()
    assert replicas.stop(delete=False, epoch=0) == ErrorCode.NONE
    assert replicas.log_manager.get(TP) is not None
    assert replicas.stop() == ErrorCode.NONE
    assert (replicas.log_manager.get(TP), replicas.manager.partition(TP)) == (None, None)


def test_a_stop_of_an_older_epoch_is_fenced(replicas: Replicas) -> None:
    replicas.lead(epoch=3)
    assert replicas.stop(epoch=2) == ErrorCode.FENCED_LEADER_EPOCH
    assert replicas.log_manager.get(TP) is not None


def test_a_log_that_no_partition_has_is_deleted_too(tmp_path: Path) -> None:
    before = Replicas(tmp_path)
    before.lead()
    before.close()
    replicas = Replicas(tmp_path)
    assert replicas.stop() == ErrorCode.NONE
    assert replicas.log_manager.get(TP) is None
    replicas.close()


def test_old_versions_delete_all_or_none(replicas: Replicas) -> None:
    replicas.lead(epoch=7)
    topics = [StopReplicaTopicV1("orders", [0])]
    response = replicas.manager.stop_replicas(StopReplicaRequest(BROKER, False, 1, delete_partitions=True, topics=topics))
    assert [error.error_code for error in response.partition_errors] == [0]
    assert replicas.log_manager.get(TP) is None


def test_a_deleted_topic_can_be_made_again(replicas: Replicas) -> None:
    replicas.lead()
    replicas.append(3)
    replicas.stop()
    assert replicas.lead(topic_id=Uuid(b"x" * 16)) == ErrorCode.NONE
    assert replicas.append().result.base_offset == 0


def test_those_who_asked_are_told_of_deleted_partitions(replicas: Replicas) -> None:
    deleted: list[TopicPartition] = []
    replicas.manager.on_partitions_deleted.append(deleted.extend)
    replicas.tell()
    replicas.tell(leader=-2)
    assert deleted == [TP]


def test_the_errors_of_a_missing_partition_are_kafkas(replicas: Replicas) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        replicas.manager.partition_or_raise(OTHER)
    replicas.tell(OTHER, leader=2, replicas=(2,))
    with pytest.raises(NotLeaderOrFollower):
        replicas.manager.partition_or_raise(OTHER)
    replicas.lead()
    with pytest.raises(UnknownTopicId):
        replicas.manager.partition_or_raise(TP, Uuid(b"x" * 16))
    assert replicas.manager.partition_or_raise(TP, TOPIC_ID).partition == TP


def test_a_new_leader_starts_from_the_high_watermark_it_had(tmp_path: Path) -> None:
    before = Replicas(tmp_path)
    before.lead(replicas=(1, 2))
    before.append(3, acks=1)
    before.follow(2, 2)
    before.close()
    replicas = Replicas(tmp_path)
    replicas.log_manager.checkpoints.write_high_watermarks()
    replicas.lead(epoch=1, replicas=(1, 2), is_new=False)
    assert (replicas.log().high_watermark, replicas.log().log_end_offset) == (2, 3)
    replicas.close()


def test_a_failed_directory_takes_its_partitions_offline_and_no_others(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, dirs=2)
    replicas.lead()
    replicas.lead(OTHER)
    path = replicas.log().log_dir
    replicas.log_manager.disk_failed(path, "pulled out", OSError("pulled out"))
    assert replicas.failed_dirs == [path]
    with pytest.raises(KafkaStorageError):
        replicas.manager.partition_or_raise(TP)
    assert replicas.append(partition=OTHER).error == ErrorCode.NONE
    assert replicas.lead(epoch=1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.stop() == ErrorCode.KAFKA_STORAGE_ERROR
    replicas.close()


def test_a_log_that_may_be_on_a_failed_disk_is_not_made_again(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, dirs=2)
    replicas.log_manager.disk_failed(replicas.paths[0], "pulled out", OSError("pulled out"))
    assert replicas.lead(is_new=False) == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.append().error == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.lead(OTHER, is_new=True) == ErrorCode.NONE
    replicas.close()


def test_an_append_to_a_disk_that_fails_is_a_storage_error(tmp_path: Path) -> None:
    files = SimulatedFiles()
    replicas = Replicas(tmp_path, dirs=2, files=files)
    replicas.lead()
    files.fail_next("write")
    assert replicas.append().error == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.manager.partition(TP) is None
