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
from barnabas.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.broker.handlers.asking import no_quotas
from tests.unit.broker.handlers.leader import Asked
from tests.unit.broker.marking import OFFSETS, Marking
from tests.unit.broker.replicas import BROKER
from tests.unit.broker.verifying import PRODUCER

ALL_VERSIONS = range(6)
ADDING = 5  # the version that leaves adding the partition to the broker
LONG = "m" * 5000  # more than offset.metadata.max.bytes


@pytest.fixture
def marking(tmp_path: Path) -> Iterator[Marking]:
    marking = Marking(tmp_path)
    yield marking
    marking.replicas.close()


def commit(
    marking: Marking,
    version: int = ADDING,
    offsets: dict[tuple[str, int], int] | None = None,
    metadata: str = "",
    access: Access | None = None,
    **how: Any,
) -> Asked:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for (name, partition), offset in (offsets or {("orders", 0): 7}).items():
        topic = topics.setdefault(name, TxnOffsetCommitRequestTopic(name))
        topic.partitions.append(TxnOffsetCommitRequestPartition(partition, offset, committed_metadata=metadata))
    given = {"transactional_id": "t", "group_id": "g", "producer_id": PRODUCER, "producer_epoch": 0, **how}
    message = TxnOffsetCommitRequest(**given, topics=list(topics.values()))
    pending = Asked(api_keys.TXN_OFFSET_COMMIT, version)
    broker: Any = SimpleNamespace(
        groups=marking.groups.coordinator,
        metadata_cache=marking.replicas.cache,
        access=access or Access(None),
        verification=marking.verifying.verification,
        cluster=None,
        quotas=no_quotas(),
        turns=Turns(),
    )
    frame = b"".join(request_frame(message, pending.api, version, 7, "client"))
    RequestDispatcher(broker).dispatch(pending.exchange, frame[4:])
    return pending


def told(pending: Asked) -> dict[tuple[str, int], int]:
    return {(topic.name, part.partition_index): part.error_code for topic in pending.response().topics for part in topic.partitions}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_offsets_of_a_transaction_count_when_it_is_committed(marking: Marking, version: int) -> None:
    assert told(commit(marking, version)) == {("orders", 0): 0}
    assert marking.committed() == -1
    marking.append(OFFSETS)
    assert marking.committed() == 7


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_coordinator_is_asked_about_the_partition_of_the_groups_offsets(marking: Marking, version: int) -> None:
    commit(marking, version)
    ((transactional_id, producer_id, epoch, partitions, add),) = marking.verifying.verifier.asked
    assert (transactional_id, producer_id, epoch, partitions, add) == ("t", PRODUCER, 0, [OFFSETS], version >= ADDING)


def test_in_an_open_transaction_it_is_not_asked_again(marking: Marking) -> None:
    commit(marking)
    assert told(commit(marking, offsets={("orders", 0): 8})) == {("orders", 0): 0}
    assert len(marking.verifying.verifier.asked) == 1


@pytest.mark.parametrize(
    ("version", "code", "answer"),
    [
        (3, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (5, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (5, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (3, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (3, ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (1, ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_what_the_coordinator_refuses_is_told_as_the_client_knows_it(
    marking: Marking, version: int, code: ErrorCode, answer: ErrorCode
) -> None:
    marking.verifying.verifier.code = int(code)
    assert told(commit(marking, version)) == {("orders", 0): answer}
    assert marking.replicas.log(OFFSETS).log_end_offset == 0


def test_partitions_that_do_not_exist_are_answered_first_and_the_others_committed(marking: Marking) -> None:
    offsets = {("orders", 1): 5, ("orders", 9): 6, ("gone", 0): 7}
    answer = told(commit(marking, offsets=offsets))
    assert list(answer.items()) == [
        (("orders", 9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("orders", 1), 0),
        (("gone", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_without_a_partition_that_exists_nobody_is_asked(marking: Marking) -> None:
    assert told(commit(marking, offsets={("gone", 0): 7})) == {("gone", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert marking.verifying.verifier.asked == []


def test_a_group_without_a_name_is_refused_before_anybody_is_asked(marking: Marking) -> None:
    assert told(commit(marking, group_id="")) == {("orders", 0): ErrorCode.INVALID_GROUP_ID}
    assert marking.verifying.verifier.asked == []


def test_who_is_no_member_of_the_group_may_not_commit_for_it(marking: Marking) -> None:
    assert told(commit(marking, generation_id=3, member_id="m")) == {("orders", 0): ErrorCode.ILLEGAL_GENERATION}


def test_metadata_that_is_too_long_is_refused_by_partition(marking: Marking) -> None:
    assert told(commit(marking, metadata=LONG)) == {("orders", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE}


def test_offsets_of_groups_that_others_coordinate_are_sent_there(marking: Marking) -> None:
    marking.replicas.lead(OFFSETS, leader=2, epoch=1, replicas=(BROKER, 2))
    assert told(commit(marking)) == {("orders", 0): ErrorCode.NOT_COORDINATOR}


def test_a_zombie_is_told_so_without_asking(marking: Marking) -> None:
    commit(marking, producer_epoch=2)
    assert told(commit(marking, producer_epoch=1)) == {("orders", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
    assert len(marking.verifying.verifier.asked) == 1


def test_the_answer_waits_for_the_coordinator_and_takes_no_place_in_the_queue_until_then(marking: Marking) -> None:
    marking.verifying.verifier.is_held = True
    pending = commit(marking)
    assert pending.is_waiting
    marking.verifying.verifier.let_go()
    assert told(pending) == {("orders", 0): 0}
