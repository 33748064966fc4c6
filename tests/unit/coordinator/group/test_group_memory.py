"""What groups may hold: the account is the sum of what is there, whatever happened, and who would make it grow past a limit is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordinator.group.classic.classic_group import ClassicGroup
from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.group_memory import (
    GROUP_BYTES,
    MEMBER_BYTES,
    OFFSET_BYTES,
    PENDING_MEMBER_BYTES,
    REGEX_BYTES,
    REGEX_TOPIC_BYTES,
)
from barnabas.coordinator.group.shard import GroupCoordinatorShard
from barnabas.coordinator.partition_log import TransactionProducer
from barnabas.errors import CoordinatorNotAvailable, GroupMaxSizeReached, KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.coordinator.consumer_world import Topics, World
from tests.unit.coordinator.coordinator_host import Answers, Host, commit_error, subscription
from tests.unit.coordinator.group.consumer.test_consumer_groups import STEPS, take

UNLIMITED = 2**40


def members_bytes(shard: GroupCoordinatorShard) -> int:
    """Added up from what is there."""
    return sum(_group_bytes(group) for group in shard.groups.values())


def _group_bytes(group: object) -> int:
    if isinstance(group, ClassicGroup):
        pending = sum(PENDING_MEMBER_BYTES + len(member_id) for member_id in group.pending_join_members)
        return GROUP_BYTES + len(group.group_id) + pending + sum(member.size for member in group.members.values())
    assert isinstance(group, ConsumerGroup)
    regexes = sum(
        REGEX_BYTES + len(regex) + REGEX_TOPIC_BYTES * len(resolved_regex.topics)
        for regex, resolved_regex in group.resolved_regexes.items()
    )
    return GROUP_BYTES + len(group.group_id) + regexes + sum(member.size for member in group.members.values())


def offsets_bytes(shard: GroupCoordinatorShard) -> int:
    return sum(
        OFFSET_BYTES + len(offset.metadata)
        for store in (shard.offsets.committed, *shard.offsets.pending.values())
        for group_id in store.by_group
        for _, _, offset in store.of_group(group_id)
    )


def check(shard: GroupCoordinatorShard) -> None:
    assert shard.memory.members.used == members_bytes(shard)
    assert shard.memory.offsets.used == offsets_bytes(shard)


# -- the account is the sum

GROUPS = ("g", "h")
ACTIONS: dict[str, Callable[[Host, str, int], object]] = {
    "join": lambda host, group, size: host.join(group=group, protocols={"range": subscription("t") + bytes(size)}),
    "old join": lambda host, group, size: host.join(group=group, version=3, protocols={"range": bytes(size), "roundrobin": b""}),
    "static": lambda host, group, size: host.join(group=group, instance=f"i{size % 3}", protocols={"range": bytes(size)}),
    "back": lambda host, group, size: [host.join(each, group=group, protocols={"range": bytes(size)}) for each in ids(host, group)],
    "sync": lambda host, group, size: sync_all(host, group, size),
    "leave": lambda host, group, size: [host.leave(each, group) for each in ids(host, group)[: size % 3]],
    "wait": lambda host, group, size: host.time.advance(1 + size * 20),
    "commit": lambda host, group, size: host.commit(1, group=f"{group}-{size % 4}", partition=size % 3, metadata="x" * size),
    "txn": lambda host, group, size: txn_commit(host, f"{group}-{size % 4}", size % 2, size),
    "end": lambda host, group, size: end_transaction(host, size % 2, committed=size % 3 > 0),
    "delete": lambda host, group, size: host.coordinator.delete_groups([group, f"{group}-{size % 4}"], lambda _: None),
    "reload": lambda host, group, size: reload(host),
}


def ids(host: Host, group_id: str) -> list[str]:
    group = host.shard.groups.get(group_id)
    return [*group.members, *sorted(group.pending_join_members)] if isinstance(group, ClassicGroup) else []


def sync_all(host: Host, group_id: str, size: int) -> None:
    group = host.shard.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        for member_id in list(group.members):
            host.sync(member_id, group.generation_id, {member: bytes(size) for member in group.members}, group=group_id)


def txn_commit(host: Host, group: str, producer_id: int, size: int) -> Answers:
    answers = Answers()
    topics = [TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition(size % 3, 5, -1, "y" * size)])]
    request = TxnOffsetCommitRequest("id", group, producer_id, 0, topics=topics)
    host.coordinator.commit_transactional_offsets(3, request, answers.append)
    return answers


def end_transaction(host: Host, producer_id: int, *, committed: bool) -> None:
    host.coordinator.complete_transaction(
        0, TransactionProducer(producer_id, 0), 0, committed=committed, on_done=lambda _: None, timeout_ms=1000
    )


def reload(host: Host) -> None:
    memory = host.shard.memory
    host.coordinator.on_resignation(0, None)
    assert (memory.members.used, memory.offsets.used) == (0, 0)
    host.load()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(ACTIONS)), st.sampled_from(GROUPS), st.integers(0, 3_000)), max_size=40))
def test_the_account_is_the_sum_of_what_classic_groups_and_offsets_hold(steps: list[tuple[str, str, int]]) -> None:
    host = Host()
    for action, group, size in steps:
        ACTIONS[action](host, group, size)
        check(host.shard)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_the_account_is_the_sum_of_what_consumer_groups_hold(steps: list[tuple[str, str]]) -> None:
    world = World(Topics(a=3, b=2, foo=1))
    for step, member_id in steps:
        try:
            take(world, step, member_id)
        except KafkaError:
            continue
        check(world.shard)


# -- limits of a group


def test_sixty_members_with_large_metadata_do_not_fit_in_one_group() -> None:
    host = Host(barnabas_group_max_bytes=100_000, group_max_session_timeout_ms=UNLIMITED)
    codes = [host.join(version=3, protocols={"range": bytes(20_000)}) for _ in range(60)]
    refused = [answers.one.error_code for answers in codes if answers]
    assert refused == [ErrorCode.GROUP_MAX_SIZE_REACHED] * 56
    assert len(host.shard.groups["g"].members) == 4  # type: ignore[attr-defined]
    assert host.shard.memory.members.used <= 100_000


def test_a_member_that_comes_back_with_more_is_refused_and_keeps_what_it_had() -> None:
    host = Host(barnabas_group_max_bytes=10_000)
    (member_id,) = host.stable()
    before = host.shard.memory.members.used
    assert host.join(member_id, protocols={"range": bytes(10_000)}).one.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert host.shard.memory.members.used == before
    assert host.heartbeat(member_id, 1) == 0


def test_ids_that_are_given_out_count_until_they_expire() -> None:
    host = Host(barnabas_group_max_bytes=10_000)
    codes = [host.join().one.error_code for _ in range(30)]
    assert codes.count(ErrorCode.MEMBER_ID_REQUIRED) == 12 and codes.count(ErrorCode.GROUP_MAX_SIZE_REACHED) == 18
    host.time.advance(10_000)
    assert host.join().one.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_an_assignment_that_is_too_large_is_refused_as_a_record_that_is_too_large() -> None:
    host = Host(barnabas_group_max_bytes=100_000)
    member_id, joined = host.member()
    host.time.advance(3_000)
    answers = host.sync(member_id, joined.one.generation_id, {member_id: bytes(200_000)})
    assert answers.one.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert host.shard.memory.members.used < 10_000


def test_a_member_of_a_consumer_group_is_refused_with_what_is_too_large() -> None:
    world = World(Topics(a=1))
    world.shard.memory.group_max_bytes = 5_000
    world.join("m1", "a")
    with pytest.raises(GroupMaxSizeReached, match=r"barnabas\.group\.max\.bytes is 5000"):
        world.join("m2", *(f"topic-{number}" for number in range(100)))
    world.report("m1", 1)
    check(world.shard)


# -- limits of all groups


def test_when_all_groups_are_full_a_new_member_is_told_to_try_again_and_members_go_on() -> None:
    host = Host(partitions=3, barnabas_groups_max_bytes=30_000)
    memory = host.shard.memory
    ids_of = {group: host.stable(group=group)[0] for group in "ab"}
    held = memory.members.used
    refused = [host.join(group=f"new-{number}", version=3, protocols={"range": bytes(5_000)}) for number in range(20)]
    assert memory.members.used <= 30_000 and held < 10_000
    assert {answers.one.error_code for answers in refused if answers} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    for group, member_id in ids_of.items():
        assert host.heartbeat(member_id, 1, group) == 0
        assert commit_error(host.commit(1, group=group, member_id=member_id, generation=1)) == 0


def test_a_new_consumer_group_is_told_to_try_again() -> None:
    world = World(Topics(a=1))
    world.shard.memory.members.limit = 2_000
    with pytest.raises(CoordinatorNotAvailable, match=r"barnabas\.groups\.max\.bytes is 2000"):
        world.join("m1", "a")


def test_when_offsets_are_full_those_that_are_there_are_still_committed() -> None:
    host = Host(barnabas_offsets_max_bytes=1_000)
    codes = [commit_error(host.commit(1, partition=number)) for number in range(10)]
    assert codes == [0] * 4 + [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 6
    assert [commit_error(host.commit(2, partition=number)) for number in range(10)] == codes
    assert commit_error(host.commit(2, metadata="x")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert txn_code(txn_commit(host, "g", 7, 0)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.shard.memory.offsets.used == 4 * OFFSET_BYTES


def txn_code(answers: Answers) -> int:
    response: Any = answers.one
    code: int = response.topics[0].partitions[0].error_code
    return code


def test_when_groups_are_full_a_commit_makes_no_new_one() -> None:
    host = Host(barnabas_groups_max_bytes=10 * (GROUP_BYTES + 2))
    codes = [commit_error(host.commit(1, group=f"g{number}")) for number in range(10)]
    assert codes == [0] * 10
    assert commit_error(host.commit(1, group="another")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert commit_error(host.commit(2, group="g1")) == 0


def test_a_member_holds_more_than_its_metadata() -> None:
    host = Host()
    host.member(protocols={"range": bytes(1_000)})
    assert host.shard.memory.members.used > GROUP_BYTES + MEMBER_BYTES + 1_000
