# Compiled by mypyc: src/compiled.toml lists this module.
"""The group coordinator, as the request handlers call it: one method per API, which calls `respond` exactly once.

Each method validates the request without looking at the group, finds the partition of the group, runs the operation on its shard, and turns
an error into the response of the API. `respond` may be called before the method returns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypeVar

from barnabas.coordinator.faults import client_code, client_error_code, commit_error_code, error_code, truncated
from barnabas.coordinator.gather import Gather
from barnabas.coordinator.group.classic.classic_groups import Caller
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.consumer.consumer_groups import configured_assignors
from barnabas.coordinator.group.consumer.heartbeat_epochs import validate_heartbeat
from barnabas.coordinator.group.group import partition_for
from barnabas.coordinator.group.group_metrics import group_gauges, partition_gauges
from barnabas.coordinator.group.shard import ConsumerPart, GroupCoordinatorShard
from barnabas.coordinator.partition_log import TransactionProducer
from barnabas.coordinator.result import CoordinatorResult
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.errors import CoordinatorNotAvailable, InvalidGroupId, KafkaError
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.messages.consumer_group_describe_response import DescribedGroup as DescribedConsumerGroup
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from barnabas.protocol.messages.delete_groups_response import DeletableGroupResult
from barnabas.protocol.messages.describe_groups_response import DescribedGroup
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.join_group_request import JoinGroupRequest
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListGroupsResponse
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest
from barnabas.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_delete_request import OffsetDeleteRequest
from barnabas.protocol.messages.offset_delete_response import OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from barnabas.protocol.messages.offset_fetch_response import OffsetFetchResponseGroup
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse
from barnabas.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from barnabas.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.storage.producers.verification import VerificationGuard
from barnabas.topic_partition import TopicPartition

R = TypeVar("R")
Respond = Callable[[R], None]
Verified = Callable[[int, VerificationGuard | None], None]  # an error code, or the guard that the log requires with the records
Verify = Callable[[int, Verified], None]  # of a partition of `__consumer_offsets`

_PROTOCOL_IS_MANDATORY: Final = 5  # of SyncGroup: from this version on the request names the protocol of the join response
_PROTOCOL_NAME_IS_NULLABLE: Final = 7  # of JoinGroup's response


class GroupCoordinator:
    def __init__(self, config: GroupCoordinatorConfig, runtime: CoordinatorRuntime[GroupCoordinatorShard]) -> None:
        self._config = config
        self._runtime = runtime
        self._assignors = tuple(configured_assignors(config))
        self._partition_count = 0  # 0 until `start`

    def start(self, partition_count: int) -> None:
        """`partition_count` is that of `__consumer_offsets`, or the one it will be created with."""
        self._partition_count = partition_count

    def shutdown(self) -> None:
        self._partition_count = 0
        self._runtime.shutdown()

    def partition_for(self, group_id: str) -> int:
        if not self._partition_count:
            raise CoordinatorNotAvailable
        return partition_for(group_id, self._partition_count)

    def on_election(self, partition: int, leader_epoch: int) -> Iterator[None]:
        """This broker leads a partition of the topic. The partition is loading until the iterator is exhausted, one slice a step."""
        return self._runtime.load(partition, leader_epoch)

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None:
        self._runtime.unload(partition, leader_epoch)

    def high_watermark_updated(self, partition: int, high_watermark: int) -> None:
        self._runtime.high_watermark_updated(partition, high_watermark)

    # -- the classic protocol

    def join_group(self, caller: Caller, request: JoinGroupRequest, respond: Respond[JoinGroupResponse]) -> None:
        join = _Join(caller, request, respond)
        if request.rebalance_timeout_ms == -1:
            request.rebalance_timeout_ms = request.session_timeout_ms  # version 0 has one field for both timeouts
        fault = self._fault(request.group_id)
        if fault is None and not self._is_session_timeout_allowed(request.session_timeout_ms):
            fault = int(ErrorCode.INVALID_SESSION_TIMEOUT)
        if fault is not None:
            join.answer(JoinGroupResponse(member_id=request.member_id, error_code=fault))
            return
        self._write(request.group_id, join.run, _nothing, join.fail)

    def _is_session_timeout_allowed(self, session_timeout_ms: int) -> bool:
        return self._config.group_min_session_timeout_ms <= session_timeout_ms <= self._config.group_max_session_timeout_ms

    def sync_group(self, caller: Caller, request: SyncGroupRequest, respond: Respond[SyncGroupResponse]) -> None:
        sync = _Sync(request, respond)
        fault = None
        if caller.version >= _PROTOCOL_IS_MANDATORY and (request.protocol_type is None or request.protocol_name is None):
            fault = int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        fault = self._fault(request.group_id) if fault is None else fault
        if fault is not None:
            sync.answer(SyncGroupResponse(error_code=fault))
            return
        self._write(request.group_id, sync.run, _nothing, sync.fail)

    def heartbeat(self, request: HeartbeatRequest, respond: Respond[HeartbeatResponse]) -> None:
        fault = self._fault(request.group_id)
        if fault is not None:
            respond(HeartbeatResponse(error_code=fault))
            return
        heartbeat = _Heartbeat(request, respond)
        self._write(request.group_id, heartbeat.run, respond, heartbeat.fail)

    def leave_group(self, request: LeaveGroupRequest, version: int, respond: Respond[LeaveGroupResponse]) -> None:
        def answer(response: LeaveGroupResponse) -> None:
            if version <= 2 and response.members:
                response = LeaveGroupResponse(error_code=response.error_code or response.members[0].error_code)
            respond(response)

        fault = self._fault(request.group_id)
        if fault is not None:
            answer(LeaveGroupResponse(error_code=fault))
            return

        def fail(error: Exception) -> None:
            code = client_error_code(error)
            if code == ErrorCode.UNKNOWN_MEMBER_ID and version >= 3:
                members = [MemberResponse(member.member_id, member.group_instance_id, code) for member in request.members]
                answer(LeaveGroupResponse(members=members))
            else:
                answer(LeaveGroupResponse(error_code=code))

        self._write(request.group_id, lambda shard: shard.leave(request, version), answer, fail)

    # -- the consumer protocol

    def consumer_group_heartbeat(
        self, caller: Caller, request: ConsumerGroupHeartbeatRequest, respond: Respond[ConsumerGroupHeartbeatResponse]
    ) -> None:
        def fail(error: Exception) -> None:
            code = client_error_code(error)
            message = truncated(str(error)) if code == error_code(error) and str(error) else None
            respond(ConsumerGroupHeartbeatResponse(error_code=code, error_message=message))

        if self._partition_count:
            try:
                validate_heartbeat(request, caller.version, self._assignors)
            except KafkaError as error:
                fail(error)
                return
        self._write(request.group_id, lambda shard: _consumer(shard).consumer_heartbeat(caller, request), respond, fail)

    def consumer_group_describe(self, group_ids: Sequence[str], respond: Respond[list[DescribedConsumerGroup]]) -> None:
        """The groups in the order of the request. The handler adds the authorized operations."""
        gather = Gather[DescribedConsumerGroup](len(group_ids), respond)
        for index, group_id in enumerate(group_ids):
            self._describe_consumer_group(group_id, gather.slot(index))
        gather.all_asked()

    def _describe_consumer_group(self, group_id: str, respond: Respond[DescribedConsumerGroup]) -> None:
        def fail(error: Exception) -> None:
            respond(DescribedConsumerGroup(group_id=group_id, error_code=client_error_code(error)))

        fault = self._fault(group_id)
        if fault is not None:
            respond(DescribedConsumerGroup(group_id=group_id, error_code=fault))
            return
        self._read(group_id, lambda shard: _consumer(shard).describe([group_id])[0], respond, fail)

    # -- offsets

    def commit_offsets(self, version: int, request: OffsetCommitRequest, respond: Respond[OffsetCommitResponse]) -> None:
        """All versions from 1 on. OffsetCommit version 0 stores offsets in the metadata store and does not use the coordinator."""
        commit = _Commit(version, request, respond)
        self._write(request.group_id, commit.run, respond, commit.fail)

    def commit_transactional_offsets(
        self, version: int, request: TxnOffsetCommitRequest, respond: Respond[TxnOffsetCommitResponse], verify: Verify | None = None
    ) -> None:
        """The offsets are pending until `complete_transaction`. `verify` makes the transaction coordinator check that the transaction is
        open and contains the group's partition. Without `verify` the log decides whether it accepts an unverified transaction."""

        def fail(error: Exception) -> None:
            respond(_txn_commit_error(request, commit_error_code(error)))

        def verified(code: int, guard: VerificationGuard | None) -> None:
            if code != 0:
                respond(_txn_commit_error(request, client_code(code)))
                return
            producer = TransactionProducer(request.producer_id, request.producer_epoch, guard)
            self._write(request.group_id, lambda shard: shard.offsets.commit_transactional(version, request), respond, fail, producer)

        fault = self._fault(request.group_id)
        if fault is not None:
            respond(_txn_commit_error(request, fault))
        elif verify is None:
            verified(0, None)
        else:
            verify(self.partition_for(request.group_id), verified)

    def complete_transaction(
        self,
        partition: int,
        producer: TransactionProducer,
        coordinator_epoch: int,
        *,
        committed: bool,
        on_done: Callable[[Exception | None], None],
        timeout_ms: int,
    ) -> None:
        """Writes the end marker of a transaction to a partition of `__consumer_offsets`."""
        if not self._partition_count:
            on_done(CoordinatorNotAvailable())
            return
        self._runtime.complete_transaction(
            partition, producer, coordinator_epoch, committed=committed, on_done=on_done, timeout_ms=timeout_ms
        )

    def fetch_offsets(self, request: OffsetFetchRequestGroup, require_stable: bool, respond: Respond[OffsetFetchResponseGroup]) -> None:
        """One group of an OffsetFetch; `topics` of None requests all offsets of the group."""

        def fail(error: Exception) -> None:
            code = client_error_code(error)
            if error_code(error) in _NOT_COORDINATOR_ON_FETCH:
                code = int(ErrorCode.NOT_COORDINATOR)  # consumers before 3.9 only handle this code
            respond(OffsetFetchResponseGroup(request.group_id, error_code=code))

        self._read(request.group_id, lambda shard: shard.offsets.fetch(request, require_stable=require_stable), respond, fail)

    def delete_offsets(self, request: OffsetDeleteRequest, respond: Respond[OffsetDeleteResponse]) -> None:
        fault = self._fault(request.group_id)
        if fault is not None:
            respond(OffsetDeleteResponse(error_code=fault))
            return
        self._write(
            request.group_id,
            lambda shard: shard.offsets.delete(request),
            respond,
            lambda error: respond(OffsetDeleteResponse(error_code=client_error_code(error))),
        )

    def on_topics_changed(self, names: Collection[str], *, created: bool) -> None:
        """Topics of the cluster changed (`created`: some are new), or their partitions did. Consumer groups refresh their metadata."""
        for shard in self._runtime.shards():
            if shard.consumer is not None:
                shard.consumer.on_topics_changed(names, created=created)

    def partitions_deleted(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions were deleted: delete the offsets committed for them, in every loaded partition of the topic."""
        for partition in self._runtime.partitions():
            self._runtime.write(
                partition,
                lambda shard: shard.partitions_deleted(partitions),
                _nothing,
                _nothing,
                timeout_ms=self._config.offsets_commit_timeout_ms,
            )

    # -- administration

    def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        if not self._partition_count:
            return ListGroupsResponse(error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        if self._runtime.is_loading:
            return ListGroupsResponse(error_code=int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        groups = [group for shard in self._runtime.shards() for group in shard.list_groups(request.states_filter, request.types_filter)]
        return ListGroupsResponse(groups=groups)

    def describe_groups(self, group_ids: Sequence[str], version: int, respond: Respond[list[DescribedGroup]]) -> None:
        """The groups in the order of the request. The handler adds the authorized operations."""
        gather = Gather[DescribedGroup](len(group_ids), respond)
        for index, group_id in enumerate(group_ids):
            self._describe(group_id, version, gather.slot(index))
        gather.all_asked()

    def _describe(self, group_id: str, version: int, respond: Respond[DescribedGroup]) -> None:
        def fail(error: Exception) -> None:
            # The response to an error carries no group state.
            respond(DescribedGroup(group_id=group_id, error_code=client_error_code(error)))

        self._read(group_id, lambda shard: shard.describe(group_id, version), respond, fail)

    def delete_groups(self, group_ids: Sequence[str], respond: Respond[list[DeletableGroupResult]]) -> None:
        unique = list(dict.fromkeys(group_ids))
        gather = Gather[DeletableGroupResult](len(unique), respond)
        for index, group_id in enumerate(unique):
            self._delete(group_id, gather.slot(index))
        gather.all_asked()

    def _delete(self, group_id: str, respond: Respond[DeletableGroupResult]) -> None:
        self._write(
            group_id,
            lambda shard: shard.delete_groups([group_id]),
            lambda results: respond(results[0]),
            lambda error: respond(DeletableGroupResult(group_id, client_error_code(error))),
        )

    @property
    def skipped_records(self) -> int:
        """The number of records of `__consumer_offsets` that could not be read while partitions were loaded."""
        return self._runtime.skipped_records

    def shards(self) -> list[GroupCoordinatorShard]:
        """The shards of all partitions; empty while a partition is loading."""
        return [] if self._runtime.is_loading else self._runtime.shards()

    def gauges(self) -> dict[str, int]:
        """Kafka's gauges of this coordinator, by metric name."""
        runtime = self._runtime
        active = len(runtime.partitions())
        partitions = partition_gauges(runtime.partition_count - active, active, runtime.failed_count)
        return {**group_gauges(runtime.shards()), **partitions}

    # -- common

    def _fault(self, group_id: str) -> int | None:
        if not self._partition_count:
            return CoordinatorNotAvailable.code
        return None if group_id else InvalidGroupId.code

    def _write(
        self,
        group_id: str,
        operation: Callable[[GroupCoordinatorShard], CoordinatorResult[R]],
        respond: Callable[[R], None],
        fail: Callable[[Exception], None],
        producer: TransactionProducer | None = None,
    ) -> None:
        if not self._partition_count:
            fail(CoordinatorNotAvailable())
            return
        timeout_ms = self._config.offsets_commit_timeout_ms
        self._runtime.write(self.partition_for(group_id), operation, respond, fail, timeout_ms=timeout_ms, producer=producer)

    def _read(
        self,
        group_id: str,
        operation: Callable[[GroupCoordinatorShard], R],
        respond: Callable[[R], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self._write(group_id, lambda shard: CoordinatorResult(response=operation(shard)), respond, fail)


_NOT_COORDINATOR_ON_FETCH: Final = frozenset(
    {int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), int(ErrorCode.NOT_ENOUGH_REPLICAS), int(ErrorCode.REQUEST_TIMED_OUT)}
)


# The most frequent requests have classes of their own, because closures would cost more than the work.


class _Join:
    """A JoinGroup. Only the first answer is sent: the operation may answer, and then the failure of its append."""

    __slots__ = ("_caller", "_is_answered", "_request", "_respond")

    def __init__(self, caller: Caller, request: JoinGroupRequest, respond: Respond[JoinGroupResponse]) -> None:
        self._caller = caller
        self._request = request
        self._respond = respond
        self._is_answered = False

    def run(self, shard: GroupCoordinatorShard) -> CoordinatorResult[None]:
        return shard.join(self._caller, self._request, self.answer)

    def fail(self, error: Exception) -> None:
        self.answer(JoinGroupResponse(error_code=client_error_code(error)))

    def answer(self, response: JoinGroupResponse) -> None:
        if self._is_answered:
            return
        self._is_answered = True
        if not response.protocol_name:
            response.protocol_name = None if self._caller.version >= _PROTOCOL_NAME_IS_NULLABLE else ""
        self._respond(response)


class _Sync:
    """A SyncGroup. Only the first answer is sent, as for `_Join`."""

    __slots__ = ("_is_answered", "_request", "_respond")

    def __init__(self, request: SyncGroupRequest, respond: Respond[SyncGroupResponse]) -> None:
        self._request = request
        self._respond = respond
        self._is_answered = False

    def run(self, shard: GroupCoordinatorShard) -> CoordinatorResult[None]:
        return shard.sync(self._request, self.answer)

    def fail(self, error: Exception) -> None:
        code = client_error_code(error)
        # The rebalance of this member is lost with the state of the former coordinator, so the member has to rejoin.
        # Kafka's Java clients handle REBALANCE_IN_PROGRESS here; COORDINATOR_LOAD_IN_PROGRESS would end their poll.
        if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            code = int(ErrorCode.REBALANCE_IN_PROGRESS)
        self.answer(SyncGroupResponse(error_code=code))

    def answer(self, response: SyncGroupResponse) -> None:
        if not self._is_answered:
            self._is_answered = True
            self._respond(response)


class _Heartbeat:
    __slots__ = ("_request", "_respond")

    def __init__(self, request: HeartbeatRequest, respond: Respond[HeartbeatResponse]) -> None:
        self._request = request
        self._respond = respond

    def run(self, shard: GroupCoordinatorShard) -> CoordinatorResult[HeartbeatResponse]:
        return shard.heartbeat(self._request)

    def fail(self, error: Exception) -> None:
        code = client_error_code(error)
        # No session timer runs while the group is loading, so the heartbeat succeeds.
        self._respond(HeartbeatResponse(error_code=0 if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code))


class _Commit:
    __slots__ = ("_request", "_respond", "_version")

    def __init__(self, version: int, request: OffsetCommitRequest, respond: Respond[OffsetCommitResponse]) -> None:
        self._version = version
        self._request = request
        self._respond = respond

    def run(self, shard: GroupCoordinatorShard) -> CoordinatorResult[OffsetCommitResponse]:
        return shard.offsets.commit(self._version, self._request)

    def fail(self, error: Exception) -> None:
        self._respond(_commit_error(self._request, commit_error_code(error)))


def _consumer(shard: GroupCoordinatorShard) -> ConsumerPart:
    if shard.consumer is None:
        raise UnsupportedVersion("The consumer protocol is not enabled; see group.coordinator.rebalance.protocols.")
    return shard.consumer


def _nothing(_: object) -> None:
    """For operations that send their response themselves."""


def _commit_error(request: OffsetCommitRequest, code: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [OffsetCommitResponsePartition(partition.partition_index, code) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _txn_commit_error(request: TxnOffsetCommitRequest, code: int) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name, [TxnOffsetCommitResponsePartition(partition.partition_index, code) for partition in topic.partitions]
            )
            for topic in request.topics
        ]
    )
