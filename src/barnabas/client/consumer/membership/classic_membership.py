"""A consumer's membership with the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A rebalance runs in a task of its own and continues after a poll has timed out. The next poll applies its result, so that the assignment
changes and listeners run only within `join_if_needed`. Heartbeats run in another task, which leaves the group when the application has not
polled for max.poll.interval.ms. `classic_member` interprets responses, `classic_leader` does the leader's part.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from barnabas.client.consumer.assignors import common_protocol, make_assignors
from barnabas.client.consumer.assignors.assignor import Assignment, ConsumerPartitionAssignor, RebalanceProtocol
from barnabas.client.consumer.assignors.protocol import deserialize_assignment
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.membership.classic_exchange import ClassicExchange
from barnabas.client.consumer.membership.classic_leader import Leader
from barnabas.client.consumer.membership.classic_member import REJOIN_AT_ONCE, ClassicHeartbeatResult, ClassicMember, ClassicMemberState
from barnabas.client.consumer.membership.coordinator import end, sleep_until, start, wait_for, wait_until
from barnabas.client.consumer.membership.group_member import POLL_EXPIRED, GroupMember, MemberEnvironment
from barnabas.client.consumer.membership.membership import DEFAULT, LEAVE_GROUP, REMAIN_IN_GROUP
from barnabas.client.consumer.membership.rebalance_listener import listener_error
from barnabas.client.consumer.offsets.offset_messages import NO_MEMBER, Identity
from barnabas.client.errors import (
    IllegalState,
    KafkaError,
    MemberIdRequired,
)
from barnabas.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class ClassicMembership(GroupMember):
    def __init__(self, environment: MemberEnvironment) -> None:
        config, subscriptions, clock = environment.config, environment.subscriptions, environment.clock
        super().__init__(
            environment,
            session_timeout_ms=config["session.timeout.ms"],
            heartbeat_interval_ms=config["heartbeat.interval.ms"],
            commits_by_id=False,
        )
        self._assignors: list[ConsumerPartitionAssignor] = make_assignors(config["partition.assignment.strategy"], config.originals())
        self._protocol = common_protocol(self._assignors)
        self._member = ClassicMember(self._group_id, self._instance_id)
        self._leader = Leader(environment.metadata, subscriptions, self._watch, self._protocol)
        self._exchange = ClassicExchange(
            config,
            self._coordinator,
            self._member,
            self._leader,
            subscriptions,
            self._assignors,
            clock=clock,
            metrics=self._metrics,
            on_joined=self._note_joined,
        )
        self._coordinator.on_found.append(lambda: self._heartbeat.reset_session(clock.monotonic_ms()))
        self._joining: asyncio.Task[bytes] | None = None
        self._commit_before_join: asyncio.Task[None] | None = None
        self._prepare_deadline_ms: int | None = None

    # Polls

    def poll(self, now_ms: int) -> bool:
        self._heartbeat.polled(now_ms)
        if self._needs_attention(now_ms):
            return True
        return self._subscriptions.has_auto_assigned_partitions() and (self._coordinator.is_unknown or self.need_rejoin)

    @property
    def need_rejoin(self) -> bool:
        """Whether a rebalance is needed or in progress."""
        if not self._subscriptions.has_auto_assigned_partitions():
            return False
        return self._member.rejoin_needed or self._joining is not None or self._leader.out_of_date or self._subscription_differs

    @property
    def _subscription_differs(self) -> bool:
        joined, current = self._exchange.joined_subscription, self._subscriptions.subscription()
        return joined is not None and joined is not current and joined != current

    async def join_if_needed(self, deadline_ms: int) -> bool:
        self._watch.look()
        if self._subscriptions.has_auto_assigned_partitions():
            if self._protocol is None:
                raise IllegalState(
                    "User configured partition.assignment.strategy to empty while trying to subscribe for group protocol "
                    "to auto assign partitions"
                )
            self._heartbeat.polled(self._clock.monotonic_ms())
            self._raise_failure()
            if not await self._coordinator.ensure_ready(deadline_ms):
                return False
            if self.need_rejoin and not await self._rejoin(deadline_ms):
                return False
        self._commits.auto_commit_if_due()
        return True

    def on_subscription_change(self) -> None:
        """Does nothing: every poll compares the joined subscription with the current one."""

    def enforce_rebalance(self, reason: str | None) -> None:
        self._member.request_rejoin(reason or "rebalance enforced by user")

    # The identity of commits

    def commit_identity(self) -> Identity:
        return self._member.commit_identity() if self._subscriptions.has_auto_assigned_partitions() else NO_MEMBER

    def commit_refused(self, error: KafkaError, sent: Identity) -> KafkaError:
        return self._member.commit_refused(error, sent)

    def fetch_identity(self) -> Identity:
        return NO_MEMBER

    # Joining

    async def _rejoin(self, deadline_ms: int) -> bool:
        if self._subscriptions.has_pattern_subscription():
            # Metadata is refreshed before joining, so that a new topic does not cause one rebalance for each member that sees it.
            if not self._joining and not await self._watch.refresh(deadline_ms, self._clock):
                return False
            self._watch.look()
        self._start_heartbeats()
        while self.need_rejoin:
            if not await self._coordinator.ensure_ready(deadline_ms):
                return False
            if self._leader.out_of_date:
                self._member.request_rejoin_if_needed("cached metadata has changed")
            if self._member.needs_prepare:
                # Set before the callback: a listener that raises has been called, and is not called again for this rebalance.
                self._member.needs_prepare = False
                if not await self._prepare(deadline_ms):
                    self._member.needs_prepare = True
                    return False
            if self._joining is None:
                self._begin_join()
            assert self._joining is not None
            if not await wait_until(self._joining, deadline_ms, self._clock):
                return False
            if not await self._finish_join(self._joining, deadline_ms):
                return False
        return True

    def _begin_join(self) -> None:
        self._member.begin_join()
        self._joining = start(self._exchange.join())

    def _note_joined(self) -> None:
        self._heartbeat.reset_timeouts(self._clock.monotonic_ms())
        self._changed.set()

    async def _finish_join(self, joining: asyncio.Task[bytes], deadline_ms: int) -> bool:
        problem = joining.exception()
        if problem is None:
            if self._member.generation.was_reset or self._member.state is not ClassicMemberState.STABLE:
                self._member.reset("rebalance failed since the generation was reset before its assignment was taken", forget_member_id=True)
                self._joining = None
                return True
            await self._complete(joining.result())
            self._joining = None  # not earlier: a listener that was interrupted is called again
            self._member.needs_prepare = True
            return True
        self._joining = None
        self._metrics.rebalance_failed()
        if not isinstance(problem, MemberIdRequired):
            name = type(problem).__name__
            self._member.request_rejoin(f"rebalance failed due to {name}", f"rebalance failed due to '{problem}' ({name})")
        if isinstance(problem, REJOIN_AT_ONCE):
            return True
        if not (isinstance(problem, KafkaError) and problem.retriable):
            raise problem
        now_ms = self._clock.monotonic_ms()
        if now_ms >= deadline_ms:
            return False
        await sleep_until(min(deadline_ms, now_ms + self._retry_backoff_ms), self._clock)
        return True

    async def _prepare(self, deadline_ms: int) -> bool:
        """Revokes what must be revoked before joining; False if the commit takes longer than the deadline."""
        if self._prepare_deadline_ms is None:
            self._prepare_deadline_ms = self._clock.monotonic_ms() + self._rebalance_timeout_ms
        if self._commits.auto_commit and not await self._commit_before_revoking(min(deadline_ms, self._prepare_deadline_ms)):
            return False
        problem = await self._revoke_before_join()
        self._leader.step_down()
        self._prepare_deadline_ms = None
        if problem is not None:
            raise listener_error(problem)
        return True

    async def _commit_before_revoking(self, deadline_ms: int) -> bool:
        assert self._prepare_deadline_ms is not None
        if self._commit_before_join is None:
            if self._protocol is RebalanceProtocol.EAGER:
                # No more records of these partitions may be returned: their next owner would read them again.
                self._subscriptions.mark_pending_revocation(self._subscriptions.assigned_partitions())
            self._commit_before_join = self._commits.auto_commit_async()
        committed = await wait_until(self._commit_before_join, deadline_ms, self._clock)
        if committed:
            self._commit_before_join = None
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._prepare_deadline_ms:
            log.error("Asynchronous auto-commit of offsets failed: joinPrepare timeout. Will continue to join group")
            return True
        problem = self._commits.auto_commit_error
        if committed and not (isinstance(problem, KafkaError) and problem.retriable):
            return True
        await sleep_until(min(deadline_ms, now_ms + self._retry_backoff_ms), self._clock)
        return False

    async def _revoke_before_join(self) -> Exception | None:
        owned = set(self._subscriptions.assigned_partitions())
        if self._member.owns_nothing:
            if not owned:
                return None
            log.info("Giving away all assigned partitions as lost since generation/memberID has been reset")
            problem = await self._invoker.lost(owned)
            self._subscriptions.assign_from_subscribed(())
            return problem
        if self._protocol is RebalanceProtocol.EAGER:
            problem = await self._invoker.revoked(owned)
            self._subscriptions.assign_from_subscribed(())
            return problem
        subscribed = self._subscriptions.subscription()
        revoked = {partition for partition in owned if partition.topic not in subscribed}
        if not revoked:
            return None
        problem = await self._invoker.revoked(revoked)
        self._subscriptions.assign_from_subscribed(sorted(owned - revoked))
        return problem

    async def _complete(self, data: bytes) -> None:
        """Applies the assignment, and calls the assignor and the listener."""
        generation = self._member.generation
        self._leader.joined()
        assignor = self._exchange.assignor(generation.protocol)
        self._group_metadata = ConsumerGroupMetadata(self._group_id, generation.id, generation.member_id, self._member.instance_id)
        if len(data) < 2:
            raise IllegalState(
                f"There are insufficient bytes available to read assignment from the sync-group response (actual byte size {len(data)}), "
                "this is not expected; it is possible that the leader's assign function is buggy and did not return any assignment for "
                "this member, or because static member is configured and the protocol is buggy hence did not get the assignment for "
                "this member"
            )
        assignment = deserialize_assignment(data)
        assigned = set(assignment.partitions)
        if not self._subscriptions.check_assignment_matched_subscription(assigned):
            self._member.request_rejoin(
                "received assignment does not match the current subscription",
                f"received assignment {sorted(map(str, assigned))} does not match the current subscription "
                f"{sorted(self._subscriptions.subscription())}; it is likely that the subscription has changed since we joined the group",
            )
            return
        owned = set(self._subscriptions.assigned_partitions())
        problem: Exception | None = None
        if self._protocol is RebalanceProtocol.COOPERATIVE:
            problem = await self._revoke_before_rejoin(owned - assigned)
        self._add_assigned_topics(assigned)
        problem = problem or self._notify_assignor(assignor, assignment)
        self._commits.restart_auto_commit()
        self._subscriptions.assign_from_subscribed(sorted(assigned))
        problem = await self._invoker.assigned(assigned - owned) or problem
        if problem is not None:
            self._joining = None
            self._member.needs_prepare = True
            raise listener_error(problem)

    async def _revoke_before_rejoin(self, revoked: set[TopicPartition]) -> Exception | None:
        if not revoked:
            return None
        problem = await self._invoker.revoked(revoked)
        self._member.request_rejoin(
            "need to revoke partitions and re-join",
            f"need to revoke partitions {sorted(map(str, revoked))} as indicated by the current assignment and re-join",
        )
        return problem

    def _add_assigned_topics(self, assigned: Collection[TopicPartition]) -> None:
        """Adds topics that a leader with newer metadata assigned, which match the pattern and are not yet known here."""
        joined = self._exchange.joined_subscription
        if self._subscriptions.has_pattern_subscription() and joined is not None:
            added = {partition.topic for partition in assigned} - joined
            if added:
                self._subscriptions.subscribe_from_pattern(self._subscriptions.subscription() | added)
                self._exchange.joined_subscription = joined | added
                self._metadata.request_update_for_new_topics()

    def _notify_assignor(self, assignor: ConsumerPartitionAssignor, assignment: Assignment) -> Exception | None:
        try:
            assignor.on_assignment(assignment, self._group_metadata)
        except Exception as problem:
            return problem
        return None

    # Heartbeats

    async def _beat_once(self) -> None:
        self._changed.clear()
        now_ms = self._clock.monotonic_ms()
        if not self._member.has_joined or self._failure is not None:
            await self._changed.wait()
        elif self._coordinator.node is None:
            await self._find_coordinator(now_ms)
        elif self._heartbeat.session_expired(now_ms):
            self._coordinator.mark_unknown("session timed out without receiving a heartbeat response")
        elif self._heartbeat.poll_expired(now_ms):
            log.warning(POLL_EXPIRED)
            await self._leave_group("consumer poll timeout has expired.", leave=self._member.is_dynamic)
            self._wake()
        elif self._heartbeat.is_due(now_ms):
            self._heartbeat.sent(now_ms)
            start(self._send_heartbeat())
        else:
            await wait_for(self._changed, self._heartbeat.ms_to_anything(now_ms))

    async def _send_heartbeat(self) -> None:
        self._heartbeat_ended(*await self._exchange.heartbeat())

    def _heartbeat_ended(self, result: ClassicHeartbeatResult, error: KafkaError | None) -> None:
        now_ms = self._clock.monotonic_ms()
        if result is ClassicHeartbeatResult.LIVES:
            self._heartbeat.received(now_ms)
        else:
            self._heartbeat.failed(now_ms)
        if result is ClassicHeartbeatResult.FATAL and error is not None:
            self._fail(error)
        elif self.need_rejoin or self._coordinator.is_unknown:
            self._wake()
        self._changed.set()

    # Leaving

    async def leave(self, reason: str) -> None:
        try:
            await self._revoke_all()
        finally:
            await self._leave_group(reason, leave=self._member.is_dynamic)

    async def close(self, deadline_ms: int, operation: str = DEFAULT) -> None:
        try:
            await self._commit_for_good(deadline_ms)
        finally:
            await self._stop_heartbeats()
            try:
                await self._revoke_all()
            finally:
                leave = operation == LEAVE_GROUP or (operation != REMAIN_IN_GROUP and self._member.is_dynamic)
                await self._leave_group("the consumer is being closed", leave=leave, deadline_ms=deadline_ms)
                await self._end_tasks()

    async def _revoke_all(self) -> None:
        dropped = set(self._subscriptions.assigned_partitions())
        if not (self._subscriptions.has_auto_assigned_partitions() and dropped):
            return
        lost = self._member.owns_nothing or self._member.is_rebalancing
        problem = await (self._invoker.lost(dropped) if lost else self._invoker.revoked(dropped))
        self._subscriptions.assign_from_subscribed(())
        if problem is not None:
            raise listener_error(problem)

    async def _leave_group(self, reason: str, *, leave: bool, deadline_ms: int | None = None) -> None:
        """Leaves the group. The member is out whether or not the coordinator receives the request."""
        member_id = self._member.generation.member_id
        sends_leave = leave and not self._coordinator.is_unknown and self._member.state is not ClassicMemberState.UNJOINED
        self._member.left()
        was_joining = self._joining is not None
        if self._joining is not None:
            await end(self._joining)
            self._joining = None
        first_join = self._exchange.take_first_join()
        if not sends_leave:
            if first_join is not None:
                await end(first_join.response)
            return
        timeout_ms = None if deadline_ms is None else max(1, deadline_ms - self._clock.monotonic_ms())
        if first_join is not None:
            leaving = start(self._exchange.leave_first_join(first_join, reason, timeout_ms))
        elif member_id:
            leaving = start(self._exchange.leave(member_id, reason, timeout_ms))
        else:
            return
        if deadline_ms is not None or not was_joining:
            await leaving  # otherwise the coordinator responds only after the join before it
