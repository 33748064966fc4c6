from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse
from barnabas.records.control import end_txn_marker
from barnabas.records.validation.validation import COORDINATOR
from tests.unit.broker.handlers.leader import NOW, OTHER_BROKER, Leader, batch, with_leader

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
CONSUMER, DEBUGGER = -1, -2
HIGHEST = ListOffsetsRequest.HIGHEST_VERSION


async def turn_of_the_loop() -> None:
    await asyncio.sleep(0)


async def ask(
    leader: Leader,
    timestamp: int,
    *,
    topic: str = "foo",
    partition: int = 0,
    version: int = HIGHEST,
    replica_id: int = CONSUMER,
    isolation_level: int = 0,
    current_leader_epoch: int = -1,
    max_num_offsets: int = 1,
) -> ListOffsetsPartitionResponse:
    partition_asked = ListOffsetsPartition(partition, current_leader_epoch, timestamp, max_num_offsets)
    message = ListOffsetsRequest(replica_id, isolation_level, [ListOffsetsTopic(topic, [partition_asked])])
    return only(await leader.ask(api_keys.LIST_OFFSETS, message, version).answer())


def only(response: ListOffsetsResponse) -> ListOffsetsPartitionResponse:
    [topic] = response.topics
    [answer] = topic.partitions
    return answer


def three_records(leader: Leader) -> None:
    """At offsets 0 to 2, with the times NOW, NOW + 200, NOW + 100."""
    leader.create_topic("foo", leader_epoch=3)
    for later_ms in (0, 200, 100):
        leader.produce("foo", data=batch(1, timestamp=NOW + later_ms))


@pytest.mark.parametrize("version", range(1, HIGHEST + 1))
def test_every_version_finds_the_ends(tmp_path: Path, version: int) -> None:
    async def test(leader: Leader) -> None:
        three_records(leader)
        for timestamp, offset in ((EARLIEST, 0), (LATEST, 3)):
            answer = await ask(leader, timestamp, version=version)
            assert (answer.error_code, answer.timestamp, answer.offset) == (ErrorCode.NONE, -1, offset)
            assert answer.leader_epoch == (3 if version >= 4 else -1)

    with_leader(tmp_path, test)


@pytest.mark.parametrize(
    ("timestamp", "found"), [(NOW - 1, (NOW, 0)), (NOW, (NOW, 0)), (NOW + 1, (NOW + 200, 1)), (NOW + 201, (-1, -1)), (0, (NOW, 0))]
)
def test_a_timestamp_finds_the_first_record_that_is_not_older(tmp_path: Path, timestamp: int, found: tuple[int, int]) -> None:
    async def test(leader: Leader) -> None:
        three_records(leader)
        answer = await ask(leader, timestamp)
        assert (answer.error_code, answer.timestamp, answer.offset) == (ErrorCode.NONE, *found)
        assert answer.leader_epoch == (3 if found[1] >= 0 else -1)

    with_leader(tmp_path, test)


def test_the_record_with_the_largest_timestamp_is_found(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        three_records(leader)
        answer = await ask(leader, MAX_TIMESTAMP)
        assert (answer.timestamp, answer.offset, answer.leader_epoch) == (NOW + 200, 1, 3)

    with_leader(tmp_path, test)


def test_an_empty_log_has_no_largest_timestamp(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        answer = await ask(leader, MAX_TIMESTAMP)
        assert (answer.error_code, answer.timestamp, answer.offset) == (ErrorCode.NONE, -1, -1)

    with_leader(tmp_path, test)


def test_the_earliest_local_offset_is_the_earliest(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        three_records(leader)
        leader.log("foo").increment_log_start_offset(2, "test")
        assert (await ask(leader, EARLIEST_LOCAL)).offset == (await ask(leader, EARLIEST)).offset == 2

    with_leader(tmp_path, test)


@pytest.mark.parametrize("timestamp", [LATEST_TIERED, EARLIEST_PENDING_UPLOAD])
def test_there_is_nothing_in_remote_storage(tmp_path: Path, timestamp: int) -> None:
    async def test(leader: Leader) -> None:
        three_records(leader)
        answer = await ask(leader, timestamp)
        assert (answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch) == (ErrorCode.NONE, -1, -1, -1)

    with_leader(tmp_path, test)


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11), (-7, 99), (-(2**63), 99)],
)
def test_a_question_newer_than_the_version_is_unsupported(tmp_path: Path, timestamp: int, since: int) -> None:
    async def test(leader: Leader) -> None:
        three_records(leader)
        for version in range(HIGHEST + 1):
            expected = ErrorCode.NONE if version >= since else ErrorCode.UNSUPPORTED_VERSION
            assert (await ask(leader, timestamp, version=version)).error_code == expected

    with_leader(tmp_path, test)


def test_read_committed_ends_at_the_last_stable_offset(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo")
        leader.produce("foo", data=batch(1, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True), origin=COORDINATOR)
        assert (await ask(leader, LATEST, isolation_level=1)).offset == 1
        assert (await ask(leader, LATEST)).offset == 2
        leader.produce("foo", data=end_txn_marker(True, 5, 0, 0, NOW, 0), origin=COORDINATOR)
        assert (await ask(leader, LATEST, isolation_level=1)).offset == 3

    with_leader(tmp_path, test)


def test_a_consumer_sees_up_to_the_high_watermark_and_others_up_to_the_end(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", replicas=(1, OTHER_BROKER))
        leader.produce("foo")
        assert (await ask(leader, LATEST)).offset == 0
        assert (await ask(leader, LATEST, replica_id=OTHER_BROKER)).offset == 1
        assert (await ask(leader, LATEST, replica_id=DEBUGGER)).offset == 1
        assert (await ask(leader, NOW)).offset == -1

    with_leader(tmp_path, test)


def test_only_a_debugger_may_ask_a_follower(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", leader=OTHER_BROKER, replicas=(1, OTHER_BROKER))
        assert (await ask(leader, EARLIEST)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await ask(leader, EARLIEST, replica_id=DEBUGGER)).error_code == ErrorCode.NONE
        assert (await ask(leader, EARLIEST, version=0)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await ask(leader, EARLIEST, version=0, replica_id=DEBUGGER)).error_code == ErrorCode.NONE

    with_leader(tmp_path, test)


@pytest.mark.parametrize(("epoch", "error"), [(2, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.NONE), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_the_leader_epoch_of_the_client_is_checked(tmp_path: Path, epoch: int, error: ErrorCode) -> None:
    async def test(leader: Leader) -> None:
        three_records(leader)
        answer = await ask(leader, LATEST, current_leader_epoch=epoch)
        assert answer.error_code == error
        assert answer.offset == (3 if error == ErrorCode.NONE else -1)

    with_leader(tmp_path, test)


@pytest.mark.parametrize(("version", "error"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)])
def test_a_new_leader_that_does_not_know_how_far_records_are_replicated_says_so(tmp_path: Path, version: int, error: ErrorCode) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", replicas=(1, OTHER_BROKER))
        leader.produce("foo")
        leader.create_topic("foo", replicas=(1, OTHER_BROKER), leader_epoch=1)
        assert (await ask(leader, LATEST, version=version)).error_code == error

    with_leader(tmp_path, test)


@pytest.mark.parametrize("version", [0, 1, HIGHEST])
def test_a_partition_that_does_not_exist_is_unknown(tmp_path: Path, version: int) -> None:
    async def test(leader: Leader) -> None:
        three_records(leader)
        for topic, partition in (("foo", 1), ("foo", -1), ("nowhere", 0), ("", 0)):
            answer = await ask(leader, LATEST, topic=topic, partition=partition, version=version)
            assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    with_leader(tmp_path, test)


def test_a_partition_named_twice_is_refused_once(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", 2)
        partitions = [ListOffsetsPartition(index, timestamp=LATEST) for index in (0, 1, 0, 0)]
        message = ListOffsetsRequest(CONSUMER, 0, [ListOffsetsTopic("foo", partitions), ListOffsetsTopic("foo", partitions[:1])])
        [topic] = (await leader.ask(api_keys.LIST_OFFSETS, message, 5).answer()).topics
        errors = [(answer.partition_index, answer.error_code) for answer in topic.partitions]
        assert errors == [(0, ErrorCode.INVALID_REQUEST), (1, ErrorCode.NONE)]

    with_leader(tmp_path, test)


def test_an_isolation_level_that_is_none_is_refused(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        three_records(leader)
        answer = await ask(leader, LATEST, isolation_level=2)
        assert (answer.error_code, answer.offset) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1)

    with_leader(tmp_path, test)


def test_a_request_for_many_partitions_lets_others_have_their_turn(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        three_records(leader)
        partitions = [ListOffsetsPartition(index, timestamp=LATEST) for index in range(500)]
        request = leader.ask(api_keys.LIST_OFFSETS, ListOffsetsRequest(CONSUMER, 0, [ListOffsetsTopic("foo", partitions)]), 5)
        turns = 0
        while not request.is_answered:
            await turn_of_the_loop()
            turns += 1
        assert turns > 10
        assert len(request.response().topics[0].partitions) == 500

    with_leader(tmp_path, test)


# Version 0


def rolled(leader: Leader) -> None:
    """Segments that begin at 0, 1 and 2; the log ends at 3."""
    leader.create_topic("foo")
    for _ in range(2):
        leader.produce("foo")
        leader.log("foo").roll(NOW)
    leader.produce("foo")


@pytest.mark.parametrize(
    ("timestamp", "count", "found"), [(LATEST, 10, [3, 2, 1, 0]), (LATEST, 2, [3, 2]), (EARLIEST, 10, [0]), (LATEST, 0, []), (0, 10, [])]
)
def test_version_0_gets_the_offsets_of_segments(tmp_path: Path, timestamp: int, count: int, found: list[int]) -> None:
    async def test(leader: Leader) -> None:
        rolled(leader)
        answer = await ask(leader, timestamp, version=0, max_num_offsets=count)
        assert (answer.error_code, answer.old_style_offsets) == (ErrorCode.NONE, found)

    with_leader(tmp_path, test)


def test_version_0_cannot_ask_for_less_than_no_offsets(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        rolled(leader)
        answer = await ask(leader, LATEST, version=0, max_num_offsets=-1)
        assert (answer.error_code, answer.old_style_offsets) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])

    with_leader(tmp_path, test)


def test_version_0_sees_no_offset_past_the_high_watermark(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", replicas=(1, OTHER_BROKER))
        leader.produce("foo")
        assert (await ask(leader, LATEST, version=0, max_num_offsets=10)).old_style_offsets == [0, 0]
        assert (await ask(leader, LATEST, version=0, max_num_offsets=10, replica_id=OTHER_BROKER)).old_style_offsets == [1, 0]

    with_leader(tmp_path, test)
