"""Committed offsets: who may commit, what is read back, when they go."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from barnabas.config_def import LONG_MAX
from barnabas.coordinator.partition_log import TransactionProducer
from barnabas.errors import KafkaError, NotLeaderOrFollower, RecordBatchTooLarge, RecordTooLarge
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from barnabas.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.topic_partition import TopicPartition
from tests.unit.coordinator.coordinator_host import Answers, Host, commit_error

WEEK_MS = 7 * 24 * 3600 * 1000
HOUR_MS = 3600 * 1000


def test_a_committed_offset_is_read_back_also_after_a_restart() -> None:
    host = Host()
    assert commit_error(host.commit(42)) == 0
    assert host.fetch() == (42, 0)
    assert Host(host.log).fetch() == (42, 0)


def test_an_offset_nobody_committed_is_minus_one_without_an_error() -> None:
    assert Host().fetch() == (-1, 0)


def test_a_member_commits_with_its_generation_only() -> None:
    host = Host()
    member_id = host.stable()[0]
    assert commit_error(host.commit(1, member_id=member_id, generation=1)) == 0
    assert commit_error(host.commit(1, member_id=member_id, generation=2)) == ErrorCode.ILLEGAL_GENERATION
    assert commit_error(host.commit(1, member_id="stranger", generation=1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(host.commit(1)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_with_a_generation_to_no_group_is_refused_as_its_version_knows() -> None:
    host = Host()
    assert commit_error(host.commit(1, generation=3, version=9)) == ErrorCode.GROUP_ID_NOT_FOUND
    assert commit_error(host.commit(1, generation=3, version=8)) == ErrorCode.ILLEGAL_GENERATION


def test_a_commit_while_the_assignment_is_awaited_is_told_to_wait() -> None:
    host = Host()
    member_id, _ = host.member()
    host.time.advance(3_000)
    assert commit_error(host.commit(1, member_id=member_id, generation=1)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_keeps_the_session_alive() -> None:
    host = Host()
    member_id = host.stable()[0]
    for _ in range(5):
        host.time.advance(9_000)
        assert commit_error(host.commit(1, member_id=member_id, generation=1)) == 0


def test_metadata_that_is_too_long_is_refused_and_nothing_is_written() -> None:
    host = Host()
    assert commit_error(host.commit(1, metadata="x" * 4_097)) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert commit_error(host.commit(2, metadata="x" * 4_096)) == 0
    assert commit_error(host.commit(3, metadata="\U0001f600" * 2_049)) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert host.fetch() == (2, 0)


@pytest.mark.parametrize("error", [RecordTooLarge(), RecordBatchTooLarge()])  # than max.message.bytes, than segment.bytes
def test_offsets_that_do_not_fit_into_a_batch_are_refused_as_too_large(error: KafkaError) -> None:
    host = Host()
    host.log.error = error
    assert commit_error(host.commit(1)) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert commit_in_transaction(host, 1) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert delete_offset(host).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_commit_that_could_not_be_written_is_not_seen() -> None:
    host = Host()
    host.commit(1)
    host.log.error = NotLeaderOrFollower()
    assert commit_error(host.commit(2)) == ErrorCode.NOT_COORDINATOR
    host.log.error = None
    assert host.fetch() == (1, 0)


def test_offsets_of_a_standalone_consumer_expire_after_their_last_commit() -> None:
    host = Host()
    host.commit(1)
    host.time.advance(WEEK_MS - HOUR_MS)
    assert host.fetch() == (1, 0)
    host.time.advance(2 * HOUR_MS)
    assert (host.fetch(), host.shard.groups) == ((-1, 0), {})
    assert Host(host.log).shard.groups == {}


def test_a_commit_may_bring_its_own_retention() -> None:
    host = Host()
    host.commit(1, retention_ms=HOUR_MS)
    host.time.advance(2 * HOUR_MS)
    assert host.fetch() == (-1, 0)


def test_offsets_of_subscribed_topics_stay_while_the_group_lives() -> None:
    host = Host()
    member_id = host.stable(session_ms=1_800_000)[0]
    host.commit(1, member_id=member_id, generation=1)
    host.commit(2, member_id=member_id, generation=1, topic="other")
    for _ in range(8 * 24 * 3):
        host.time.advance(HOUR_MS // 3)
        assert host.heartbeat(member_id, 1) == 0
    assert (host.fetch(), host.fetch(topic="other")) == ((1, 0), (-1, 0))


def test_offsets_of_a_group_age_from_when_it_became_empty() -> None:
    host = Host()
    member_id = host.stable(session_ms=1_800_000)[0]
    host.commit(1, member_id=member_id, generation=1)
    for _ in range(8 * 24 * 3):
        host.time.advance(HOUR_MS // 3)
        host.heartbeat(member_id, 1)
    host.leave(member_id)
    host.time.advance(WEEK_MS - HOUR_MS)
    assert host.fetch() == (1, 0)
    host.time.advance(2 * HOUR_MS)
    assert host.fetch() == (-1, 0)


def delete_offset(host: Host, topic: str = "t") -> Any:
    answers = Answers()
    request = OffsetDeleteRequest("g", [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)])])
    host.coordinator.delete_offsets(request, answers.append)
    return answers.one


def test_an_offset_of_a_subscribed_topic_cannot_be_deleted() -> None:
    host = Host()
    host.stable()
    assert delete_offset(host).topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_an_offset_of_another_topic_is_deleted() -> None:
    host = Host()
    member_id = host.stable()[0]
    host.commit(1, member_id=member_id, generation=1, topic="other")
    assert delete_offset(host, "other").topics[0].partitions[0].error_code == 0
    assert host.fetch(topic="other") == (-1, 0)


def test_offsets_of_an_unknown_group_cannot_be_deleted() -> None:
    assert delete_offset(Host()).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_only_an_empty_group_is_deleted_and_its_offsets_with_it() -> None:
    host = Host()
    member_id = host.stable()[0]
    host.commit(1, member_id=member_id, generation=1)
    answers = Answers()
    host.coordinator.delete_groups(["g", "none"], answers.append)
    assert [result.error_code for result in answers.one] == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
    host.leave(member_id)
    host.coordinator.delete_groups(["g"], answers.append)
    assert (answers[-1][0].error_code, host.fetch(), Host(host.log).shard.groups) == (0, (-1, 0), {})


def test_offsets_of_a_deleted_topic_go_in_batches_that_fit() -> None:
    host = Host()
    for partition in range(100):
        host.commit(1, partition=partition)
    host.commit(1, topic="kept")
    host.log.batch_size_max = 2_000
    host.coordinator.partitions_deleted([TopicPartition("t", partition) for partition in range(100)])
    assert (host.fetch(partition=99), host.fetch(topic="kept")) == ((-1, 0), (1, 0))
    assert max(len(data) for _, _, data in host.log.batches[0]) <= 2_000


def commit_in_transaction(host: Host, offset: int, producer_id: int = 7) -> int:
    """The error."""
    answers = Answers()
    topic = TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition(0, offset, -1, "")])
    host.coordinator.commit_transactional_offsets(3, TxnOffsetCommitRequest("x", "g", producer_id, 0, topics=[topic]), answers.append)
    code: int = answers.one.topics[0].partitions[0].error_code
    return code


def end(host: Host, *, committed: bool, producer_id: int = 7) -> None:
    errors = Answers()
    host.coordinator.complete_transaction(
        0, TransactionProducer(producer_id, 0), 0, committed=committed, on_done=errors.append, timeout_ms=1000
    )
    assert errors.one is None


def test_an_offset_of_an_open_transaction_is_pending() -> None:
    host = Host()
    host.commit(1)
    assert commit_in_transaction(host, 2) == 0
    for each_host in (host, Host(host.log)):
        assert each_host.fetch() == (1, 0)
        assert each_host.fetch(stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


def test_a_committed_transaction_commits_its_offsets_and_an_aborted_one_does_not() -> None:
    host = Host()
    assert commit_in_transaction(host, 2) == 0
    end(host, committed=True)
    assert commit_in_transaction(host, 3, producer_id=8) == 0
    end(host, committed=False, producer_id=8)
    for each_host in (host, Host(host.log)):
        assert each_host.fetch(stable=True) == (2, 0)


def test_of_two_commits_the_later_record_wins_not_the_later_end() -> None:
    host = Host()
    assert commit_in_transaction(host, 5) == 0
    host.commit(6)
    end(host, committed=True)
    assert host.fetch() == (6, 0)


def test_all_offsets_of_a_group_are_fetched_when_no_topic_is_named() -> None:
    host = Host()
    host.commit(1)
    host.commit(2, topic="u", partition=3)
    answers = Answers()
    host.coordinator.fetch_offsets(OffsetFetchRequestGroup("g", topics=None), False, answers.append)
    assert {topic.name: topic.partitions[0].committed_offset for topic in answers.one.topics} == {"t": 1, "u": 2}


def test_a_retention_without_end_ends_with_the_clock() -> None:
    host = Host()
    assert commit_error(host.commit(1, retention_ms=LONG_MAX)) == 0
    assert host.fetch() == (1, 0)


def test_offsets_that_expire_are_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "barnabas.coordinator.group.shard")
    host = Host()
    host.commit(1)
    host.time.advance(WEEK_MS - HOUR_MS)
    assert "expired offsets" not in caplog.text
    host.time.advance(2 * HOUR_MS)
    assert [record.getMessage() for record in caplog.records if "expired offsets" in record.getMessage()] == [
        "Removed 1 expired offsets in 0 milliseconds."
    ]
