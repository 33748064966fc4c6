"""A consumer's membership with the consumer protocol (KIP-848): heartbeats, and reconciliation with the target assignment of the broker.

Heartbeats run in a task of their own and only receive new targets. The steps of a reconciliation (commit, revoke, assign) run within
`join_if_needed`, so that the assignment changes and listeners run only while the application polls. `consumer_member` interprets responses.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.membership.consumer_member import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerHeartbeatResult,
    ConsumerMember,
    ConsumerMemberState,
    LocalAssignment,
)
from barnabas.client.consumer.membership.coordinator import end, start, wait_for, wait_until
from barnabas.client.consumer.membership.group_member import POLL_EXPIRED, GroupMember, MemberEnvironment
from barnabas.client.consumer.membership.membership import DEFAULT, LEAVE_GROUP, REMAIN_IN_GROUP
from barnabas.client.consumer.membership.rebalance_listener import listener_error
from barnabas.client.consumer.membership.topic_names import TopicNameResolver
from barnabas.client.consumer.offsets.offset_messages import NO_MEMBER, Identity
from barnabas.client.errors import KafkaError, error_for
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

log = logging.getLogger(__name__)

SESSION_OF_THE_BROKER: Final = 2**62  # the broker decides when a session expires
FIRST_INTERVAL_MS: Final = 3000  # until the broker returns an interval


class ConsumerMembership(GroupMember):
    def __init__(self, environment: MemberEnvironment) -> None:
        config, subscriptions, metadata = environment.config, environment.subscriptions, environment.metadata
        super().__init__(
            environment,
            session_timeout_ms=SESSION_OF_THE_BROKER,
            heartbeat_interval_ms=FIRST_INTERVAL_MS,
            commits_by_id=True,
        )
        self._member = ConsumerMember(
            self._group_id,
            str(Uuid.random(environment.random)),
            subscriptions,
            instance_id=self._instance_id,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            assignor=config["group.remote.assignor"],
            rack=config["client.rack"] or None,
        )
        self._names = TopicNameResolver(environment.client, metadata, subscriptions, self._names_arrived)
        self._subscription_changed = False
        self._commit_before: asyncio.Task[None] | None = None
        self._reconciling: LocalAssignment | None = None
        self._callback_interrupted: set[TopicPartition] = set()  # assigned, but the listener's callback was interrupted
        self._rebalance_began_ms: int | None = None
        self._reconcile_deadline_ms: int | None = None
        self._unresolved: LocalAssignment | None = None  # the target with topic ids whose names are missing
        metadata.on_update.append(lambda _cluster: self._names_arrived())

    # Polls

    def poll(self, now_ms: int) -> bool:
        self._heartbeat.polled(now_ms)
        state = self._member.state
        return (
            self._needs_attention(now_ms)
            or self._subscription_changed
            or state in (ConsumerMemberState.FENCED, ConsumerMemberState.STALE)
            or (state is ConsumerMemberState.RECONCILING and self._unresolved != self._member.target)
        )

    @property
    def need_rejoin(self) -> bool:
        return self._subscriptions.has_auto_assigned_partitions() and self._member.state is not ConsumerMemberState.STABLE

    async def join_if_needed(self, deadline_ms: int) -> bool:
        self._watch.look()
        self._heartbeat.polled(self._clock.monotonic_ms())
        reconciled = True
        if self._subscriptions.has_auto_assigned_partitions():
            await self._release_if_put_out()
            self._raise_failure()
            self._take_subscription()
            if self._member.state is ConsumerMemberState.RECONCILING:
                reconciled = await self._reconcile(deadline_ms)
        if reconciled:
            self._commits.auto_commit_if_due()
        return reconciled

    def on_subscription_change(self) -> None:
        self._subscription_changed = True

    def enforce_rebalance(self, reason: str | None) -> None:
        log.warning("Operation not supported in new consumer group protocol: the broker decides when to rebalance")

    # The identity of commits

    def commit_identity(self) -> Identity:
        return self._member.commit_identity() if self._subscriptions.has_auto_assigned_partitions() else NO_MEMBER

    def commit_refused(self, error: KafkaError, sent: Identity) -> KafkaError:
        return self._member.commit_refused(error)

    def fetch_identity(self) -> Identity:
        return self._member.fetch_identity() if self._subscriptions.has_auto_assigned_partitions() else NO_MEMBER

    # Towards the target

    def _take_subscription(self) -> None:
        self._subscription_changed = False
        if self._member.state is ConsumerMemberState.UNSUBSCRIBED:
            self._member.join()
        self._start_heartbeats()
        if self._member.has_news:
            self._heartbeat.hurry(self._clock.monotonic_ms())
            self._changed.set()

    async def _release_if_put_out(self) -> None:
        """Releases all partitions of a member that was fenced, or that left because the application did not poll."""
        if self._member.state not in (ConsumerMemberState.FENCED, ConsumerMemberState.STALE, ConsumerMemberState.FATAL):
            return
        problem = await self._let_go(lost=True)
        self._member.released()
        if self._member.state is not ConsumerMemberState.FATAL:
            self._member.join()
            self._heartbeat.forgive(self._clock.monotonic_ms())
            self._changed.set()
        if problem is not None:
            raise listener_error(problem)

    async def _let_go(self, *, lost: bool) -> Exception | None:
        """Releases all partitions; returns the listener's error."""
        await self._drop_commit()
        dropped = set(self._subscriptions.assigned_partitions())
        if not (dropped and self._subscriptions.has_auto_assigned_partitions()):
            return None
        problem = await (self._invoker.lost(dropped) if lost else self._invoker.revoked(dropped))
        self._subscriptions.assign_from_subscribed(())
        return problem

    async def _reconcile(self, deadline_ms: int) -> bool:
        """Reconciles with one target, for the topics whose names are known. False if the commit takes longer than the deadline."""
        target = self._reconciling or self._member.target  # a started reconciliation is finished first, because it has stopped fetches
        names, missing = self._names.of(target.partitions)
        reached = LocalAssignment(target.epoch, {topic_id: target.partitions[topic_id] for topic_id in names})
        self._unresolved = target if missing else None
        if self._member.current.epoch is not None and reached.partitions == self._member.current.partitions:
            if reached != self._member.current:
                self._acknowledge(reached)
            return True
        assigned = {TopicPartition(name, number) for topic_id, name in names.items() for number in target.partitions[topic_id]}
        owned = set(self._subscriptions.assigned_partitions())
        log.info("Reconciling: owned %s, assigned %s", sorted(map(str, owned)), sorted(map(str, assigned)))
        self._subscriptions.mark_pending_revocation(owned - assigned)
        self._reconciling = target
        if self._commits.auto_commit and not await self._commit_first(deadline_ms):
            return False
        self._reconcile_deadline_ms = None
        await self._revoke(owned - assigned)
        # The callback may take long, and the member may have been removed meanwhile.
        if self._member.state is ConsumerMemberState.RECONCILING:
            await self._assign(assigned, assigned - (owned - self._callback_interrupted))
        if self._member.state is ConsumerMemberState.RECONCILING:
            self._acknowledge(reached)
        self._reconciling = None
        return True

    async def _commit_first(self, deadline_ms: int) -> bool:
        """Commits before partitions are revoked, for at most the rebalance timeout."""
        if self._reconcile_deadline_ms is None:
            self._reconcile_deadline_ms = self._clock.monotonic_ms() + self._rebalance_timeout_ms
        if self._commit_before is None:
            self._commit_before = start(self._commits.auto_commit_sync(self._reconcile_deadline_ms))
        if not await wait_until(self._commit_before, deadline_ms, self._clock):
            return False
        self._commit_before = None
        return True

    async def _revoke(self, revoked: set[TopicPartition]) -> None:
        if not revoked:
            return
        problem = await self._invoker.revoked(revoked)
        if problem is not None:
            raise listener_error(problem)

    async def _assign(self, assigned: set[TopicPartition], added: set[TopicPartition]) -> None:
        self._subscriptions.assign_from_subscribed_awaiting_callback(sorted(assigned), added)
        self._callback_interrupted = added
        problem = await self._invoker.assigned(added)
        self._callback_interrupted = set()
        if problem is not None:
            raise listener_error(problem)
        self._subscriptions.enable_partitions_awaiting_callback(added & set(self._subscriptions.assigned_partitions()))
        self._commits.restart_auto_commit()

    def _acknowledge(self, reached: LocalAssignment) -> None:
        now_ms = self._clock.monotonic_ms()
        self._member.acknowledge(reached)
        self._heartbeat.hurry(now_ms)
        self._changed.set()
        self._metrics.rebalanced(now_ms - (self._rebalance_began_ms or now_ms), now_ms)
        self._rebalance_began_ms = None

    def _names_arrived(self) -> None:
        """Called when topic names arrive, perhaps some that a target lacks."""
        if self._unresolved is not None:
            self._unresolved = None
            self._wake()

    # Heartbeats

    async def _beat_once(self) -> None:
        self._changed.clear()
        now_ms = self._clock.monotonic_ms()
        if self._member.skips_heartbeats:
            await self._changed.wait()
        elif self._coordinator.node is None:
            await self._find_coordinator(now_ms)
        elif self._heartbeat.poll_expired(now_ms):
            log.warning(POLL_EXPIRED)
            await self._leave_until_polled()
        elif self._heartbeat.is_due(now_ms):
            self._heartbeat.sent(now_ms)
            self._metrics.heartbeat_sent(now_ms)
            start(self._send_heartbeat(now_ms, self._member.request()))
        else:
            await wait_for(self._changed, self._heartbeat.ms_to_anything(now_ms))

    async def _send_heartbeat(self, now_ms: int, request: ConsumerGroupHeartbeatRequest) -> None:
        try:
            response = await self._coordinator.send(ConsumerGroupHeartbeatRequest, lambda version: request, ConsumerGroupHeartbeatResponse)
        except KafkaError as problem:
            self._note_failure(problem)
        else:
            self._metrics.heartbeat_answered(self._clock.monotonic_ms() - now_ms)
            if response.error_code:
                self._note_refusal(error_for(response.error_code, response.error_message))
            else:
                self._note_answer(response)
        self._changed.set()

    def _note_answer(self, response: ConsumerGroupHeartbeatResponse) -> None:
        now_ms = self._clock.monotonic_ms()
        self._heartbeat.interval_ms = response.heartbeat_interval_ms
        self._heartbeat.received(now_ms)
        self._member.answered(response)
        if self._member.has_news:
            self._heartbeat.hurry(now_ms)
        if self._member.is_in_group and self._member.epoch > 0:
            member = self._member
            self._group_metadata = ConsumerGroupMetadata(self._group_id, member.epoch, member.member_id, member.instance_id)
        if self._member.state is ConsumerMemberState.RECONCILING:
            self._rebalance_began_ms = self._rebalance_began_ms or now_ms
            self._wake()

    def _note_failure(self, problem: KafkaError) -> None:
        if isinstance(problem, UnsupportedVersion):
            self._note_refusal(problem)
            return
        self._member.failed()
        self._heartbeat.failed(self._clock.monotonic_ms())
        if not problem.retriable:
            self._fail(problem)

    def _note_refusal(self, error: KafkaError) -> None:
        now_ms = self._clock.monotonic_ms()
        self._heartbeat.failed(now_ms)
        self._coordinator.note(error)
        result, application_error = self._member.refused(error)
        log.info("ConsumerGroupHeartbeat failed (%s): %s", result.value, error)
        if result is ConsumerHeartbeatResult.ELSEWHERE:
            self._heartbeat.forgive(now_ms)
        elif result is ConsumerHeartbeatResult.FENCED:
            self._wake()
        elif result is ConsumerHeartbeatResult.FATAL:
            self._metrics.rebalance_failed()
            self._fail(application_error)

    def _fail(self, problem: KafkaError) -> None:
        self._member.fail()
        super()._fail(problem)

    # Leaving

    async def _leave_until_polled(self) -> None:
        self._member.prepare_leaving()
        await self._send_leave(self._leave_epoch(DEFAULT), None, will_return=True)
        self._wake()

    async def leave(self, reason: str) -> None:
        await self._leave_group(DEFAULT, None)
        self._group_metadata = self._without_member()

    async def close(self, deadline_ms: int, operation: str = DEFAULT) -> None:
        try:
            await self._commit_for_good(deadline_ms)
        finally:
            await self._stop_heartbeats()
            try:
                await self._leave_group(operation, deadline_ms)
            finally:
                await self._drop_commit()
                await self._names.close()
                await self._end_tasks()

    async def _leave_group(self, operation: str, deadline_ms: int | None) -> None:
        if not self._member.is_in_group:
            problem = await self._let_go(lost=True)
            if self._member.state in (ConsumerMemberState.FENCED, ConsumerMemberState.STALE):
                self._member.left()
        else:
            knew = self._member.epoch > 0
            self._member.prepare_leaving()
            problem = await self._let_go(lost=not knew)
            remains = operation == REMAIN_IN_GROUP and self._member.instance_id is None
            if self._member.state is ConsumerMemberState.PREPARE_LEAVING:
                if not (remains or self._coordinator.is_unknown):
                    # Also without a heartbeat response: the coordinator may have added this member by the time the request arrives.
                    await self._send_leave(self._leave_epoch(operation), deadline_ms)
                else:
                    self._member.begin_leaving(LEAVE_EPOCH)
                    self._member.left()
        if problem is not None:
            raise listener_error(problem)

    def _leave_epoch(self, operation: str) -> int:
        return STATIC_LEAVE_EPOCH if self._member.instance_id is not None and operation != LEAVE_GROUP else LEAVE_EPOCH

    async def _send_leave(self, epoch: int, deadline_ms: int | None, *, will_return: bool = False) -> None:
        """Sends the leave heartbeat once. If the coordinator does not receive it, the session times out."""
        self._member.begin_leaving(epoch)
        request = self._member.request()
        self._member.left(will_return=will_return)
        timeout_ms = None if deadline_ms is None else max(1, deadline_ms - self._clock.monotonic_ms())
        try:
            response = await self._coordinator.send(
                ConsumerGroupHeartbeatRequest, lambda version: request, ConsumerGroupHeartbeatResponse, timeout_ms=timeout_ms
            )
            if response.error_code:
                log.error("Leaving the group failed: %s", error_for(response.error_code, response.error_message))
        except KafkaError as problem:
            log.info("Leaving the group failed: %s", problem)

    async def _drop_commit(self) -> None:
        if self._commit_before is not None:
            await end(self._commit_before)
            self._commit_before = None
        self._reconcile_deadline_ms = None
        self._reconciling = None
        self._callback_interrupted = set()
