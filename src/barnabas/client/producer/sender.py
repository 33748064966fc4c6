"""Sends the batches of the accumulator, grouped into one request per broker, and completes them with the responses.

The sender runs on the event loop without a task of its own. It is woken (`wakeup`) by new data, by responses and connections, and by a
timer for lingering, back-off and expiry. Each run sends the next request of the TransactionManager, if there is one, and then batches until
brokers are busy (max.in.flight.requests.per.connection) or nothing is ready. Failed batches return to the accumulator until retries or
delivery.timeout.ms are exhausted; meanwhile a partition is muted if the order depends on it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Final

from barnabas.client.clock import Clock
from barnabas.client.cluster import Node
from barnabas.client.errors import (
    AuthenticationError,
    ClusterAuthorization,
    Disconnected,
    Timeout,
    TransactionAborted,
    TransactionalIdAuthorization,
    error_for,
    refreshes_metadata,
)
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.client.producer.accumulator import NEVER_MS, RecordAccumulator
from barnabas.client.producer.batch import PENDING, ProducerBatch
from barnabas.client.producer.produce_answers import code_of, failure_of, record_errors
from barnabas.client.producer.producer_metrics import ProducerMetrics
from barnabas.client.producer.record import INVALID_OFFSET
from barnabas.client.producer.transactions.transaction_manager import TransactionManager
from barnabas.client.producer.transactions.transaction_requests import CoordinatorType, TransactionRequest
from barnabas.errors import KafkaError
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from barnabas.protocol.slices import Records
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

logger = logging.getLogger(__name__)

TOPIC_IDS_VERSION: Final = 13
TRANSACTION_V1_VERSION_MAX: Final = 11  # from version 12 on the broker adds partitions to transactions itself
_AFTER_FAULT_MS: Final = 100
_ROOM_CHECK_MS: Final = 10  # for a connection with full buffers, where no response will wake the sender


class SenderConfig:
    def __init__(self, *, acks: int, retries: int, request_timeout_ms: int, request_size_max: int, in_flight_max: int) -> None:
        self.acks = acks
        self.retries = retries
        self.request_timeout_ms = request_timeout_ms
        self.request_size_max = request_size_max
        self.in_flight_max = in_flight_max


class Sender:
    def __init__(
        self,
        config: SenderConfig,
        accumulator: RecordAccumulator,
        transactions: TransactionManager | None,
        client: NetworkClient,
        metadata: Metadata,
        metrics: ProducerMetrics,
        clock: Clock,
    ) -> None:
        self.config = config
        self._accumulator = accumulator
        self._transactions = transactions
        self._client = client
        self._metadata = metadata
        self._metrics = metrics
        self._clock = clock
        # Without idempotence, only one batch at a time keeps the order of a partition.
        self._keeps_order = config.in_flight_max == 1
        self._in_flight: dict[ProducerBatch, None] = {}
        self._requests_in_flight = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._call_soon: Callable[[Callable[[], None]], object] = lambda run: None
        self._timer: asyncio.TimerHandle | None = None
        self._woken = False
        self._process_id = os.getpid()
        self._closing = False
        self._forced = False
        self._finished: asyncio.Event | None = None

    # Life cycle, on the event loop

    def start(self, loop: asyncio.AbstractEventLoop, call_soon: Callable[[Callable[[], None]], object]) -> None:
        """`call_soon` schedules a call on the event loop from the threads of the application."""
        self._loop = loop
        self._call_soon = call_soon
        self._finished = asyncio.Event()
        self._client.on_ready.append(lambda node_id: self.wakeup_here())
        self._client.on_disconnect.append(lambda node_id, error: self.wakeup_here())
        self._metadata.on_update.append(lambda cluster: self.wakeup_here())
        self.wakeup_here()

    def wakeup(self) -> None:
        """Wakes the sender from any thread; costs nothing if a run is already scheduled."""
        if self._loop is None or (self._woken and self._process_id == os.getpid()):
            return
        self._woken = True
        self._call_soon(self._run)  # raises an error in a child process

    def wakeup_here(self) -> None:
        """Like `wakeup`, in the event loop's own thread."""
        if not self._woken and self._loop is not None:
            self._woken = True
            self._loop.call_soon(self._run)

    async def close(self, timeout_s: float | None) -> None:
        """Sends and completes all batches, then aborts an open transaction; after `timeout_s` all remaining batches fail."""
        assert self._finished is not None
        self._accumulator.close()
        self._closing = True
        self.wakeup_here()
        try:
            async with asyncio.timeout(timeout_s):
                await self._finished.wait()
        except TimeoutError:
            logger.info("Proceeding to force close the producer since pending requests could not be completed within the timeout.")
            self.force_close()

    def force_close(self) -> None:
        """Fails all remaining batches."""
        self._accumulator.close()
        self._forced = True
        if self._transactions is not None:
            self._transactions.close()
        self._accumulator.abort_batches(self._metadata.failures.error(KafkaError, "Producer is closed forcefully."))
        self._end()

    @property
    def requests_in_flight(self) -> int:
        return self._requests_in_flight

    def _run(self) -> None:
        self._woken = False
        if self._forced:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            delay_ms = self._run_once()
        except Exception:
            logger.exception("Uncaught error in kafka producer I/O")
            delay_ms = _AFTER_FAULT_MS
        if self._closing and self._is_done():
            self._end()
        elif delay_ms < NEVER_MS and self._loop is not None:
            self._timer = self._loop.call_later(max(delay_ms, 0) / 1000, self._run)

    def _is_done(self) -> bool:
        transactions = self._transactions
        if self._accumulator.has_undrained or self._requests_in_flight:
            return False
        if transactions is None or transactions.has_fatal_error:
            return True
        if transactions.in_flight is not None:
            return False
        if transactions.pending_request_count and transactions.has_ongoing_transaction:
            return False
        if transactions.has_ongoing_transaction and not transactions.is_completing:
            logger.info("Aborting incomplete transaction due to shutdown")
            try:
                transactions.begin_abort()
            except KafkaError:
                logger.error("Error while aborting transaction when closing", exc_info=True)
                return True
            self.wakeup_here()
            return False
        return not transactions.has_ongoing_transaction

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._finished is not None:
            self._finished.set()

    # One round

    def _run_once(self) -> int:
        """Does everything that is due; returns the milliseconds until the next run without a wakeup."""
        delay_ms = NEVER_MS
        if self._transactions is not None:
            transactions = self._transactions
            transactions.resolve_sequences()
            if transactions.has_fatal_error:
                self._abort_batches(transactions.last_error)
                return NEVER_MS
            if transactions.has_abortable_error and self._not_authorized(transactions):
                return 0
            transactions.ensure_producer_id()
            delay_ms = self._send_transactional(transactions)
            if transactions.has_fatal_error:
                self._abort_batches(transactions.last_error)
                return NEVER_MS
        return min(delay_ms, self._send_batches())

    def _abort_batches(self, error: KafkaError | None) -> None:
        if error is not None and self._accumulator.has_incomplete:
            logger.error("Aborting producer batches due to fatal error: %s", error)
            self._accumulator.abort_batches(error)

    def _not_authorized(self, transactions: TransactionManager) -> bool:
        """Handles missing authorization, which may be granted later: init_transactions can then be tried again."""
        error = transactions.last_error
        if not isinstance(error, TransactionalIdAuthorization | ClusterAuthorization):
            return False
        transactions.fail_pending_requests(AuthenticationError(str(error)))
        self._abort_batches(error)
        transactions.uninitialize(error)
        return True

    # Requests of the transaction manager

    def _send_transactional(self, transactions: TransactionManager) -> int:
        if transactions.in_flight is not None:
            return NEVER_MS
        if (transactions.has_abortable_error or transactions.is_aborting) and self._accumulator.has_incomplete:
            self._accumulator.abort_undrained(transactions.last_error or TransactionAborted("Failing batch since transaction was aborted"))
        now_ms = self._clock.monotonic_ms()
        while transactions.in_flight is None:
            waiting = transactions.pending_request_count
            request = transactions.next_request(self._accumulator.has_incomplete, now_ms)
            if request is None:
                if 0 < transactions.pending_request_count < waiting:
                    continue  # one was completed with an error; perhaps the next is, too
                return self._until(transactions.next_request_at_ms, now_ms)
            delay_ms = self._send_request(transactions, request)
            if delay_ms is not None:
                return delay_ms
        return NEVER_MS

    def _send_request(self, transactions: TransactionManager, request: TransactionRequest) -> int | None:
        """Sends the request or enqueues it again; None if the next request may be tried, otherwise the milliseconds until the next
        attempt."""
        kind = request.coordinator_type
        node = self._client.least_loaded_node() if kind is None else _id(transactions.coordinator(kind))
        if node is None:
            if kind is not None:
                transactions.look_up_coordinator(kind, request.coordinator_key)
                transactions.enqueue(request)
                return None
            request.retry()
            self._metadata.request_update(False)
            return request.retry_backoff_ms
        if not self._client.ready(node):
            return self._not_ready(transactions, request, node)
        if kind is CoordinatorType.TRANSACTION:
            transactions.coordinator_ready(self._client.version_of(node, api_keys.INIT_PRODUCER_ID))
        features = self._client.newest_features()
        if features is not None:
            transactions.features_seen(features.finalized, features.finalized_epoch)
        version = self._client.version_of(node, request.api_key)
        if version is None:
            request.fatal(UnsupportedVersion(f"The node does not support the API {request.api_key}"))
            return NEVER_MS
        if request.version_max is not None:
            version = min(version, request.version_max)
        transactions.in_flight = request
        message = request.message(version)
        sent = self._client.send_nowait(
            node, message, lambda response, error: self._answered(transactions, request, response, error), version=version
        )
        assert sent, "a node that is ready takes a request"
        return NEVER_MS

    def _not_ready(self, transactions: TransactionManager, request: TransactionRequest, node: int) -> int | None:
        refused = self._client.authentication_error(node)
        if refused is not None:
            transactions.enqueue(request)
            transactions.authentication_failed(refused)
            return None
        if self._client.connection_failed(node) and request.coordinator_type is not None:
            transactions.look_up_coordinator(request.coordinator_type, request.coordinator_key)
            request.retry()
            return None
        transactions.enqueue(request)
        if self._metadata.cluster.node_by_id(node) is None:
            self._metadata.request_update(False)
        return max(self._client.delay_ms(node), _ROOM_CHECK_MS)

    def _answered(
        self, transactions: TransactionManager, request: TransactionRequest, response: Message | None, error: KafkaError | None
    ) -> None:
        with transactions.lock:
            transactions.in_flight = None
            if self._forced:
                return
            if response is not None:
                request.handle(response)
            elif isinstance(error, Disconnected | Timeout):
                request.disconnected()
            else:
                request.fatal(error or KafkaError("Could not execute transactional request for unknown reasons"))
        self.wakeup_here()

    def _until(self, at_ms: int | None, now_ms: int) -> int:
        """The wait until `at_ms`; a request whose time has come waits for an event that wakes the sender."""
        return NEVER_MS if at_ms is None or at_ms <= now_ms else at_ms - now_ms

    # Batches

    def _send_batches(self) -> int:
        accumulator = self._accumulator
        while True:
            now_ms = self._clock.monotonic_ms()
            cluster = self._metadata.cluster
            check = accumulator.ready(cluster, now_ms)
            if check.unknown_leader_topics:
                for topic in check.unknown_leader_topics:
                    self._metadata.add(topic)
                self._metadata.request_update(False)
            delay_ms = int(check.next_check_ms)
            nodes = []
            for node in check.nodes:
                can_send = self._client.ready(node)
                accumulator.node_checked(node, now_ms, can_send)
                if can_send:
                    nodes.append(node)
                else:
                    delay_ms = min(delay_ms, self._retry_node_in_ms(node))
            drained = accumulator.drain(cluster, nodes, self.config.request_size_max, now_ms) if nodes else {}
            for batches in drained.values():
                for batch in batches:
                    self._in_flight[batch] = None
                    if self._keeps_order:
                        accumulator.mute(batch.topic_partition, True)
            self._expire(now_ms)
            for node, batches in drained.items():
                self._send_produce(node, [batch for batch in batches if batch.state == PENDING], now_ms)
            if not drained:
                return min(
                    delay_ms, max(int(accumulator.next_expiry_ms) - now_ms, 0) if accumulator.next_expiry_ms < NEVER_MS else NEVER_MS
                )

    def _retry_node_in_ms(self, node: int) -> int:
        """The wait for a back-off, a quota or full buffers; responses and new connections wake the sender themselves."""
        delay_ms = self._client.delay_ms(node)
        if delay_ms > 0:
            return delay_ms
        if self._client.version_of(node, api_keys.PRODUCE) is None or self._client.in_flight_count(node) > 0:
            return NEVER_MS
        return _ROOM_CHECK_MS

    def _expire(self, now_ms: int) -> None:
        accumulator = self._accumulator
        accumulator.next_expiry_ms = NEVER_MS
        expired = [batch for batch in self._in_flight if accumulator.has_expired(batch, now_ms)]
        for batch in self._in_flight:
            accumulator.expires_later(batch)
        expired += accumulator.expired(now_ms)
        for batch in expired:
            waited_ms = now_ms - int(batch.created_ms)
            self._fail(
                batch,
                self._metadata.failures.timeout(
                    f"Expiring {batch.count} record(s) for {batch.topic_partition}:{waited_ms} ms has passed since batch creation"
                ),
                adjust_sequences=False,
            )
            if self._transactions is not None and batch.has_sequence:
                self._transactions.identity.mark_unresolved(batch)

    def _send_produce(self, node: int, batches: list[ProducerBatch], now_ms: int) -> None:
        if not batches:
            return
        version = self._client.version_of(node, api_keys.PRODUCE)
        names: dict[Uuid, str] = {}
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            topic, partition = batch.topic_partition
            data = topics.get(topic)
            if data is None:
                self._metadata.add(topic)  # keeps the topic from expiring
                topic_id = self._metadata.cluster.topic_id(topic)
                data = topics[topic] = TopicProduceData(topic, topic_id)
                names[topic_id] = topic
            data.partition_data.append(PartitionProduceData(partition, Records(batch.data())))
        transactions = self._transactions
        transactional_id = None if transactions is None else transactions.transactional_id
        if version is not None:
            if Uuid.ZERO in names:
                version = min(version, TOPIC_IDS_VERSION - 1)
            if transactions is not None and transactions.is_transactional and not transactions.is_version_2:
                version = min(version, TRANSACTION_V1_VERSION_MAX)
        request = ProduceRequest(transactional_id, self.config.acks, self.config.request_timeout_ms, list(topics.values()))
        sent_ms = now_ms
        self._requests_in_flight += 1
        self._metrics.request_sent(batches, now_ms)

        def done(response: Message | None, error: KafkaError | None) -> None:
            self._produced(node, batches, names, sent_ms, response, error)

        if not self._client.send_nowait(node, request, done, version=version):
            done(None, Disconnected(f"Disconnected from node {node}"))

    # Responses to Produce

    def _produced(
        self,
        node: int,
        batches: list[ProducerBatch],
        names: dict[Uuid, str],
        sent_ms: int,
        response: Message | None,
        error: KafkaError | None,
    ) -> None:
        self._requests_in_flight -= 1
        now_ms = self._clock.monotonic_ms()
        if error is not None:
            code, message = code_of(error, node)
            for batch in batches:
                self._settle(batch, PartitionProduceResponse(error_code=code, base_offset=INVALID_OFFSET, error_message=message), now_ms)
        elif response is None:
            for batch in batches:
                self._settle(batch, PartitionProduceResponse(base_offset=INVALID_OFFSET), now_ms)
        else:
            assert isinstance(response, ProduceResponse)
            self._metrics.request_latency.record(now_ms - sent_ms, now_ms)
            self._metrics.throttle_time.record(response.throttle_time_ms, now_ms)
            self._take_response(batches, names, response, now_ms)
        self.wakeup_here()

    def _take_response(self, batches: list[ProducerBatch], names: dict[Uuid, str], response: ProduceResponse, now_ms: int) -> None:
        waiting = {batch.topic_partition: batch for batch in batches}
        leaders: dict[TopicPartition, tuple[int, int]] = {}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for answer in topic.partition_responses:
                batch = waiting.pop(TopicPartition(name, answer.index), None)
                if batch is None:
                    continue
                leader = answer.current_leader
                if leader is not None and answer.error_code in _NEW_LEADER and leader.leader_id != -1 and leader.leader_epoch != -1:
                    leaders[batch.topic_partition] = (leader.leader_id, leader.leader_epoch)
                self._settle(batch, answer, now_ms)
        for batch in waiting.values():
            missing = PartitionProduceResponse(
                error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
                base_offset=INVALID_OFFSET,
                error_message="The response did not contain the partition.",
            )
            self._settle(batch, missing, now_ms)
        if leaders:
            nodes = [Node(end.node_id, end.host, end.port, end.rack) for end in response.node_endpoints]
            self._metadata.update_partition_leadership(leaders, nodes)

    def _settle(self, batch: ProducerBatch, answer: PartitionProduceResponse, now_ms: int) -> None:
        """Handles the response for one batch: completes it, retries it, splits it and retries the parts, or fails it."""
        code = answer.error_code
        if code == ErrorCode.NONE:
            self._complete(batch, answer)
        elif code == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1 and batch.state == PENDING:
            logger.warning("The batch of %d records for %s is too large: it is split and sent again", batch.count, batch.topic_partition)
            self._split(batch)
        elif self._can_retry(batch, answer, now_ms):
            logger.warning(
                "Got error produce response on topic-partition %s, retrying (%d attempts left). Error: %s",
                batch.topic_partition,
                self.config.retries - batch.attempts - 1,
                error_for(code, answer.error_message),
            )
            self._in_flight.pop(batch, None)
            self._accumulator.reenqueue(batch, now_ms)
            self._metrics.batch_retried(batch, now_ms)
        elif code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # The batch was written earlier, and the broker no longer knows its offset.
            self._complete(batch, answer)
        else:
            # When the retries are exhausted it is unknown whether a broker has written the batch: its sequences stay used.
            self._fail(batch, failure_of(batch, answer), batch.attempts < self.config.retries, record_errors(batch, answer))
        if code != ErrorCode.NONE and refreshes_metadata(error_for(code)):
            self._metadata.request_update(False)
        if self._keeps_order:
            self._accumulator.mute(batch.topic_partition, False)

    def _complete(self, batch: ProducerBatch, answer: PartitionProduceResponse) -> None:
        if self._transactions is not None:
            self._transactions.identity.batch_completed(batch, answer.base_offset)
        self._in_flight.pop(batch, None)
        if batch.complete(answer.base_offset, answer.log_append_time_ms):
            self._accumulator.deallocate(batch)

    def _split(self, batch: ProducerBatch) -> None:
        if self._transactions is not None:
            self._transactions.identity.remove_in_flight(batch)
        self._accumulator.split_and_reenqueue(batch)
        self._in_flight.pop(batch, None)
        self._accumulator.deallocate(batch)
        self._metrics.split.record()

    def _can_retry(self, batch: ProducerBatch, answer: PartitionProduceResponse, now_ms: int) -> bool:
        if batch.state != PENDING or batch.attempts >= self.config.retries or self._accumulator.has_expired(batch, now_ms):
            return False
        if self._transactions is not None:
            return self._transactions.identity.can_retry(batch, answer.error_code, answer.log_start_offset)
        return error_for(answer.error_code).retriable

    def _fail(
        self, batch: ProducerBatch, error: KafkaError, adjust_sequences: bool, record_errors: dict[int, KafkaError] | None = None
    ) -> None:
        self._in_flight.pop(batch, None)
        self._metrics.batch_failed(batch, self._clock.monotonic_ms())
        if batch.fail(error, record_errors):
            if self._transactions is not None:
                try:
                    self._transactions.batch_failed(batch, error, adjust_sequences)
                except KafkaError:
                    logger.debug("The transaction manager could not handle the failed batch", exc_info=True)
            self._accumulator.deallocate(batch)


def _id(node: Node | None) -> int | None:
    return None if node is None else node.id


_NEW_LEADER: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
