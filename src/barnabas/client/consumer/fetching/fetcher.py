"""Fetches records of the assigned partitions and buffers them until a poll takes them.

Everything here runs on the event loop. There is at most one fetch in flight to each broker. The next one is sent as soon as the buffer has
room for it, so that records are available before a poll needs them: while a poll waits, or after a poll has consumed a fetch. No fetch is
sent to a broker while a partition of it has enough buffered: that partition would have to be left out, and a fetch that waits for records
of the others would delay it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from barnabas.client.clock import Clock
from barnabas.client.cluster import COORDINATOR_IDS, Node
from barnabas.client.consumer.config import FetchConfig
from barnabas.client.consumer.fetching.completed_fetch import CompletedFetch
from barnabas.client.consumer.fetching.fetch_buffer import FetchBuffer
from barnabas.client.consumer.fetching.fetch_metrics import FetchMetrics
from barnabas.client.consumer.fetching.fetch_session import VERSION_MAX_BY_NAME, FetchPlan, FetchSessionHandler, PartitionToFetch
from barnabas.client.consumer.offsets.partition_state import FetchPosition
from barnabas.client.consumer.offsets.subscription_state import SubscriptionState
from barnabas.client.errors import AuthenticationError, error_for
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.errors import KafkaError
from barnabas.protocol.api_keys import FETCH
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import FetchResponse, PartitionData
from barnabas.topic_partition import TopicPartition

_log: Final = logging.getLogger(__name__)

# The leader or the known metadata has changed: metadata is requested again, and the partition is retried after the back-off.
_REFRESH: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
# Temporary errors that need no action.
_WAIT: Final = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR})
# The next fetch opens a new session, and may do so at once.
_SESSION_LOST: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR}
)
_NEW_LEADER: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class Fetcher:
    """`on_progress` is called when a waiting poll should check again."""

    def __init__(
        self,
        config: FetchConfig,
        network: NetworkClient,
        metadata: Metadata,
        subscriptions: SubscriptionState,
        buffer: FetchBuffer,
        metrics: FetchMetrics,
        *,
        clock: Clock,
        retry_backoff_ms: int,
        on_progress: Callable[[], None],
    ) -> None:
        self._config = config
        self._network = network
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._buffer = buffer
        self._metrics = metrics
        self._clock = clock
        self._retry_backoff_ms = retry_backoff_ms
        self._on_progress = on_progress
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._in_flight: set[int] = set()
        self._retry_at_ms: dict[TopicPartition, int] = {}
        self._assignment_id = -1
        self._problem: KafkaError | None = None
        self._closed = False
        network.on_ready.append(self._node_ready)

    def send_fetches(self) -> int:
        """Sends all fetches that may be sent now; returns their number."""
        if self._closed:
            return 0
        self._follow_assignment()
        with self._subscriptions.lock:
            requests = self._requests_by_node()
        sent = 0
        for node_id, partitions in requests.items():
            sent += self._send(node_id, partitions)
        return sent

    @property
    def has_fetch_in_flight(self) -> bool:
        return bool(self._in_flight)

    def retry_in_ms(self) -> int | None:
        """The time until a failed partition may be fetched again; None if there is none."""
        return max(0, min(self._retry_at_ms.values()) - self._clock.monotonic_ms()) if self._retry_at_ms else None

    async def close(self, timeout_ms: int) -> None:
        """Closes the fetch sessions at the brokers, as far as the timeout allows; also while a fetch is in flight."""
        self._closed = True
        closings = []
        for node_id, session in self._sessions.items():
            through = self._free_connection(node_id)
            if session.session_id != 0 and self._network.is_ready(through):
                session.close()
                closings.append(self._network.send(through, self._request(session.build({})), timeout_ms=timeout_ms))
        if closings:
            await asyncio.wait([asyncio.ensure_future(_quietly(closing)) for closing in closings], timeout=timeout_ms / 1000)

    def _free_connection(self, node_id: int) -> int:
        """The connection with the fastest response: a request after a fetch on the same connection may wait for fetch.max.wait.ms."""
        own = COORDINATOR_IDS - node_id
        return own if node_id in self._in_flight and self._network.is_ready(own) else node_id

    def raise_problem(self) -> None:
        """Raises a permanent error of a fetch: a request that a broker rejected (raised once), or a failed authentication."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        for state in self._subscriptions.assignment.values():
            if state.position is not None and state.position.leader_id >= 0:
                error = self._network.authentication_error(state.position.leader_id)
                if error is not None:
                    raise error

    # Requests

    def _node_ready(self, node_id: int) -> None:
        if not self._closed and self._subscriptions.assignment:
            self._on_progress()

    def _follow_assignment(self) -> None:
        if self._assignment_id != self._subscriptions.assignment_id:
            with self._subscriptions.lock:
                self._assignment_id = self._subscriptions.assignment_id
                assigned = self._subscriptions.assigned_partitions()
                self._buffer.retain(assigned)
            self._metrics.retain(assigned)
            self._retry_at_ms = {partition: at_ms for partition, at_ms in self._retry_at_ms.items() if partition in assigned}

    def _requests_by_node(self) -> dict[int, dict[TopicPartition, PartitionToFetch]]:
        now_ms = self._clock.monotonic_ms()
        cluster = self._metadata.cluster
        requests: dict[int, dict[TopicPartition, PartitionToFetch]] = {}
        full: set[int] = set()
        if self._buffer.size_bytes >= self._config.max_bytes > 0:
            return requests
        for partition, state in self._subscriptions.assignment.items():
            position = state.position
            if position is None or not state.is_fetchable or not self._may_retry(partition, now_ms):
                continue
            if position.leader_id < 0:
                position = self._with_leader(partition)
                if position is None:
                    continue
            node_id = self._read_replica(partition, position.leader_id, now_ms)
            if node_id in self._in_flight:
                continue
            if self._buffer.is_full_for(partition):
                full.add(node_id)
                continue
            requests.setdefault(node_id, {})[partition] = PartitionToFetch(
                cluster.topic_id(partition.topic),
                self._buffer.next_offset(partition, position.offset),
                self._config.partition_max_bytes,
                position.leader_epoch,
            )
        return {node_id: partitions for node_id, partitions in requests.items() if node_id not in full}

    def _may_retry(self, partition: TopicPartition, now_ms: int) -> bool:
        at_ms = self._retry_at_ms.get(partition)
        if at_ms is not None and now_ms < at_ms:
            return False
        self._retry_at_ms.pop(partition, None)
        return True

    def _with_leader(self, partition: TopicPartition) -> FetchPosition | None:
        """The position with the current leader of the metadata; None while there is no leader, or while the position must be validated
        first."""
        current = self._metadata.current_leader(partition)
        if current.leader is None:
            self._metadata.request_update(False)
            return None
        self._subscriptions.maybe_validate_position(partition, current.leader.id, current.epoch)
        return self._subscriptions.valid_position(partition)

    def _read_replica(self, partition: TopicPartition, leader_id: int, now_ms: int) -> int:
        preferred = self._subscriptions.preferred_read_replica(partition, now_ms)
        if preferred is None:
            return leader_id
        if self._metadata.cluster.node_if_online(partition, preferred) is not None:
            return preferred
        self._subscriptions.clear_preferred_read_replica(partition)
        self._metadata.request_update(False)
        return leader_id

    def _send(self, node_id: int, partitions: dict[TopicPartition, PartitionToFetch]) -> bool:
        if not self._network.ready(node_id):  # starts to connect; on_ready is called when that is done
            return False
        session = self._sessions.setdefault(node_id, FetchSessionHandler(node_id))
        plan = session.build(partitions)
        version = self._network.version_of(node_id, FETCH)
        if version is not None and not plan.can_use_topic_ids:
            version = min(version, VERSION_MAX_BY_NAME)
        self._in_flight.add(node_id)
        sent_ms = self._clock.monotonic_ms()

        def done(response: Message | None, error: KafkaError | None) -> None:
            self._in_flight.discard(node_id)
            if self._closed:
                return
            if isinstance(response, FetchResponse) and version is not None:
                self._fetched(session, plan, response, version, sent_ms)
            elif error is not None:
                self._failed(session, error)

        # If there is no common version, the network client raises the error.

        sent = self._network.send_nowait(node_id, self._request(plan), done, version=version)
        if not sent:
            self._in_flight.discard(node_id)
            session.handle_error()
        return sent

    def _request(self, plan: FetchPlan) -> FetchRequest:
        config = self._config
        return plan.fill(
            FetchRequest(
                replica_id=-1,
                max_wait_ms=config.max_wait_ms,
                min_bytes=config.min_bytes,
                max_bytes=config.max_bytes,
                isolation_level=1 if config.read_committed else 0,
                rack_id=config.client_rack,
            )
        )

    # Responses

    def _failed(self, session: FetchSessionHandler, error: KafkaError) -> None:
        _log.info("Error sending fetch request to node %s: %s", session.node_id, error)
        session.handle_error()
        self._try_later(session, error)
        self._metadata.request_update(False)
        self._on_progress()

    def _try_later(self, session: FetchSessionHandler, error: KafkaError) -> None:
        """Retries after the back-off; a permanent error is also raised to the application."""
        if not error.retriable and not isinstance(error, AuthenticationError) and error.code not in _WAIT:
            self._problem = error
        retry_at_ms = self._clock.monotonic_ms() + self._retry_backoff_ms
        for partition in session.partitions:
            self._subscriptions.clear_preferred_read_replica(partition)
            self._retry_at_ms[partition] = retry_at_ms

    def _fetched(self, session: FetchSessionHandler, plan: FetchPlan, response: FetchResponse, version: int, sent_ms: int) -> None:
        if not session.handle_response(response, version):
            if response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                self._metadata.request_update(False)
            elif response.error_code not in _SESSION_LOST:
                self._try_later(session, error_for(response.error_code))
            self._on_progress()
            return
        answered = session.answered_partitions(response, version) or {}
        sizes: dict[str, int] = {}
        leaders: dict[TopicPartition, tuple[int, int]] = {}
        with self._subscriptions.lock:
            for partition, data in answered.items():
                requested = plan.session_partitions.get(partition)
                if requested is None:
                    continue
                if data.records is not None:
                    sizes[partition.topic] = sizes.get(partition.topic, 0) + data.records.size
                leader = data.current_leader
                if data.error_code in _NEW_LEADER and leader is not None and leader.leader_id >= 0 and leader.leader_epoch >= 0:
                    leaders[partition] = (leader.leader_id, leader.leader_epoch)
                self._take_in(partition, requested, data)
        if leaders:
            self._follow_leaders(leaders, response)
        self._metrics.fetched(sizes, self._clock.monotonic_ms() - sent_ms, response.throttle_time_ms)
        if any(sizes.values()):
            self.send_fetches()
        self._on_progress()

    def _take_in(self, partition: TopicPartition, requested: PartitionToFetch, data: PartitionData) -> None:
        state = self._subscriptions.state_or_none(partition)
        if state is None or not state.has_valid_position or state.position is None:
            return  # revoked or reset while the fetch was in flight
        expected = self._buffer.next_offset(partition, state.position.offset)
        if expected != requested.fetch_offset:
            _log.debug("Discarding stale fetch response for partition %s at offset %s", partition, requested.fetch_offset)
            return
        if data.error_code in _REFRESH or data.error_code in _WAIT:
            self._put_off(partition, data.error_code)
            return
        if data.error_code == 0:
            if data.high_watermark >= 0:
                state.high_watermark = data.high_watermark
                state.end_offset_requested = False
            if data.log_start_offset >= 0:
                state.log_start_offset = data.log_start_offset
            if data.last_stable_offset >= 0:
                state.last_stable_offset = data.last_stable_offset
            if data.preferred_read_replica >= 0:
                until_ms = self._clock.monotonic_ms() + self._config.metadata_max_age_ms
                self._subscriptions.update_preferred_read_replica(partition, data.preferred_read_replica, until_ms)
            if data.records is None or data.records.size == 0:
                return
        aborted = [(transaction.producer_id, transaction.first_offset) for transaction in data.aborted_transactions or ()]
        fetch = CompletedFetch(partition.topic, partition.partition, requested.fetch_offset, data.records, aborted, data.error_code)
        self._buffer.add(partition, fetch)

    def _put_off(self, partition: TopicPartition, error_code: int) -> None:
        _log.debug("Error in fetch for partition %s: %s", partition, error_code)
        self._retry_at_ms[partition] = self._clock.monotonic_ms() + self._retry_backoff_ms
        if error_code in _REFRESH:
            self._subscriptions.clear_preferred_read_replica(partition)
            self._metadata.request_update(False)

    def _follow_leaders(self, leaders: dict[TopicPartition, tuple[int, int]], response: FetchResponse) -> None:
        """Uses the new leaders in the response (KIP-951), without a Metadata request."""
        nodes = [Node(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) for endpoint in response.node_endpoints]
        for partition in self._metadata.update_partition_leadership(leaders, nodes):
            current = self._metadata.current_leader(partition)
            if current.leader is not None:
                self._retry_at_ms.pop(partition, None)
                self._subscriptions.maybe_validate_position(partition, current.leader.id, current.epoch)

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Drops the buffered data of partitions after a seek. Called in the caller's thread."""
        with self._subscriptions.lock:
            for partition in partitions:
                self._buffer.drop(partition)


async def _quietly(closing: Awaitable[Message]) -> None:
    try:
        await closing
    except KafkaError as error:
        _log.debug("Unable to close a fetch session: %s", error)
