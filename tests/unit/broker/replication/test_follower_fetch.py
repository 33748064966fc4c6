"""Followers and leaders on real logs: what is replicated, and what is truncated."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from barnabas.broker.partitions.fetch_params import FetchParams, PartitionFetch, TopicIdPartition
from barnabas.broker.replication.follower_fetch import FollowerFetch
from barnabas.broker.replication.replica_logs import LocalReplicaLogs
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition as Asked
from barnabas.protocol.messages.fetch_response import EpochEndOffset, PartitionData
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.records.reader import records_of
from barnabas.simulation.disk import NEEDS_DESCRIPTOR, SimulatedFiles
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from tests.unit.broker.replicas import BROKER, NOW, TOPIC_ID, TP, Replicas

FOLLOWER = 2
BACKOFF_MS = 1000


class Node:
    """One replica of the partition. To itself it is always broker 1, and the other is broker 2: who is who only the test knows."""

    def __init__(self, root: Path, files: AnyFiles | None = None) -> None:
        self.replicas = Replicas(root, files=files)
        self.logs = LocalReplicaLogs(self.replicas.manager)
        self.fetch = FollowerFetch(FOLLOWER, self.logs, self.replicas.manager.quotas.follower, BACKOFF_MS)

    @property
    def log(self) -> Log:
        found = self.replicas.log_manager.get(TP)
        assert found is not None
        return found

    def lead(self, epoch: int) -> None:
        self.fetch.remove(TP)
        assert self.replicas.lead(epoch=epoch, replicas=(BROKER, FOLLOWER), isr=(BROKER, FOLLOWER)) == 0

    def follow(self, epoch: int) -> None:
        assert self.replicas.lead(leader=FOLLOWER, epoch=epoch, replicas=(BROKER, FOLLOWER), isr=(BROKER, FOLLOWER)) == 0
        self.fetch.add(TP, TOPIC_ID, epoch)

    def write(self, *values: bytes, epoch: int) -> None:
        for value in values:
            self.log.append_as_leader(LogAppend(build([(NOW, None, value, ())]), NOW), epoch)

    def values(self) -> list[bytes | None]:
        data = self.log.read(self.log.log_start_offset, 1 << 20, FetchIsolation.LOG_END).records
        return [] if data is None else [record.value for record in records_of(data.read())]


def next_of(follower: Node) -> Asked:
    follower.fetch.truncate()
    ((_, _, asked),) = follower.fetch.next_fetches(0)
    return asked


def fetch_once(follower: Node, leader: Node, now_ms: int = 0) -> None:
    follower.fetch.truncate()
    for partition, _, asked in follower.fetch.next_fetches(now_ms):
        follower.fetch.handle(partition, asked, answer(leader, asked), now_ms)


def replicate(follower: Node, leader: Node, rounds: int = 5) -> None:
    for _ in range(rounds):
        fetch_once(follower, leader)


def answer(leader: Node, asked: Asked) -> PartitionData:
    params = FetchParams(replica_id=FOLLOWER, isolation=FetchIsolation.LOG_END)
    partition_fetch = PartitionFetch(
        asked.fetch_offset, asked.partition_max_bytes, asked.current_leader_epoch, asked.last_fetched_epoch, asked.log_start_offset
    )
    ((_, result),) = leader.replicas.manager.read_from_log(params, [(TopicIdPartition(TOPIC_ID, TP), partition_fetch)])
    epoch, end_offset = result.diverging_epoch or (-1, -1)
    return PartitionData(
        0,
        error_code=int(result.error),
        high_watermark=result.high_watermark,
        log_start_offset=result.log_start_offset,
        diverging_epoch=EpochEndOffset(epoch, end_offset),
        records=Records(b"" if result.records is None else result.records.read()),
    )


@pytest.fixture
def two(tmp_path: Path) -> tuple[Node, Node]:
    return Node(tmp_path / "a"), Node(tmp_path / "b")


def test_a_follower_gets_what_its_leader_has_byte_for_byte(two: tuple[Node, Node]) -> None:
    leader, follower = two
    leader.lead(0)
    follower.follow(0)
    leader.write(b"a", b"b", b"c", epoch=0)
    replicate(follower, leader)
    assert follower.values() == [b"a", b"b", b"c"]
    assert follower.fetch.lag(TP) == 0
    files = [Path(node.log.directory, "00000000000000000000.log").read_bytes() for node in two]
    assert files[0] == files[1]


def test_the_high_watermark_comes_some_fetches_later(two: tuple[Node, Node]) -> None:
    leader, follower = two
    leader.lead(0)
    follower.follow(0)
    leader.write(b"a", epoch=0)
    fetch_once(follower, leader)
    assert (leader.log.high_watermark, follower.log.high_watermark) == (0, 0)
    fetch_once(follower, leader)  # now the leader knows that the follower has it
    assert (leader.log.high_watermark, follower.log.high_watermark) == (1, 0)
    fetch_once(follower, leader)  # and now the follower knows that the leader knows
    assert (leader.log.high_watermark, follower.log.high_watermark) == (1, 1)


def test_what_the_leader_deletes_its_follower_deletes(two: tuple[Node, Node]) -> None:
    leader, follower = two
    leader.lead(0)
    follower.follow(0)
    leader.write(b"a", b"b", b"c", epoch=0)
    replicate(follower, leader)
    leader.log.increment_log_start_offset(2, "deleted")
    replicate(follower, leader)
    assert follower.log.log_start_offset == 2


def test_a_follower_that_restarts_behind_the_high_watermark_loses_nothing(two: tuple[Node, Node]) -> None:
    """KIP-101's first history: going back to the high watermark would lose `b`, which its leader has acknowledged."""
    a, b = two
    a.lead(0)
    b.follow(0)
    a.write(b"a", b"b", epoch=0)
    fetch_once(b, a)
    assert b.log.high_watermark < b.log.log_end_offset == 2
    b.fetch.remove(TP)  # restarted
    b.fetch.add(TP, TOPIC_ID, 0)
    fetch_once(b, a)
    b.lead(1)  # its leader is gone
    assert b.values() == [b"a", b"b"]


def test_two_that_lost_power_do_not_diverge(two: tuple[Node, Node]) -> None:
    """KIP-101's second history: both come back, the one with less leads, and writes another record at the offset the other has, too."""
    a, b = two
    a.lead(0)
    b.follow(0)
    a.write(b"a", epoch=0)
    replicate(b, a)
    a.write(b"lost", epoch=0)  # never replicated
    b.lead(1)
    b.write(b"c", epoch=1)
    a.follow(1)
    replicate(a, b)
    assert a.values() == b.values() == [b"a", b"c"]
    assert [entry.epoch for entry in a.log.epochs.entries] == [0, 1]


def test_epochs_that_one_never_saw_are_stepped_over(two: tuple[Node, Node]) -> None:
    """KIP-279: each led in epochs the other knows nothing of; they agree after as many fetches as it takes."""
    a, b = two
    a.lead(0)
    b.follow(0)
    a.write(b"same", epoch=0)
    replicate(b, a)
    a.lead(2)
    a.write(b"a2", b"a2", epoch=2)
    a.lead(4)
    a.write(b"a4", b"a4", epoch=4)
    b.lead(3)
    b.write(b"b3", epoch=3)
    b.lead(5)
    b.write(b"b5", epoch=5)
    a.follow(5)
    replicate(a, b)
    assert a.values() == b.values() == [b"same", b"b3", b"b5"]


def test_a_follower_whose_leader_has_deleted_what_it_lacks_starts_anew(two: tuple[Node, Node]) -> None:
    leader, follower = two
    leader.lead(0)
    leader.write(*[b"%d" % number for number in range(10)], epoch=0)
    leader.log.update_high_watermark(10)
    leader.log.increment_log_start_offset(7, "deleted")
    follower.follow(0)
    fetch_once(follower, leader)
    assert follower.fetch.lost() == [(TP, 0)]
    follower.fetch.resume(TP, 0, 7, 10)
    replicate(follower, leader)
    assert follower.values() == [b"7", b"8", b"9"]
    assert follower.log.log_start_offset == 7


def test_a_leader_whose_log_begins_in_the_middle_of_a_batch_is_followed(two: tuple[Node, Node]) -> None:
    """DeleteRecords takes any offset, and a fetch gives whole batches."""
    leader, follower = two
    leader.lead(0)
    leader.log.append_as_leader(LogAppend(build([(NOW, None, value, ()) for value in (b"a", b"b", b"c")]), NOW), 0)
    leader.write(b"d", epoch=0)
    leader.log.update_high_watermark(4)
    leader.log.increment_log_start_offset(2, "client delete records request")
    follower.follow(0)
    fetch_once(follower, leader)
    ((partition, epoch),) = follower.fetch.lost()
    follower.fetch.resume(partition, epoch, leader.log.log_start_offset, leader.log.log_end_offset)
    replicate(follower, leader)
    assert (follower.log.log_start_offset, follower.log.log_end_offset) == (2, 4)
    assert follower.values() == leader.values()
    assert follower.fetch.lag(TP) == 0


def test_what_an_unclean_leader_does_not_have_is_gone(two: tuple[Node, Node]) -> None:
    leader, follower = two
    leader.lead(0)
    follower.follow(0)
    leader.write(b"a", epoch=0)
    replicate(follower, leader)
    asked = next_of(follower)
    follower.fetch.handle(TP, asked, PartitionData(0, error_code=int(ErrorCode.OFFSET_OUT_OF_RANGE)), 0)
    follower.fetch.resume(TP, 0, 0, 0)
    assert follower.values() == []
    assert follower.fetch.lost() == []


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR])
def test_after_an_error_it_asks_again_in_a_while(two: tuple[Node, Node], error: ErrorCode) -> None:
    follower = two[1]
    follower.follow(0)
    asked = next_of(follower)
    follower.fetch.handle(TP, asked, PartitionData(0, error_code=int(error)), 0)
    assert follower.fetch.next_fetches(BACKOFF_MS - 1) == []
    assert follower.fetch.next_ready_ms(0) == BACKOFF_MS
    assert len(follower.fetch.next_fetches(BACKOFF_MS)) == 1


def test_in_an_epoch_that_is_over_it_stops_until_the_controller_tells(two: tuple[Node, Node]) -> None:
    follower = two[1]
    follower.follow(0)
    asked = next_of(follower)
    follower.fetch.handle(TP, asked, PartitionData(0, error_code=int(ErrorCode.FENCED_LEADER_EPOCH)), 0)
    assert TP not in follower.fetch
    follower.follow(1)
    assert next_of(follower).current_leader_epoch == 1


def test_an_answer_to_an_old_question_is_not_taken(two: tuple[Node, Node]) -> None:
    leader, follower = two
    leader.lead(0)
    leader.write(b"a", epoch=0)
    follower.follow(0)
    asked = next_of(follower)
    late = answer(leader, asked)
    fetch_once(follower, leader)
    follower.fetch.handle(TP, asked, late, 0)
    follower.follow(1)
    follower.fetch.handle(TP, asked, late, 0)
    assert follower.values() == [b"a"]


def test_records_that_are_damaged_are_asked_for_again(two: tuple[Node, Node]) -> None:
    leader, follower = two
    leader.lead(0)
    leader.write(b"a", epoch=0)
    follower.follow(0)
    asked = next_of(follower)
    damaged = answer(leader, asked)
    damaged.records = Records(damaged.records.to_bytes()[:-1] + b"\xff")  # type: ignore[union-attr]
    follower.fetch.handle(TP, asked, damaged, 0)
    assert follower.values() == []
    fetch_once(follower, leader, BACKOFF_MS)
    assert follower.values() == [b"a"]


def test_a_log_that_is_gone_stops_its_partition(two: tuple[Node, Node]) -> None:
    leader, follower = two
    leader.lead(0)
    leader.write(b"a", epoch=0)
    follower.follow(0)
    asked = next_of(follower)
    follower.replicas.log_manager.delete(TP)
    follower.fetch.handle(TP, asked, answer(leader, asked), 0)
    assert follower.fetch.failed == {TP}
    assert TP not in follower.fetch


def test_once_settled_only_what_was_served_is_asked_anew(two: tuple[Node, Node]) -> None:
    leader, follower = two
    leader.lead(1)
    follower.follow(1)
    assert not follower.fetch.is_settled
    replicate(follower, leader)
    follower.fetch.next_fetches(0)
    assert follower.fetch.is_settled
    assert follower.fetch.changes() == []
    asked = next_of(follower)
    leader.write(b"a", b"b", epoch=1)
    follower.fetch.handle(TP, asked, answer(leader, asked), 0)
    ((partition, topic_id, changed),) = follower.fetch.changes()
    assert (partition, topic_id, changed.fetch_offset) == (TP, TOPIC_ID, 2)
    assert follower.fetch.changes() == []


def test_who_has_to_wait_unsettles_it(two: tuple[Node, Node]) -> None:
    leader, follower = two
    leader.lead(1)
    follower.follow(1)
    replicate(follower, leader)
    follower.fetch.delay([TP], 0)
    assert not follower.fetch.is_settled
    assert follower.fetch.next_fetches(0) == []
    assert not follower.fetch.is_settled
    follower.fetch.next_fetches(BACKOFF_MS)
    assert follower.fetch.is_settled


def test_a_follower_without_descriptors_waits_and_goes_on(tmp_path: Path) -> None:
    disk = SimulatedFiles()
    leader, follower = Node(tmp_path / "a"), Node(tmp_path / "b", disk)
    leader.lead(0)
    follower.follow(0)
    leader.write(b"a", epoch=0)
    replicate(follower, leader)
    leader.write(b"b", epoch=0)
    disk.fail_when(lambda event: event.kind in NEEDS_DESCRIPTOR, errno.EMFILE)
    fetch_once(follower, leader)
    assert follower.fetch.failed == set() and follower.fetch.next_fetches(BACKOFF_MS - 1) == []
    disk.heal()
    fetch_once(follower, leader, BACKOFF_MS)
    assert follower.values() == [b"a", b"b"]
