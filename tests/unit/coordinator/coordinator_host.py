"""A coordinator with everything it is given: a log in memory, a clock and timers that only move when told."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from barnabas.coordinator.group.classic.classic_groups import Caller
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.coordinator import GroupCoordinator
from barnabas.coordinator.group.shard import GroupCoordinatorShard
from barnabas.coordinator.metrics import NoMetrics
from barnabas.coordinator.partition_log import NO_TRANSACTION, TransactionProducer
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.shard_timer import ShardTimer
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_commit_response import OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.offset_fetch_response import OffsetFetchResponseGroup
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse
from barnabas.records.batch import read_batches
from barnabas.uuid import Uuid


class Time:
    """The clock and the timers."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self._order = itertools.count()
        self._due: list[tuple[int, int, Handle]] = []

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now

    def call_later(self, delay_ms: int, action: Callable[[], None]) -> Handle:
        handle = Handle(action)
        heapq.heappush(self._due, (self.now + delay_ms, next(self._order), handle))
        return handle

    def advance(self, by_ms: int) -> None:
        until = self.now + by_ms
        while self._due and self._due[0][0] <= until:
            self.now, _, handle = heapq.heappop(self._due)
            if not handle.cancelled:
                handle.action()
        self.now = until


class Handle:
    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class MemoryLog:
    """Partitions as lists of batches. The high watermark follows at once, unless it is held back."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[int, int, bytes]]] = {}
        self.held_at: int | None = None
        self.error: Exception | None = None
        self.is_leader = True
        self.batch_size_max = 1_048_576

    def append(self, partition: int, batch: bytes, producer: TransactionProducer = NO_TRANSACTION) -> int:
        if self.error is not None:
            raise self.error
        base = self._end(partition)
        count = sum(read.count for read in read_batches(batch))
        stamped = base.to_bytes(8, "big") + batch[8:]
        self.batches.setdefault(partition, []).append((base, base + count, stamped))
        return base

    def high_watermark(self, partition: int) -> int:
        return self._end(partition) if self.held_at is None else self.held_at

    def max_batch_size(self, partition: int) -> int:
        return self.batch_size_max

    def log_start_offset(self, partition: int) -> int:
        return 0

    def log_end_offset(self, partition: int) -> int:
        return self._end(partition) if self.is_leader else -1

    def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        return b"".join(data for _, end, data in self.batches.get(partition, []) if end > offset)

    def next_segment(self, partition: int, offset: int) -> int:
        """A segment is a batch."""
        return next((end for _, end, _ in self.batches.get(partition, []) if end > offset), offset)

    def _end(self, partition: int) -> int:
        batches = self.batches.get(partition)
        return batches[-1][1] if batches else 0


class Answers(list[Any]):
    """What was answered; `one` is the only answer."""

    @property
    def one(self) -> Any:
        assert len(self) == 1, list(self)
        return self[0]


class Host:
    def __init__(
        self,
        log: MemoryLog | None = None,
        partitions: int = 1,
        load_buffer_size: int = 1_000_000,
        on_timer: Callable[[ShardTimer], object] = lambda timer: None,
        **settings: Any,
    ) -> None:
        self.time = Time()
        self.log = log or MemoryLog()
        self.config = GroupCoordinatorConfig(**settings)
        ids = itertools.count(1)
        memory = self.config.memory()

        def make_shard(_: int, timer: ShardTimer) -> GroupCoordinatorShard:
            on_timer(timer)
            return GroupCoordinatorShard(self.config, self.time, timer, NoMetrics(), lambda: f"id{next(ids)}", memory)

        self.runtime = CoordinatorRuntime(self.log, make_shard, self.time, self.time, load_buffer_size=load_buffer_size)
        self.coordinator = GroupCoordinator(self.config, self.runtime)
        self.coordinator.start(partitions)
        for partition in range(partitions):
            self.load(partition)

    def load(self, partition: int = 0, epoch: int = 0) -> None:
        for _ in self.coordinator.on_election(partition, epoch):
            pass

    @property
    def shard(self) -> GroupCoordinatorShard:
        return self.runtime.shards()[0]

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        protocols: dict[str, bytes] | None = None,
        version: int = 9,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        protocol_type: str = "consumer",
    ) -> Answers:
        answers = Answers()
        offered = {"range": subscription("t")} if protocols is None else protocols
        request = JoinGroupRequest(
            group,
            session_ms,
            rebalance_ms,
            member_id,
            instance,
            protocol_type,
            [JoinGroupRequestProtocol(name, metadata) for name, metadata in offered.items()],
        )
        self.coordinator.join_group(Caller("client", "/127.0.0.1", version), request, answers.append)
        assert all(isinstance(answer, JoinGroupResponse) for answer in answers)
        return answers

    def member(self, group: str = "g", **options: Any) -> tuple[str, Answers]:
        """A dynamic member that came back with the id it was given, and its waiting JoinGroup."""
        member_id = self.join(group=group, **options).one.member_id
        return member_id, self.join(member_id, group=group, **options)

    def stable(self, count: int = 1, group: str = "g", **options: Any) -> list[str]:
        """The ids of the members of a new stable group, the leader first."""
        joining = [self.member(group, **options) for _ in range(count)]
        while not joining[0][1]:
            self.time.advance(self.config.group_initial_rebalance_delay_ms)
        generation = joining[0][1].one.generation_id
        leader = joining[0][1].one.leader
        ids = sorted((member_id for member_id, _ in joining), key=lambda member_id: member_id != leader)
        waiting = [self.sync(member_id, generation, group=group) for member_id in ids[1:]]
        synced = self.sync(leader, generation, {member_id: member_id.encode() for member_id in ids}, group=group)
        assert all(answers.one.error_code == 0 for answers in [synced, *waiting])
        return ids

    def sync(
        self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, *, group: str = "g", instance: str | None = None
    ) -> Answers:
        answers = Answers()
        given = [SyncGroupRequestAssignment(name, data) for name, data in (assignments or {}).items()]
        request = SyncGroupRequest(group, generation, member_id, instance, "consumer", "range", given)
        self.coordinator.sync_group(Caller("client", "/127.0.0.1", 5), request, answers.append)
        assert all(isinstance(answer, SyncGroupResponse) for answer in answers)
        return answers

    def heartbeat(self, member_id: str, generation: int, group: str = "g", instance: str | None = None) -> int:
        answers = Answers()
        self.coordinator.heartbeat(HeartbeatRequest(group, generation, member_id, instance), answers.append)
        response: HeartbeatResponse = answers.one
        return response.error_code

    def leave(self, member_id: str, group: str = "g", instance: str | None = None, version: int = 5) -> LeaveGroupResponse:
        answers = Answers()
        request = LeaveGroupRequest(group, member_id, [MemberIdentity(member_id, instance)])
        self.coordinator.leave_group(request, version, answers.append)
        response: LeaveGroupResponse = answers.one
        return response

    def commit(
        self,
        offset: int,
        *,
        group: str = "g",
        member_id: str = "",
        generation: int = -1,
        topic: str = "t",
        partition: int = 0,
        metadata: str = "",
        retention_ms: int = -1,
        version: int = 9,
    ) -> Answers:
        answers = Answers()
        committed = OffsetCommitRequestPartition(partition, offset, -1, -1, metadata)
        request = OffsetCommitRequest(
            group, generation, member_id, None, retention_ms, [OffsetCommitRequestTopic(topic, Uuid.ZERO, [committed])]
        )
        self.coordinator.commit_offsets(version, request, answers.append)
        return answers

    def fetch(self, group: str = "g", topic: str = "t", partition: int = 0, *, stable: bool = False) -> tuple[int, int]:
        """The committed offset and the error of its partition."""
        answers = Answers()
        request = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, Uuid.ZERO, [partition])])
        self.coordinator.fetch_offsets(request, stable, answers.append)
        answer: OffsetFetchResponseGroup = answers.one
        assert answer.error_code == 0
        return answer.topics[0].partitions[0].committed_offset, answer.topics[0].partitions[0].error_code


def subscription(*topics: str) -> bytes:
    """A consumer's subscription, version 0."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


def commit_error(answers: Answers) -> int:
    response: OffsetCommitResponse = answers.one
    return response.topics[0].partitions[0].error_code
