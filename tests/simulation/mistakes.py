"""Known mistakes, put into the real broker for as long as a test lasts: the simulator has to find each of them. Only where it is not
compiled, since compiled classes cannot be changed."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from barnabas.broker.clock import Clock
from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.broker.partitions import partition_read
from barnabas.broker.partitions.ack_status import ACKNOWLEDGED, NOT_LEADER, AckStatus
from barnabas.broker.partitions.isr import InSyncReplicas
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.quotas.replication_quota import UNBOUNDED, ReplicationQuota
from barnabas.broker.quotas.request_quota import RequestUsage
from barnabas.broker.replication.follower_fetch import FollowerFetch, Following, FollowingState
from barnabas.broker.replication.replica_manager import ReplicaManager
from barnabas.broker.security.authorizer.acl_authorizer import AclAuthorizer
from barnabas.broker.security.authorizer.acl_store import AclStore
from barnabas.broker.security.session import Session
from barnabas.broker.server.housekeeping import Housekeeping
from barnabas.broker.topics.initial_metadata import InitialMetadata
from barnabas.broker.transactions.transaction_links import ClusterVerifier
from barnabas.broker.transactions.transaction_verification import TransactionVerification
from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.controller import steps, term
from barnabas.coordinator.group.classic.classic_group import ClassicGroup
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.transaction.markers import MarkerWriter
from barnabas.coordinator.transaction.shard import TransactionCoordinatorShard
from barnabas.network.connection import Connection
from barnabas.network.exchange import Exchange
from barnabas.protocol.framing import RequestFrame
from barnabas.storage import log_manager
from barnabas.storage.directory.checkpoints import CheckpointWrite
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.log import log
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management import dir_checkpoints, dir_syncs, flush_queue
from barnabas.storage.management.dir_checkpoints import DirCheckpoints
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

QUESTION_WAITS_S = 0.5


def acknowledge_before_the_isr_has_it() -> Any:
    def check_replicated(self: Partition, required_offset: int) -> AckStatus:
        return ACKNOWLEDGED if self.leader_log is not None else NOT_LEADER

    return changed(Partition, "check_replicated", check_replicated)


def let_the_high_watermark_run_ahead() -> Any:
    """To the leader's own end, whoever has what."""

    def move(self: Partition, log: Any) -> bool:
        return log.maybe_increment_high_watermark(log.end) is not None

    return changed(Partition, "maybe_increment_leader_high_watermark", move)


def truncate_to_the_high_watermark() -> Any:
    def add(self: FollowerFetch, partition: TopicPartition, topic_id: Uuid, leader_epoch: int) -> None:
        self._followed[partition] = Following(topic_id, leader_epoch, self._logs.high_watermark(partition), FollowingState.TRUNCATING)

    return changed(FollowerFetch, "add", add)


def shrink_the_isr_without_asking() -> Any:
    """The leader leaves out who is behind, and the controller does not hear of it."""

    def maybe_shrink(self: InSyncReplicas, monotonic_ms: int) -> None:
        log, host = self._partition.leader_log, self._partition.host
        if log is not None and self.proposed is None:
            caught_up = {
                replica.broker_id
                for replica in self._partition.remote_replicas.values()
                if replica.is_caught_up(log.log_end_offset, monotonic_ms, host.replica_lag_time_max_ms)
            }
            self.commit(self.committed & (caught_up | {host.broker_id}))
            self._partition.isr_changed()

    return changed(InSyncReplicas, "maybe_shrink", maybe_shrink)


def take_a_replica_into_the_isr_that_is_behind() -> Any:
    def maybe_expand(self: InSyncReplicas, replica: Any) -> None:
        if self.proposed is None and replica.broker_id not in self.committed and self._partition.host.isr_updates is not None:
            self._propose(self.committed | {replica.broker_id})

    return changed(InSyncReplicas, "maybe_expand", maybe_expand)


def trust_brokers_that_came_back() -> Any:
    def nothing(context: Any) -> Generator[Any, Any, None]:
        yield from ()

    return changed(term, "leave_out_returned", nothing)


def never_compare_epochs() -> Any:
    """The leader takes it that whoever fetches has the same records up to there."""
    return changed(partition_read, "_diverging_epoch", lambda *_: None)


def obey_a_deposed_controller() -> Any:
    """The broker does not remember the epoch of the controller that it has heard last."""
    return changed(ReplicaManager, "controller_epoch", property(lambda _: 0, lambda *_: None))


def speak_before_the_controller_has() -> Any:
    """A broker that has just joined answers its clients, with what it does not know yet."""
    return changed(InitialMetadata, "is_complete", property(lambda _: True, lambda *_: None))


def write_as_a_deposed_controller() -> Any:
    """The controller does not compare its epoch with that in the tree when it writes."""

    def write(operations: Any, epoch_version: int) -> Generator[Any, Any, Any]:
        return (yield list(operations)) if operations else []

    return changed(steps, "write", write)


def forget_min_insync_replicas() -> Any:
    return changed(Partition, "_effective_min_isr", lambda *_: 1)


def forget_the_producers_with_a_new_leader() -> Any:
    """It does not know what its predecessor took from whom."""
    make_leader = Partition.make_leader

    def forgetful(self: Partition, state: Any, log: Any, monotonic_ms: int) -> bool:
        log.producers.active_producers.clear()
        return make_leader(self, state, log, monotonic_ms)

    return changed(Partition, "make_leader", forgetful)


def leave_markers_to_the_coordinator_before() -> Any:
    """A coordinator that takes over does not go on with transactions whose end is decided and not told."""
    return changed(TransactionCoordinatorShard, "_resume", lambda *_: None)


def commit_in_the_first_partition_only() -> Any:
    start = MarkerWriter.start

    def half(self: MarkerWriter, metadata: Any, *, is_patient: bool = False) -> None:
        start(self, metadata._replace(partitions=frozenset(sorted(metadata.partitions)[:1])), is_patient=is_patient)

    return changed(MarkerWriter, "start", half)


def trust_a_guard_that_a_marker_has_cleared() -> Any:
    """A question to a coordinator waits before it is sent, which is no mistake. The marker of the last transaction comes meanwhile."""
    add_or_verify = ClusterVerifier.add_or_verify

    def wait(self: ClusterVerifier, *question: Any, **how: Any) -> None:
        asyncio.get_running_loop().call_later(QUESTION_WAITS_S, lambda: add_or_verify(self, *question, **how))

    both = ExitStack()
    both.enter_context(changed(ClusterVerifier, "add_or_verify", wait))
    both.enter_context(changed(TransactionVerification, "_is_stale", lambda *_: False))
    return both


def answer_for_the_group_before_the_isr_has_it() -> Any:
    """The coordinators, with what a new one may not know."""

    def when_committed(self: Any, active: Any, ending: Any, timeout_ms: int) -> None:
        ending.end(None)

    return changed(CoordinatorRuntime, "_when_committed", when_committed)


def let_who_waits_wait_for_ever() -> Any:
    """No time is ever up: a fetch that nothing comes for is not answered."""
    return changed(DelayedOperation, "expire", lambda _: False)


def checkpoint_high_watermarks_before_the_controller_has_spoken() -> Any:
    """Of every log that was loaded: until it has a role its high watermark is its log start offset."""

    def take(self: DirCheckpoints, path: str, take: Any) -> Iterator[CheckpointWrite]:
        if path in self._dirs and take is LogDir.take_high_watermarks:
            logs = self._logs.checkpointed_in(path)
            yield self._dirs[path].high_watermarks.take_write({log.partition: log.high_watermark for log in logs})
        elif path in self._dirs:
            yield take(self._dirs[path], self._logs.checkpointed_in(path))

    return changed(DirCheckpoints, "take", take)


def give_wall_time_to_housekeeping() -> Any:
    """What is done regularly waits for the wall clock, which is set back and forth."""
    init = Housekeeping.__init__

    def mistaken(self: Housekeeping, log_manager: LogManager, clock: Clock, *others: Any) -> None:
        init(self, log_manager, WallClock(clock), *others)

    return changed(Housekeeping, "__init__", mistaken)


class WallClock(Clock):
    """One that knows no other time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic_ms(self) -> int:
        return self._clock.now_ms()


@contextmanager
def take_a_shortage_for_a_failed_disk() -> Generator[None, None, None]:
    """EMFILE counts as any other error of the disk."""
    with ExitStack() as mistakes:
        for module in (log, log_manager, dir_checkpoints, dir_syncs, flush_queue):
            mistakes.enter_context(changed(module, "is_shortage", lambda _: False))
        yield


@contextmanager
def changed(where: Any, name: str, what: Any) -> Generator[None, None, None]:
    right = getattr(where, name, None)
    setattr(where, name, what)
    try:
        yield
    finally:
        if right is None:
            delattr(where, name)  # only its instances have it
        else:
            setattr(where, name, right)


def forget_the_bytes_of_a_member_that_left() -> Any:
    """The account of its group keeps them."""
    return changed(ClassicGroup, "_uncount_member", lambda *_: None)


def let_the_next_request_overtake_a_long_one() -> Any:
    return changed(Exchange, "hold_next", lambda self: None)


def look_at_everything_in_one_turn() -> Any:
    """However much a batch unfolds into, the loop is held for it."""

    def append_on(self: ReplicaManager, call: Any) -> None:
        while len(call.results) < len(call.entries):
            result = self._append(call, self.clock.now_ms(), -1)
            assert result is not None
            call.results.append(result)

    return changed(ReplicaManager, "append_on", append_on)


def ignore_the_acls_that_others_change() -> Any:
    async def ignore(*_: Any) -> None: ...

    return changed(AclStore, "_notified", ignore)


def remember_decisions_of_earlier_acls() -> Any:
    def replace(self: AclAuthorizer, pattern: Any, entries: Any) -> None:
        self._index.replace(pattern, entries)

    return changed(AclAuthorizer, "_acls_changed", replace)


def measure_a_throttle_only_when_bytes_are_counted() -> Any:
    """The rate does not fall while nothing is replicated: a replica that waits for it waits for ever."""
    record = ReplicationQuota.record
    rates: dict[ReplicationQuota, float] = {}

    def record_and_measure(self: ReplicationQuota, size: int, monotonic_ms: int) -> None:
        record(self, size, monotonic_ms)
        rates[self] = self.byte_rate(monotonic_ms)

    def is_exceeded(self: ReplicationQuota, monotonic_ms: int) -> bool:
        return self.bound != UNBOUNDED and rates.get(self, 0.0) > self.bound

    both = ExitStack()
    both.enter_context(changed(ReplicationQuota, "record", record_and_measure))
    both.enter_context(changed(ReplicationQuota, "is_exceeded", is_exceeded))
    return both


def leave_a_throttled_client_muted() -> Any:
    """Its throttle time passes, and its next request is not read."""
    return changed(Connection, "_wait_for_throttle", lambda _: None)


def charge_a_client_that_has_not_authenticated() -> Any:
    """With a quota on time, the ApiVersions before SASL is charged to its principal, and there is none."""
    new_usage = RequestDispatcher._new_usage

    def mistaken(self: RequestDispatcher, exchange: Exchange, header: RequestFrame) -> RequestUsage | None:
        if not isinstance(exchange.connection.session, Session):
            raise AttributeError("principal")
        return new_usage(self, exchange, header)

    return changed(RequestDispatcher, "_new_usage", mistaken)


# Found in histories with SASL and an authorizer.
ABOUT_SECURITY = [ignore_the_acls_that_others_change, remember_decisions_of_earlier_acls, charge_a_client_that_has_not_authenticated]

# Found in histories in which an operator throttles replication and limits clients.
ABOUT_THROTTLES = [
    charge_a_client_that_has_not_authenticated,
    leave_a_throttled_client_muted,
    measure_a_throttle_only_when_bytes_are_counted,
]
MISTAKES = [
    *dict.fromkeys([*ABOUT_SECURITY, *ABOUT_THROTTLES]),
    acknowledge_before_the_isr_has_it,
    let_the_high_watermark_run_ahead,
    truncate_to_the_high_watermark,
    shrink_the_isr_without_asking,
    take_a_replica_into_the_isr_that_is_behind,
    trust_brokers_that_came_back,
    never_compare_epochs,
    obey_a_deposed_controller,
    speak_before_the_controller_has,
    write_as_a_deposed_controller,
    forget_min_insync_replicas,
    forget_the_producers_with_a_new_leader,
    leave_markers_to_the_coordinator_before,
    commit_in_the_first_partition_only,
    trust_a_guard_that_a_marker_has_cleared,
    answer_for_the_group_before_the_isr_has_it,
    let_who_waits_wait_for_ever,
    forget_the_bytes_of_a_member_that_left,
    checkpoint_high_watermarks_before_the_controller_has_spoken,
    take_a_shortage_for_a_failed_disk,
    give_wall_time_to_housekeeping,
]
