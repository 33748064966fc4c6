# Compiled by mypyc: src/compiled.toml lists this module.
"""Fetch: sends the batches of partitions from an offset on, as they are in the files, to consumers and followers.

Versions 0 to 18.
Behaviour
- waits in the purgatory until min_bytes are available, or for max_wait_ms. A consumer reads up to the high watermark, or with
  read_committed up to the last stable offset; a follower reads up to the log end offset.
- max_bytes, fetch.max.bytes and partition_max_bytes bound the response. From version 3 on the first batch is sent whole, however large.
- a small response is read from the page cache, or in a thread, and then sent. A large one is streamed from its files to the socket as the
  client reads it, with sendfile, or through memory for TLS and for files that are not in the page cache.
Authorization
- a consumer: READ on each topic. A denied topic has the error TOPIC_AUTHORIZATION_FAILED whether it exists or not.
- a follower, which is a client that sends a replica id: CLUSTER_ACTION on the cluster. Without it every partition has that error.
- partitions of a fetch session are checked with each fetch.
Version notes
- 0, 1: message format v0; 2, 3: v1; converted if needed. 0 to 2: max_bytes bounds even the first batch.
- 0 to 3: nothing from topics whose compression.type is zstd. 7: sessions, see `fetch_session`. 11: rack and preferred read replica.
- 12: truncation detection. 13: topic ids instead of names. 15: replica state. 16: NOT_LEADER_OR_FOLLOWER with the leader and its address.
Errors
- of the whole: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
- of a partition: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID, NOT_LEADER_OR_FOLLOWER,
  FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR (NOT_LEADER_OR_FOLLOWER to versions up to 5),
  UNSUPPORTED_COMPRESSION_TYPE, UNSUPPORTED_VERSION where conversion is switched off, CORRUPT_MESSAGE, TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.partitions.fetch_params import (
    NO_EPOCH,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ClientMetadata,
    FetchParams,
    FetchResult,
    PartitionFetch,
    RequestedPartition,
    TopicIdPartition,
    fetch_isolation,
)
from barnabas.broker.requests.current_leader import current_leader
from barnabas.broker.requests.down_conversion import DownConversion, magic_for
from barnabas.broker.requests.fetch_session import TOPIC_IDS_VERSION, Answers, FetchContext
from barnabas.broker.requests.reply import Reply
from barnabas.broker.requests.slice_source import SliceSource
from barnabas.broker.scheduling.steps import timed
from barnabas.broker.scheduling.turns import ELEMENTS_AT_ONCE, slices
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from barnabas.protocol.slices import Records
from barnabas.records.codecs.compression import ZSTD
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.storage.segments.segment import FileSlice
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

# Up to this size, copying is cheaper than sendfile. Larger responses are streamed, so that a slow client does not pin memory.
READ_AT_ONCE_MAX: Final = 65536
READ_AMONG_STREAMED_MAX: Final = 16384  # up to this size a slice is cheaper to copy even if the rest of the response is streamed
NO_RECORDS: Final = Records(b"")
PARTS: Final = Parts(("topics", "partitions"), ("responses", "partitions"))

_INT_MAX: Final = 2**31 - 1
_RESPONSE_OVERHEAD: Final = 40  # about: throttle time, error, session, one topic
_PARTITION_OVERHEAD: Final = 50

_log = logging.getLogger(__name__)
_reading: Final[set[asyncio.Task[None]]] = set()  # asyncio keeps weak references only: these keep the tasks alive


def handle(broker: Broker, request: Request[FetchRequest]) -> Reply[FetchResponse]:
    message, version = request.message, request.version
    if message.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        # As Kafka, whose enum has no such value.
        return Reply.now(request, _refusal_of_all(message, version, ErrorCode.UNKNOWN_SERVER_ERROR))
    reply = _FetchReply(broker, request)
    context = _context(broker, request, reply.is_follower, _requested_partitions(broker, message, version), _forgotten(message))
    if len(context.requested) > ELEMENTS_AT_ONCE:  # a request may be small and its session large
        reply.awaitable = reply.begin_in_slices(request, context)
    else:
        reply.begin(request, context)
    return reply


def handle_many(broker: Broker, request: Request[FetchRequest]) -> Reply[FetchResponse]:
    """As `handle`, for a request of many partitions: some in each turn of the loop."""
    message, version = request.message, request.version
    if message.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return Reply.now(request, _refusal_of_all(message, version, ErrorCode.UNKNOWN_SERVER_ERROR))
    reply = _FetchReply(broker, request)
    reply.awaitable = _handle_in_slices(broker, request, reply)
    return reply


async def _handle_in_slices(broker: Broker, request: Request[FetchRequest], reply: _FetchReply) -> None:
    requested: list[RequestedPartition] = []
    for part in PARTS.of(request.message):
        await broker.turns.next(request, is_broker=reply.is_follower)
        assert isinstance(part, FetchRequest)
        requested.extend(_requested_partitions(broker, part, request.version))
    await broker.turns.next(request, is_broker=reply.is_follower)
    await reply.begin_in_slices(request, _context(broker, request, reply.is_follower, requested, _forgotten(request.message)))


class _FetchReply(Reply[FetchResponse]):
    """A fetch from its request to its response. The replica manager calls `done`, at once or when the wait in the purgatory is over, in
    a step of the request's usage."""

    __slots__ = ("broker", "context", "is_done", "is_follower", "leaders", "may_read", "replica_id", "unreadable", "version")

    context: FetchContext  # from `begin` or `begin_in_slices` on

    def __init__(self, broker: Broker, request: Request[FetchRequest]) -> None:
        super().__init__(request)
        self.broker = broker
        self.version = request.version
        self.unreadable: Answers = []
        self.replica_id = _replica(request.message, request.version)[0]
        self.is_follower = self.replica_id >= 0
        if self.is_follower and request.usage is not None:
            request.usage.is_exempt = True
        self.may_read: dict[str, bool] | None = None  # by topic; None if there is no authorizer
        if not broker.access.is_open:
            self.may_read = {}
        self.leaders: dict[int, NodeEndpoint] = {}
        self.is_done = False  # the replica manager has read; records may still have to be read from files

    def begin(self, request: Request[FetchRequest], context: FetchContext) -> None:
        self.context = context
        readable: list[RequestedPartition] = []
        self._sort_out(context.requested, readable)
        self._read(request, readable)

    async def begin_in_slices(self, request: Request[FetchRequest], context: FetchContext) -> None:
        self.context = context
        readable: list[RequestedPartition] = []
        turns = self.broker.turns
        for part in slices(context.requested):
            await turns.next(request, is_broker=self.is_follower)
            self._sort_out(part, readable)
        await turns.next(request, is_broker=self.is_follower)
        self._read(request, readable)

    def _sort_out(self, requested: list[RequestedPartition], readable: list[RequestedPartition]) -> None:
        """Adds the partitions that this broker knows and the client may read to `readable`, and the errors of the others to
        `unreadable`."""
        for entry in requested:
            partition = entry[0]
            error = _unknown(self.broker, partition, self.version)
            if self.may_read is not None and self._is_denied(partition, self.may_read, error):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if error == ErrorCode.NONE:
                readable.append(entry)
            else:
                self.unreadable.append((partition, _error_data(partition, error)))

    def _is_denied(self, partition: TopicIdPartition, may_read: dict[str, bool], error: int) -> bool:
        """The decision is kept for the other partitions of the topic; that about a follower is the same for all topics."""
        if not self.is_follower and error == ErrorCode.UNKNOWN_TOPIC_ID:
            return False
        topic = "" if self.is_follower else partition.partition.topic
        is_allowed = may_read.get(topic)
        if is_allowed is None:
            access = self.broker.access
            if self.is_follower:
                is_allowed = access.allows_on_cluster(self.request, AclOperation.CLUSTER_ACTION)
            else:
                is_allowed = access.allows(self.request, AclOperation.READ, ResourceType.TOPIC, topic)
            may_read[topic] = is_allowed
        return not is_allowed

    def _read(self, request: Request[FetchRequest], readable: list[RequestedPartition]) -> None:
        if readable:
            self.broker.replica_manager.fetch_messages(_params(self.broker, request), readable, self.done)
        else:
            self.complete(self.context.response(self.unreadable))

    def wait(self) -> None:
        """A fetch whose records are being read from disk keeps its place in the queue."""
        if not self.is_done:
            super().wait()

    def done(self, results: list[tuple[TopicIdPartition, FetchResult]]) -> None:
        self.is_done = True
        if self.is_follower and self.broker.replica_manager.quotas.leader.is_in_use:
            self._count_throttled(results)
        if not self.is_follower and (self.request.usage is not None or self.broker.quotas.fetch.is_in_use):
            throttle_ms = self._charge(results)
            if throttle_ms > 0:
                self._complete_throttled(throttle_ms)
                return
        size = self._count_sent(results)
        sources: list[SliceSource] = []
        try:
            if self.version > 3 and size > READ_AT_ONCE_MAX:
                answers: Answers | None = self._streamed(results, sources)
            else:
                answers = self._read_at_once(results)
            if answers is None:
                task = asyncio.ensure_future(timed(self.request.usage, self._read_and_respond(results)))
                _reading.add(task)
                task.add_done_callback(_reading.discard)
                return
            response = self._response(answers)
        except Exception:
            for source in sources:
                source.close()
            if not self.is_waiting:
                raise
            self._failed()  # the caller completes delayed fetches after its own work, and must not fail with them
            return
        self.complete(response)

    def _count_sent(self, results: list[tuple[TopicIdPartition, FetchResult]]) -> int:
        """Counts the bytes of records that are sent, before any conversion, and returns their sum."""
        total = 0
        for partition, result in results:
            if result.records is None or (metrics := result.topic_metrics) is None:
                continue
            size = result.records.size
            total += size
            if not self.is_follower:
                metrics.bytes_out += size
            else:
                metrics.replication_bytes_out += size
                hosted = self.broker.replica_manager.partition(partition.partition)
                if hosted is not None and hosted.adding_replicas and self.replica_id in hosted.adding_replicas:
                    metrics.reassignment_bytes_out += size
        return total

    def _count_throttled(self, results: list[tuple[TopicIdPartition, FetchResult]]) -> None:
        """Replicas in sync count too, so that the throttle bounds all replication of the throttled partitions."""
        quota = self.broker.replica_manager.quotas.leader
        throttled = [result.records for partition, result in results if quota.is_throttled(partition.partition)]
        quota.record(sum(records.size for records in throttled if records is not None), self.broker.clock.monotonic_ms())

    def _charge(self, results: list[tuple[TopicIdPartition, FetchResult]]) -> int:
        """Charges the fetch to the quotas of the client. Returns how many milliseconds the client has to wait. Then its bytes do not count,
        because they are not sent."""
        request, quota = self.request, self.broker.quotas.fetch
        throttle_ms = 0 if request.usage is None else request.usage.charge()
        if quota.is_in_use:
            monotonic_ms = self.broker.clock.monotonic_ms()
            sensor = quota.sensor(request.session.principal, request.client_id, monotonic_ms)
            if sensor is not None:
                size = _response_size(results)
                throttle_ms = max(throttle_ms, sensor.record(size, monotonic_ms))
                if throttle_ms > 0:
                    sensor.record_only(-size, monotonic_ms)
        return throttle_ms

    def _complete_throttled(self, throttle_ms: int) -> None:
        """Responds without records, at once. The client fetches again when it has waited."""
        self.request.throttle(throttle_ms, self.broker.clock.monotonic_ms())
        response = self.context.throttled_response()
        response.throttle_time_ms = throttle_ms
        self.complete(response)

    def _response(self, answers: Answers) -> FetchResponse:
        response = self.context.response(answers + self.unreadable if self.unreadable else answers)
        if self.leaders and not self.is_follower:  # a follower learns its leader from the controller
            response.node_endpoints = list(self.leaders.values())
        return response

    def _failed(self) -> None:
        _log.exception("Handling %s failed", self.request)
        self.close_connection()

    def _read_at_once(self, results: list[tuple[TopicIdPartition, FetchResult]]) -> Answers | None:
        """The answers if all records are in the page cache and in the right format, which is the common case; else None."""
        if self.version <= 3:
            return None
        answers: Answers = []
        for partition, result in results:
            file_slice = result.records
            records = NO_RECORDS
            if file_slice is not None:
                data = _read_nowait(file_slice)
                if data is None:
                    return None
                records = Records(data)
            answers.append((partition, self._answer(partition, result, records)))
        return answers

    def _streamed(self, results: list[tuple[TopicIdPartition, FetchResult]], sources: list[SliceSource]) -> Answers:
        """The answers with records that the connection reads from their files. Their sources pin the files."""
        answers: Answers = []
        for partition, result in results:
            file_slice = result.records
            if file_slice is None:
                answers.append((partition, self._answer(partition, result, NO_RECORDS)))
                continue
            if file_slice.size <= READ_AMONG_STREAMED_MAX and (data := _read_nowait(file_slice)) is not None:
                answers.append((partition, self._answer(partition, result, Records(data))))
                continue
            try:
                source = SliceSource(file_slice, self.broker.disk_threads)
            except (OSError, ValueError) as error:
                answers.append((partition, self._unread(partition, error)))
                continue
            sources.append(source)
            answers.append((partition, self._answer(partition, result, Records(b"", 0, file_slice.size, source))))
        return answers

    async def _read_and_respond(self, results: list[tuple[TopicIdPartition, FetchResult]]) -> None:
        try:
            reads: list[bytes | asyncio.Future[bytes]] = []
            for partition, result in results:
                reads.append(await self._start_reading(partition, result))
            offsets = {partition: request.offset for partition, request in self.context.requested}
            answers: Answers = []
            for (partition, result), read in zip(results, reads, strict=True):
                answers.append((partition, await self._read_answer(partition, offsets[partition], result, read)))
            response = self._response(answers)
        except Exception:
            self._failed()
            return
        self.complete(response)

    async def _start_reading(self, partition: TopicIdPartition, result: FetchResult) -> bytes | asyncio.Future[bytes]:
        """The records if the page cache has them, else a future of a read in a thread, beside the reads of the other partitions.

        Each read may be megabytes, so the loop serves other requests before it."""
        file_slice = result.records
        if file_slice is None or self._refusal(partition) != ErrorCode.NONE:
            return b""
        await asyncio.sleep(0)
        try:
            data = file_slice.read_nowait()
            return data if data is not None else self._read_in_thread(file_slice)
        except (OSError, ValueError) as error:
            return _failure(error)

    def _read_in_thread(self, file_slice: FileSlice) -> asyncio.Future[bytes]:
        file_slice.file.pin()  # else its descriptor may be closed and reused for another file
        try:
            return asyncio.get_running_loop().run_in_executor(self.broker.disk_threads, _read_pinned, file_slice)
        except RuntimeError:  # the executor is closed: the broker shuts down
            file_slice.file.unpin()
            raise

    async def _read_answer(
        self, partition: TopicIdPartition, offset: int, result: FetchResult, read: bytes | asyncio.Future[bytes]
    ) -> PartitionData:
        refusal = self._refusal(partition)
        if refusal != ErrorCode.NONE:
            return _error_data(partition, refusal)
        try:
            data = read if isinstance(read, bytes) else await read
            magic = magic_for(self.version)
            if magic is not None and data:
                data = await self._down_converted(partition, data, magic, offset)
        except (OSError, ValueError) as error:  # ValueError: the file was closed, because its log was deleted
            return self._unread(partition, error)
        except KafkaError as error:
            return _error_data(partition, error.code)
        return self._answer(partition, result, Records(data))

    async def _down_converted(self, partition: TopicIdPartition, data: bytes, magic: int, first_offset: int) -> bytes:
        began_ns = self.broker.clock.perf_ns()
        conversion = DownConversion(data, magic, first_offset)
        for _ in conversion.slices():
            await asyncio.sleep(0)
        hosted = self.broker.replica_manager.partition(partition.partition)
        if conversion.records != 0 and hosted is not None:
            hosted.topic_metrics.fetch_conversions += conversion.records
            took_ns = self.broker.clock.perf_ns() - began_ns
            hosted.host.topic_metrics.converted_fetches.record(took_ns, conversion.temporary_bytes)
        return conversion.converted

    def _unread(self, partition: TopicIdPartition, error: Exception) -> PartitionData:
        _log.warning("Reading %s for %s failed: %s", partition.partition, self.request, error)
        return self._answer(partition, FetchResult(ErrorCode.KAFKA_STORAGE_ERROR), NO_RECORDS)

    def _refusal(self, partition: TopicIdPartition) -> int:
        """The error for an old client that may not read this partition."""
        if self.version > 3:
            return ErrorCode.NONE
        hosted = self.broker.replica_manager.partition(partition.partition)
        if hosted is None or hosted.log is None:
            return ErrorCode.NONE
        if hosted.log.config.codec == ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if not self.is_follower and not hosted.log.config.down_conversion:
            return ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE

    def _answer(self, partition: TopicIdPartition, result: FetchResult, records: Records) -> PartitionData:
        error = result.error
        leader: LeaderIdAndEpoch | None = None
        if error != ErrorCode.NONE:
            if error == ErrorCode.KAFKA_STORAGE_ERROR and self.version <= 5:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER  # these clients know it, and retry
            elif self.version >= 16 and error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
                leader = self._leader(partition.partition)
        diverging = result.diverging_epoch
        return PartitionData(
            partition.partition.partition,
            error,
            result.high_watermark,
            result.last_stable_offset,
            result.log_start_offset,
            EpochEndOffset(diverging[0], diverging[1]) if diverging is not None else None,
            leader,
            None,
            None if result.aborted is None else [AbortedTransaction(txn.producer_id, txn.first_offset) for txn in result.aborted],
            result.preferred_read_replica,
            records,
        )

    def _leader(self, partition: TopicPartition) -> LeaderIdAndEpoch:
        leader = current_leader(self.broker, partition, self.request.listener_name)
        if leader.broker is not None and leader.endpoint is not None:
            self.leaders[leader.leader_id] = NodeEndpoint(leader.leader_id, leader.endpoint.host, leader.endpoint.port, leader.broker.rack)
        return LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)


def _replica(message: FetchRequest, version: int) -> tuple[int, int]:
    """The replica id, negative for a consumer, and from version 15 on the epoch of the replica's broker."""
    if version < 15:
        return message.replica_id, -1
    state = message.replica_state
    return (-1, -1) if state is None else (state.replica_id, state.replica_epoch)


def is_follower(request: Request[FetchRequest]) -> bool:
    """Whether a follower fetches, and not a consumer."""
    return _replica(request.message, request.version)[0] >= 0


def _requested_partitions(broker: Broker, message: FetchRequest, version: int) -> list[RequestedPartition]:
    topic_name = broker.metadata_cache.topic_name
    uses_ids = version >= TOPIC_IDS_VERSION
    requested: list[RequestedPartition] = []
    for topic in message.topics:
        name = (topic_name(topic.topic_id) or "") if uses_ids else topic.topic
        for partition in topic.partitions:
            request = PartitionFetch(
                partition.fetch_offset,
                partition.partition_max_bytes,
                max(partition.current_leader_epoch, NO_EPOCH),
                max(partition.last_fetched_epoch, NO_EPOCH),
                partition.log_start_offset,
            )
            requested.append((TopicIdPartition(topic.topic_id, TopicPartition(name, partition.partition)), request))
    return requested


def _forgotten(message: FetchRequest) -> list[TopicIdPartition]:
    forgotten: list[TopicIdPartition] = []
    for gone in message.forgotten_topics_data:
        for index in gone.partitions:
            forgotten.append(TopicIdPartition(gone.topic_id, TopicPartition(gone.topic, index)))
    return forgotten


def _context(
    broker: Broker,
    request: Request[FetchRequest],
    is_follower: bool,
    requested: list[RequestedPartition],
    forgotten: list[TopicIdPartition],
) -> FetchContext:
    message, version = request.message, request.version
    return broker.fetch_sessions.new_context(
        version, message.session_id, message.session_epoch, is_follower, requested, forgotten, broker.metadata_cache.topic_name
    )


def _params(broker: Broker, request: Request[FetchRequest]) -> FetchParams:
    message, version = request.message, request.version
    replica_id, replica_epoch = _replica(message, version)
    max_bytes = min(message.max_bytes, broker.config.current.number("fetch.max.bytes"))
    if broker.quotas.fetch.is_in_use and replica_id < 0:
        max_bytes = min(max_bytes, _quota_max_bytes(broker, request))
    client = None
    if version >= 11:  # older clients do not know preferred read replicas
        client = ClientMetadata(message.rack_id, request.client_id, request.connection.remote_ip, request.listener_name)
    return FetchParams(
        replica_id=replica_id,
        replica_epoch=replica_epoch,
        max_wait_ms=message.max_wait_ms,
        min_bytes=min(message.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=fetch_isolation(replica_id, message.isolation_level),
        client_metadata=client,
        hard_max_bytes=version <= 2,
        usage=request.usage,
    )


def _quota_max_bytes(broker: Broker, request: Request[FetchRequest]) -> int:
    """A larger response would exceed the quota for certain, after any wait, and the consumer would make no progress."""
    max_bytes = broker.quotas.fetch.max_in_windows(request.session.principal, request.client_id, broker.clock.monotonic_ms())
    return _INT_MAX if max_bytes is None else min(int(max_bytes), _INT_MAX)


def _unknown(broker: Broker, partition: TopicIdPartition, version: int) -> int:
    topic, index = partition.partition
    if not topic and version >= TOPIC_IDS_VERSION:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.NONE if broker.metadata_cache.contains(topic, index) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _error_data(partition: TopicIdPartition, error: int) -> PartitionData:
    return PartitionData(partition.partition.partition, error, -1, records=NO_RECORDS)


def _refusal_of_all(message: FetchRequest, version: int, error: int) -> FetchResponse:
    """Before version 13 each partition has the error as well, because older clients look only there."""
    topics: list[FetchableTopicResponse] = []
    if version < TOPIC_IDS_VERSION:
        for topic in message.topics:
            partitions = [PartitionData(partition.partition, error, -1, records=NO_RECORDS) for partition in topic.partitions]
            topics.append(FetchableTopicResponse(topic.topic, topic.topic_id, partitions))
    return FetchResponse(error_code=error, session_id=message.session_id, responses=topics)


def _response_size(results: list[tuple[TopicIdPartition, FetchResult]]) -> int:
    """The size of the response, for the quota: records, and about the fields around them. Partitions without news are not sent."""
    size = _RESPONSE_OVERHEAD
    for _, result in results:
        if result.records is not None:
            size += result.records.size + _PARTITION_OVERHEAD
    return size


def _read_nowait(file_slice: FileSlice) -> bytes | None:
    """The records if the page cache has them. None also if reading fails: then the read in a thread reports the error."""
    try:
        return file_slice.read_nowait()
    except (OSError, ValueError):
        return None


def _read_pinned(file_slice: FileSlice) -> bytes:
    try:
        return file_slice.read()
    finally:
        file_slice.file.unpin()


def _failure(error: Exception) -> asyncio.Future[bytes]:
    failed: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    failed.set_exception(error)
    return failed
