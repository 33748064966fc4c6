# Compiled by mypyc: src/compiled.toml lists this module.
"""Produce: appends the records of a client to the logs of partitions.

Each partition has its own result. The broker responds when the replicas that `acks` requires have the records. With acks=0 the client
expects no response: an error closes the connection, which is the only way to report it. The records themselves are not decoded here.

Authorization
- WRITE on each topic. A denied topic has the error TOPIC_AUTHORIZATION_FAILED whether it exists or not.
- WRITE on the transactional id, if a batch is transactional. If it is denied, every partition has the error
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.partitions.append_call import AppendCall, Order
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.requests.current_leader import current_leader
from barnabas.broker.requests.reply import Reply
from barnabas.broker.scheduling.turns import slices
from barnabas.broker.transactions.transaction_verification import of_produce
from barnabas.broker.transactions.transactional_produce import ATTRIBUTES_AT, TransactionalProduce, is_transactional
from barnabas.coordinator.gather import Gather
from barnabas.errors import CorruptRecord, InvalidProducerIdMapping, InvalidRecord, KafkaError, UnsupportedCompressionType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.slices import Records
from barnabas.records.batch import (
    CODEC_MASK,
    HEADER_SIZE_V2,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAGIC_V2,
    RECORD_OVERHEAD_V0,
    entry_size,
)
from barnabas.records.codecs.compression import ZSTD
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.network.exchange import Peer

_log = logging.getLogger(__name__)

PARTS: Final = Parts(("topic_data", "partition_data"), ("responses", "partition_responses"))
ADMIN_CLIENT: Final = "__admin_client"  # the client id of Kafka's own tools, which alone may write to internal topics

# The version that introduced each.
_ONE_BATCH_OF_V2: Final = 3
_ZSTD: Final = 7
_CURRENT_LEADER: Final = 10
_TOPIC_IDS: Final = 13

_UNKNOWN_TOPIC_OR_PARTITION: Final = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_UNKNOWN_TOPIC_ID: Final = int(ErrorCode.UNKNOWN_TOPIC_ID)
_TOPIC_AUTHORIZATION_FAILED: Final = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
_NOT_LEADER_OR_FOLLOWER: Final = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def handle(broker: Broker, request: Request[ProduceRequest]) -> Reply[ProduceResponse]:
    """Transactional records are appended after the transaction coordinator has verified the partition. The log rejects unverified ones."""
    message = request.message
    reply = _ProduceReply(broker, request)
    if _needs_check(broker, message) and _has_transactional_records(message) and not _may_write_transactions(broker, request):
        reply.refuse_all(_TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return reply
    entries = reply.take_entries(message)
    if not entries:
        reply.send()
    elif message.transactional_id is not None:
        _append_in_transaction(broker, request, message.transactional_id, entries, reply)
    else:
        broker.replica_manager.append_records(_call(request, entries, reply.appended, request.exchange))
    return reply


def handle_many(broker: Broker, request: Request[ProduceRequest]) -> Reply[ProduceResponse]:
    """As `handle`, for many partitions: some in each turn of the loop. The records of a transaction are verified as a whole."""
    reply = _ProduceReply(broker, request)
    reply.awaitable = _append_many(broker, request, reply)
    return reply


def _needs_check(broker: Broker, message: ProduceRequest) -> bool:
    """Whether transactional records would be refused, or are subject to authorization."""
    return message.transactional_id is None or not broker.access.is_open


def _may_write_transactions(broker: Broker, request: Request[ProduceRequest]) -> bool:
    """Whether the client may write transactional records with the transactional id of the request."""
    transactional_id = request.message.transactional_id
    if transactional_id is None:
        return False
    return broker.access.allows(request, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)


async def _append_many(broker: Broker, request: Request[ProduceRequest], reply: _ProduceReply) -> None:
    message, turns = request.message, broker.turns
    transactional = False
    entries: list[tuple[TopicPartition, Records]] = []
    for part in PARTS.of(message):
        await turns.next(request)
        assert isinstance(part, ProduceRequest)
        transactional = transactional or _has_transactional_records(part)
        entries.extend(reply.take_entries(part))
    if transactional and not _may_write_transactions(broker, request):
        reply.refuse_all(_TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not entries:
        await turns.next(request)
        reply.send()
    elif message.transactional_id is not None:
        _append_in_transaction(broker, request, message.transactional_id, entries, reply)
    else:
        await _append_in_slices(broker, request, entries, reply)


async def _append_in_slices(
    broker: Broker, request: Request[ProduceRequest], entries: list[tuple[TopicPartition, Records]], reply: _ProduceReply
) -> None:
    """Each slice waits for its replicas by itself. The next request of the connection is not handled before the last slice is appended."""
    order = _HeldAsAWhole(request.connection)
    parts = list(slices(entries))
    gather: Gather[list[PartitionAppend]] = Gather(len(parts), lambda results: reply.appended(list(chain.from_iterable(results))))
    for index, part in enumerate(parts):
        await broker.turns.next(request)
        broker.replica_manager.append_records(_call(request, part, gather.slot(index), order))
    gather.all_asked()


def _call(
    request: Request[ProduceRequest],
    entries: list[tuple[TopicPartition, Records]],
    on_done: Callable[[list[PartitionAppend]], None],
    order: Order,
) -> AppendCall:
    return AppendCall(
        entries,
        on_done,
        timeout_ms=request.message.timeout_ms,
        required_acks=request.message.acks,
        internal_topics_allowed=request.client_id == ADMIN_CLIENT,
        order=order,
    )


class _HeldAsAWhole:
    """The `Order` of a request in slices: the dispatcher holds the next request until the response, so no slice holds or releases it."""

    __slots__ = ("connection",)

    def __init__(self, connection: Peer) -> None:
        self.connection = connection

    def hold_next(self) -> None: ...

    def release_next(self) -> None: ...


def _append_in_transaction(
    broker: Broker,
    request: Request[ProduceRequest],
    transactional_id: str,
    entries: list[tuple[TopicPartition, Records]],
    reply: _ProduceReply,
) -> None:
    call = _call(request, entries, reply.appended, request.exchange)
    produce = TransactionalProduce(broker.replica_manager, of_produce(request.version), call)
    try:
        produce.begin(broker.verification, transactional_id)
    except InvalidProducerIdMapping as error:
        reply.refuse_all(error.code, str(error))


class _ProduceReply(Reply[ProduceResponse]):
    """The response as it grows: one part for each partition, in the order of the request. `_waiting` are the parts whose records are
    being appended."""

    __slots__ = ("_broker", "_produce", "_produced", "_waiting")

    def __init__(self, broker: Broker, request: Request[ProduceRequest]) -> None:
        super().__init__(request)
        self._broker = broker
        self._produce = request.message
        self._produced = ProduceResponse()
        self._waiting: list[PartitionProduceResponse] = []

    def take_entries(self, message: ProduceRequest) -> list[tuple[TopicPartition, Records]]:
        """The entries of the request, or of a part of it, that can be appended. The other partitions get their errors here."""
        access = self._broker.access
        entries: list[tuple[TopicPartition, Records]] = []
        for topic in message.topic_data:
            name = self._name_of(topic)
            response = self._response_of(topic)
            is_denied = name is not None and not access.is_open and not self._may_write(name)
            for data in topic.partition_data:
                part = PartitionProduceResponse(data.index, 0, -1)
                response.partition_responses.append(part)
                if is_denied:
                    part.error_code = _TOPIC_AUTHORIZATION_FAILED
                    continue
                partition = None if name is None else self._broker.metadata_cache.partition_key(name, data.index)
                if partition is None:
                    part.error_code = _UNKNOWN_TOPIC_ID if name is None else _UNKNOWN_TOPIC_OR_PARTITION
                    continue
                self._check(part, partition, topic, data)
                if part.error_code == 0 and data.records is not None:
                    entries.append((partition, data.records))
                    self._waiting.append(part)
        return entries

    def _may_write(self, topic: str) -> bool:
        return self._broker.access.allows(self.request, AclOperation.WRITE, ResourceType.TOPIC, topic)

    def _response_of(self, topic: TopicProduceData) -> TopicProduceResponse:
        """The response of a topic: a new one, unless the part before ended with the same topic."""
        responses = self._produced.responses
        if responses and (last := responses[-1]).name == topic.name and last.topic_id == topic.topic_id:
            return last
        response = TopicProduceResponse(topic.name, topic.topic_id)
        responses.append(response)
        return response

    def _name_of(self, topic: TopicProduceData) -> str | None:
        if self.request.version < _TOPIC_IDS:
            return topic.name
        return self._broker.metadata_cache.topic_name(topic.topic_id)

    def _check(
        self, part: PartitionProduceResponse, partition: TopicPartition, topic: TopicProduceData, data: PartitionProduceData
    ) -> None:
        version = self.request.version
        try:
            validate_records(version, data.records)
            if version >= _TOPIC_IDS and self._broker.replica_manager.partition(partition) is not None:
                self._broker.replica_manager.partition_or_raise(partition, topic.topic_id)
        except CorruptRecord as error:
            part.error_code = error.code
            part.error_message = None if data.records is None else _fault_in(data.records)
        except KafkaError as error:
            part.error_code = error.code

    def appended(self, results: list[PartitionAppend]) -> None:
        for at, part in enumerate(self._waiting):
            result = results[at]
            part.error_code = result.error
            part.base_offset = result.base_offset
            part.log_append_time_ms = result.log_append_time
            part.log_start_offset = result.log_start_offset
            part.error_message = result.error_message
            if result.record_errors:
                part.record_errors = [BatchIndexAndErrorMessage(index, message) for index, message in result.record_errors]
        self.send()

    def refuse_all(self, error: int, message: str | None = None) -> None:
        """Answers every partition with the same error, whatever results it had before."""
        self._produced.responses = [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [PartitionProduceResponse(data.index, error, -1, error_message=message) for data in topic.partition_data],
            )
            for topic in self._produce.topic_data
        ]
        self.send()

    def send(self) -> None:
        if self._broker.quotas.produce.is_in_use:
            self._charge()
        failed = [(topic, part) for topic in self._produced.responses for part in topic.partition_responses if part.error_code != 0]
        if self._produce.acks == 0:
            self._end_without_response(failed)
            return
        if failed and self.request.version >= _CURRENT_LEADER:
            self._name_leaders(failed)
        self.complete(self._produced)

    def _charge(self) -> None:
        """Charges the request to the quota of the client, whatever its acks and its errors."""
        request, monotonic_ms = self.request, self._broker.clock.monotonic_ms()
        quota = self._broker.quotas.produce
        throttle_ms = quota.record(request.session.principal, request.client_id, request.exchange.size, monotonic_ms)
        if throttle_ms > 0:
            request.throttle(throttle_ms, monotonic_ms)
            self._produced.throttle_time_ms = throttle_ms

    def _end_without_response(self, failed: list[tuple[TopicProduceResponse, PartitionProduceResponse]]) -> None:
        if not failed:
            self.complete_without_response()
            return
        _log.info(
            "Closing connection due to error during produce request with correlation id %d from client id %s with ack=0. Errors: %s",
            self.request.correlation_id,
            self.request.client_id,
            ", ".join(f"{topic.name or topic.topic_id}-{part.index}: {part.error_code}" for topic, part in failed),
        )
        self.close_connection()

    def _name_leaders(self, failed: list[tuple[TopicProduceResponse, PartitionProduceResponse]]) -> None:
        """Names the current leaders and their addresses, so that the client need not ask for metadata (KIP-951)."""
        endpoints: dict[int, NodeEndpoint] = {}
        for topic, part in failed:
            if part.error_code != _NOT_LEADER_OR_FOLLOWER:
                continue
            name = topic.name or self._broker.metadata_cache.topic_name(topic.topic_id) or ""
            leader = current_leader(self._broker, TopicPartition(name, part.index), self.request.listener_name)
            part.current_leader = LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
            if leader.broker is not None and leader.endpoint is not None:
                endpoints[leader.leader_id] = NodeEndpoint(leader.leader_id, leader.endpoint.host, leader.endpoint.port, leader.broker.rack)
        self._produced.node_endpoints = list(endpoints.values())


def validate_records(version: int, records: Records | None) -> None:
    """From version 3 on a partition must have exactly one batch, of format v2. Raises KafkaError if it has not."""
    if version < _ONE_BATCH_OF_V2:
        if records is None:
            raise InvalidRecord("Produce requests must have records for every partition")
        return
    size = 0 if records is None else entry_size(records.data, records.start, records.end)
    if records is None or size == 0:
        raise InvalidRecord(f"Produce requests with version {version} must have at least one record batch per partition")
    data, start = records.data, records.start
    if data[start + MAGIC_AT] != MAGIC_V2:
        raise InvalidRecord(f"Produce requests with version {version} are only allowed to contain record batches with magic version 2")
    if version < _ZSTD and size >= HEADER_SIZE_V2 and data[start + ATTRIBUTES_AT] & CODEC_MASK == ZSTD:
        raise UnsupportedCompressionType(f"Produce requests with version {version} are not allowed to use ZStandard compression")
    if start + size < records.end and entry_size(data, start + size, records.end) != 0:
        raise InvalidRecord(f"Produce requests with version {version} are only allowed to contain exactly one record batch per partition")


def _fault_in(records: Records) -> str | None:
    """Kafka's message for a batch with an invalid length or magic; None for other faults, for which Kafka has no message."""
    data, start = records.data, records.start
    length = int.from_bytes(data[start + LOG_OVERHEAD - 4 : start + LOG_OVERHEAD], "big", signed=True)
    if length < RECORD_OVERHEAD_V0:
        return f"Record size {length} is less than the minimum record overhead ({RECORD_OVERHEAD_V0})"
    magic = data[start + MAGIC_AT]
    return f"Invalid magic found in record: {magic}" if magic > MAGIC_V2 else None


def _has_transactional_records(message: ProduceRequest) -> bool:
    for topic in message.topic_data:
        for data in topic.partition_data:
            if data.records is not None and is_transactional(data.records):
                return True
    return False
