# Compiled by mypyc: src/compiled.toml lists this module.
"""Fetch: the batches of some partitions from an offset on, as they stand in the files, to consumers and followers.

Versions 0 to 18.
Behaviour
- waits in the purgatory until min_bytes are there, or for max_wait_ms; a consumer sees up to the high watermark, or with read_committed
  up to the last stable offset, a follower up to the log end.
- max_bytes, fetch.max.bytes and partition_max_bytes bound the answer, but its first batch is whole however large it is (from version 3 on).
- a small answer is read at once from the page cache, or in a thread, and then sent; a large one goes from its files to the socket, in
  pieces, as the client takes them (read in between where TLS or a cold file ask for it).
Version notes
- 0, 1: message format v0; 2, 3: v1; converted where needed. 0 to 2: max_bytes holds even for the first batch.
- 0 to 3: nothing from topics whose compression.type is zstd. 7: sessions, see `fetch_session`. 11: rack and preferred read replica.
- 12: truncation detection. 13: topic ids instead of names. 15: replica state. 16: the leader and its address along with "not leader".
Errors
- of the whole: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
- of a partition: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID, NOT_LEADER_OR_FOLLOWER,
  FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR (NOT_LEADER_OR_FOLLOWER to versions up to 5),
  UNSUPPORTED_COMPRESSION_TYPE, UNSUPPORTED_VERSION where conversion is switched off, CORRUPT_MESSAGE.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
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
from barnabas.broker.requests.slice_source import SliceSource
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
from barnabas.storage.segments.segment import FileSlice
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

READ_AT_ONCE_MAX: Final = 65536  # what is copied for less than it costs to send a file; more is not held for who may be slow
READ_AMONG_STREAMED_MAX: Final = 16384  # a slice so small is cheaper to copy even in an answer whose others are streamed
NO_RECORDS: Final = Records(b"")
PARTS: Final = Parts(("topics", "partitions"), ("responses", "partitions"))

_log = logging.getLogger(__name__)
_reading: Final[set[asyncio.Task[None]]] = set()  # tasks that nobody holds may be collected


def handle(broker: Broker, request: Request[FetchRequest]) -> FetchResponse | Awaitable[FetchResponse | None] | None:
    message, version = request.message, request.version
    if message.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refusal_of_all(message, version, ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka, whose enum has no such value
    context = _context(broker, request, _wanted(broker, message, version), _forgotten(message))
    if len(context.wanted) > ELEMENTS_AT_ONCE:  # a request may be small and its session large
        return _handle_in_slices(broker, request, context)
    readable: list[RequestedPartition] = []
    unreadable: Answers = []
    _sort_out(broker, version, context.wanted, readable, unreadable)
    return _read(broker, request, context, readable, unreadable)


async def handle_many(broker: Broker, request: Request[FetchRequest]) -> FetchResponse | None:
    """As `handle`, for a request of many partitions: some in each turn of the loop."""
    message, version = request.message, request.version
    if message.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refusal_of_all(message, version, ErrorCode.UNKNOWN_SERVER_ERROR)
    is_broker = _is_follower(request)
    wanted: list[RequestedPartition] = []
    for part in PARTS.of(message):
        await broker.turns.next(request, is_broker=is_broker)
        assert isinstance(part, FetchRequest)
        wanted.extend(_wanted(broker, part, version))
    await broker.turns.next(request, is_broker=is_broker)
    return await _handle_in_slices(broker, request, _context(broker, request, wanted, _forgotten(message)))


async def _handle_in_slices(broker: Broker, request: Request[FetchRequest], context: FetchContext) -> FetchResponse | None:
    readable: list[RequestedPartition] = []
    unreadable: Answers = []
    is_broker = _is_follower(request)
    for part in slices(context.wanted):
        await broker.turns.next(request, is_broker=is_broker)
        _sort_out(broker, request.version, part, readable, unreadable)
    await broker.turns.next(request, is_broker=is_broker)
    return _read(broker, request, context, readable, unreadable)


def _sort_out(
    broker: Broker, version: int, wanted: list[RequestedPartition], readable: list[RequestedPartition], unreadable: Answers
) -> None:
    """Those of the partitions that this broker knows, and the answers for the others."""
    for each in wanted:
        error = _unknown(broker, each[0], version)
        if error == ErrorCode.NONE:
            readable.append(each)
        else:
            unreadable.append((each[0], _error_data(each[0], error)))


def _read(
    broker: Broker, request: Request[FetchRequest], context: FetchContext, readable: list[RequestedPartition], unreadable: Answers
) -> FetchResponse | None:
    if not readable:
        return context.response(unreadable)
    replica_id, replica_epoch = _replica(request.message, request.version)
    fetch = _Fetch(broker, request, context, unreadable, replica_id >= 0)
    params = _params(broker, request, replica_id, replica_epoch)
    broker.replica_manager.fetch_messages(params, readable, fetch.done)
    if not fetch.is_done:
        fetch.is_waiting = True
        request.wait()
    return None


class _Fetch:
    """A fetch from the question to the answer. Everything that is told comes through `done`, at once or when enough has come together."""

    __slots__ = ("broker", "context", "is_done", "is_follower", "is_waiting", "leaders", "request", "unreadable", "version")

    def __init__(
        self, broker: Broker, request: Request[FetchRequest], context: FetchContext, unreadable: Answers, is_follower: bool
    ) -> None:
        self.broker = broker
        self.request = request
        self.version = request.version
        self.context = context
        self.unreadable = unreadable
        self.is_follower = is_follower
        self.leaders: dict[int, NodeEndpoint] = {}
        self.is_done = False
        self.is_waiting = False

    def done(self, results: list[tuple[TopicIdPartition, FetchResult]]) -> None:
        self.is_done = True
        sources: list[SliceSource] = []
        try:
            if self.version > 3 and _size(results) > READ_AT_ONCE_MAX:
                answers: Answers | None = self._streamed(results, sources)
            else:
                answers = self._read_at_once(results)
            if answers is None:
                task = asyncio.ensure_future(self._read_and_respond(results))
                _reading.add(task)
                task.add_done_callback(_reading.discard)
                return
            response = self._response(answers)
        except Exception:
            for source in sources:
                source.close()
            if not self.is_waiting:
                raise
            self._failed()  # whoever completed this fetch has nothing to do with its failure
            return
        self.request.respond(response)

    def _response(self, answers: Answers) -> FetchResponse:
        response = self.context.response(answers + self.unreadable if self.unreadable else answers)
        if self.leaders and not self.is_follower:  # a follower asks the controller
            response.node_endpoints = list(self.leaders.values())
        return response

    def _failed(self) -> None:
        _log.exception("Handling %s failed", self.request)
        self.request.exchange.close_connection()

    def _read_at_once(self, results: list[tuple[TopicIdPartition, FetchResult]]) -> Answers | None:
        """The answers if all that was found is small, in the page cache and in the right format: the common case by far."""
        if self.version <= 3:
            return None
        answers: Answers = []
        for partition, result in results:
            found = result.records
            records = NO_RECORDS
            if found is not None:
                data = _read_nowait(found)
                if data is None:
                    return None
                records = Records(data)
            answers.append((partition, self._answer(partition, result, records)))
        return answers

    def _streamed(self, results: list[tuple[TopicIdPartition, FetchResult]], sources: list[SliceSource]) -> Answers:
        """The answers with records that are still in their files, which are kept open for them."""
        answers: Answers = []
        for partition, result in results:
            found = result.records
            if found is None:
                answers.append((partition, self._answer(partition, result, NO_RECORDS)))
                continue
            if found.size <= READ_AMONG_STREAMED_MAX and (data := _read_nowait(found)) is not None:
                answers.append((partition, self._answer(partition, result, Records(data))))
                continue
            try:
                source = SliceSource(found, self.broker.disk_threads)
            except (OSError, ValueError) as error:
                answers.append((partition, self._unread(partition, error)))
                continue
            sources.append(source)
            answers.append((partition, self._answer(partition, result, Records(b"", 0, found.size, source))))
        return answers

    async def _read_and_respond(self, results: list[tuple[TopicIdPartition, FetchResult]]) -> None:
        try:
            reads: list[bytes | asyncio.Future[bytes]] = []
            for partition, result in results:
                reads.append(await self._start_reading(partition, result))
            offsets = {partition: request.offset for partition, request in self.context.wanted}
            answers: Answers = []
            for (partition, result), read in zip(results, reads, strict=True):
                answers.append((partition, await self._read_answer(partition, offsets[partition], result, read)))
            response = self._response(answers)
        except Exception:
            self._failed()
            return
        self.request.respond(response)

    async def _start_reading(self, partition: TopicIdPartition, result: FetchResult) -> bytes | asyncio.Future[bytes]:
        """What the page cache has, after a pause, for it may be megabytes; the rest is begun in a thread, beside the others."""
        found = result.records
        if found is None or self._refusal(partition) != ErrorCode.NONE:
            return b""
        await asyncio.sleep(0)
        try:
            data = found.read_nowait()
            return data if data is not None else self._read_in_thread(found)
        except (OSError, ValueError) as error:
            return _failure(error)

    def _read_in_thread(self, found: FileSlice) -> asyncio.Future[bytes]:
        found.file.pin()  # or its descriptor may be given to another file meanwhile
        try:
            return asyncio.get_running_loop().run_in_executor(self.broker.disk_threads, _read_pinned, found)
        except RuntimeError:  # the threads are gone: the broker shuts down
            found.file.unpin()
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
                data = await _down_converted(data, magic, offset)
        except (OSError, ValueError) as error:  # ValueError: the file was closed, since its log is gone
            return self._unread(partition, error)
        except KafkaError as error:
            return _error_data(partition, error.code)
        return self._answer(partition, result, Records(data))

    def _unread(self, partition: TopicIdPartition, error: Exception) -> PartitionData:
        _log.warning("Reading %s for %s failed: %s", partition.partition, self.request, error)
        return self._answer(partition, FetchResult(ErrorCode.KAFKA_STORAGE_ERROR), NO_RECORDS)

    def _refusal(self, partition: TopicIdPartition) -> int:
        """What old clients may not have of a partition, whatever was found."""
        if self.version > 3:
            return ErrorCode.NONE
        hosted = self.broker.replica_manager.partition(partition.partition)
        if hosted is not None and hosted.log is not None and hosted.log.config.codec == ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if not self.is_follower and not self.broker.config.current.flag("log.message.downconversion.enable"):
            return ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE

    def _answer(self, partition: TopicIdPartition, result: FetchResult, records: Records) -> PartitionData:
        error = result.error
        leader: LeaderIdAndEpoch | None = None
        if error != ErrorCode.NONE:
            if error == ErrorCode.KAFKA_STORAGE_ERROR and self.version <= 5:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER  # which these clients know, and try again
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
    """Who fetches: a consumer is less than zero. And the epoch of a broker, from version 15 on."""
    if version < 15:
        return message.replica_id, -1
    state = message.replica_state
    return (-1, -1) if state is None else (state.replica_id, state.replica_epoch)


def _is_follower(request: Request[FetchRequest]) -> bool:
    return _replica(request.message, request.version)[0] >= 0


def _wanted(broker: Broker, message: FetchRequest, version: int) -> list[RequestedPartition]:
    topic_name = broker.metadata_cache.topic_name
    uses_ids = version >= TOPIC_IDS_VERSION
    wanted: list[RequestedPartition] = []
    for topic in message.topics:
        name = (topic_name(topic.topic_id) or "") if uses_ids else topic.topic
        for asked in topic.partitions:
            request = PartitionFetch(
                asked.fetch_offset,
                asked.partition_max_bytes,
                max(asked.current_leader_epoch, NO_EPOCH),
                max(asked.last_fetched_epoch, NO_EPOCH),
                asked.log_start_offset,
            )
            wanted.append((TopicIdPartition(topic.topic_id, TopicPartition(name, asked.partition)), request))
    return wanted


def _forgotten(message: FetchRequest) -> list[TopicIdPartition]:
    forgotten: list[TopicIdPartition] = []
    for gone in message.forgotten_topics_data:
        for index in gone.partitions:
            forgotten.append(TopicIdPartition(gone.topic_id, TopicPartition(gone.topic, index)))
    return forgotten


def _context(
    broker: Broker, request: Request[FetchRequest], wanted: list[RequestedPartition], forgotten: list[TopicIdPartition]
) -> FetchContext:
    message, version = request.message, request.version
    is_follower = _is_follower(request)
    return broker.fetch_sessions.new_context(
        version, message.session_id, message.session_epoch, is_follower, wanted, forgotten, broker.metadata_cache.topic_name
    )


def _params(broker: Broker, request: Request[FetchRequest], replica_id: int, replica_epoch: int) -> FetchParams:
    message, version = request.message, request.version
    max_bytes = min(message.max_bytes, broker.config.current.number("fetch.max.bytes"))
    client = None
    if version >= 11:  # older ones cannot be sent to another replica
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
    )


def _unknown(broker: Broker, partition: TopicIdPartition, version: int) -> int:
    topic, index = partition.partition
    if not topic and version >= TOPIC_IDS_VERSION:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.NONE if broker.metadata_cache.contains(topic, index) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _error_data(partition: TopicIdPartition, error: int) -> PartitionData:
    return PartitionData(partition.partition.partition, error, -1, records=NO_RECORDS)


def _refusal_of_all(message: FetchRequest, version: int, error: int) -> FetchResponse:
    """Before version 13 an error of the whole is told for each partition as well: older clients look nowhere else."""
    topics: list[FetchableTopicResponse] = []
    if version < TOPIC_IDS_VERSION:
        for topic in message.topics:
            partitions = [PartitionData(asked.partition, error, -1, records=NO_RECORDS) for asked in topic.partitions]
            topics.append(FetchableTopicResponse(topic.topic, topic.topic_id, partitions))
    return FetchResponse(error_code=error, session_id=message.session_id, responses=topics)


def _size(results: list[tuple[TopicIdPartition, FetchResult]]) -> int:
    size = 0
    for _, result in results:
        if result.records is not None:
            size += result.records.size
    return size


def _read_nowait(found: FileSlice) -> bytes | None:
    """What the page cache has; None also where reading fails, which the slow way looks into."""
    try:
        return found.read_nowait()
    except (OSError, ValueError):
        return None


async def _down_converted(data: bytes, magic: int, first_offset: int) -> bytes:
    conversion = DownConversion(data, magic, first_offset)
    for _ in conversion.slices():
        await asyncio.sleep(0)
    return conversion.converted


def _read_pinned(found: FileSlice) -> bytes:
    try:
        return found.read()
    finally:
        found.file.unpin()


def _failure(error: Exception) -> asyncio.Future[bytes]:
    failed: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    failed.set_exception(error)
    return failed
