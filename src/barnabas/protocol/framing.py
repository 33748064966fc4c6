# Compiled by mypyc: src/compiled.toml lists this module.
"""Frames: a size of four bytes, a header, a message.

The network layer divides its receive buffer with `frame_size`, passes each whole frame to `parse_request`, and sends the buffers of
`response_frame`. A size is checked before the rest of the frame is received. Whatever a peer sends, the result is a request or
MalformedMessage, for which the caller closes that connection and no other.
"""

from __future__ import annotations

from typing import Final, cast

from librt.strings import read_i16_be, write_i32_be

from barnabas.protocol import api_keys
from barnabas.protocol.errors import MalformedMessage, TooManyElements
from barnabas.protocol.message import Message
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.protocol.reader import ELEMENTS_MAX, Reader
from barnabas.protocol.registry import APIS, Api
from barnabas.protocol.slices import Streamed
from barnabas.protocol.writer import Writer, write_uvarint

SIZE_PREFIX: Final = 4
REQUEST_MAX_BYTES: Final = 104857600  # socket.request.max.bytes, its default
# The most elements that all arrays of a client's request may have: more than the largest clients send. Parsing a request and writing the
# response are each one call that nothing interrupts: compiled messages take 0.3 to 0.5 µs an element, others 1 to 3, numbers a tenth.
CLIENT_ELEMENTS_MAX: Final = 20_000
_ELEMENTS_MAX: Final = {
    api_keys.PRODUCE: 40_000,
    api_keys.FETCH: 60_000,  # 50,000 partitions that a broker follows
    api_keys.OFFSET_FOR_LEADER_EPOCH: 60_000,  # the same
    api_keys.WRITE_TXN_MARKERS: 60_000,  # of all transactions that end while a broker is down
    api_keys.LIST_OFFSETS: 50_000,
    api_keys.METADATA: 50_000,
    api_keys.OFFSET_COMMIT: 50_000,
    api_keys.OFFSET_FETCH: 50_000,
    api_keys.TXN_OFFSET_COMMIT: 50_000,
    api_keys.LIST_GROUPS: 1_000,  # names of states and types, with which all groups are filtered
    api_keys.ADD_PARTITIONS_TO_TXN: 10_000,  # the partitions of a transaction are added in one request
    api_keys.CREATE_TOPICS: 50_000,  # 10,000 partitions, Kafka's bound, with their replicas
    api_keys.CREATE_PARTITIONS: 50_000,
    api_keys.ALTER_PARTITION_REASSIGNMENTS: 50_000,
    api_keys.ALTER_CLIENT_QUOTAS: 50_000,  # 10,000 quotas, Kafka's bound, each of a user's client
    api_keys.LIST_PARTITION_REASSIGNMENTS: 30_000,
    api_keys.ELECT_LEADERS: 30_000,
    api_keys.ALTER_REPLICA_LOG_DIRS: 30_000,
    api_keys.DESCRIBE_LOG_DIRS: 30_000,
    api_keys.LEADER_AND_ISR: ELEMENTS_MAX,
    api_keys.STOP_REPLICA: ELEMENTS_MAX,
    api_keys.UPDATE_METADATA: ELEMENTS_MAX,
    api_keys.ALTER_PARTITION: ELEMENTS_MAX,
}
# The same for requests of brokers, which concern many partitions or transactions.
BROKER_ELEMENTS_MAX: Final = 200_000
_OF_BROKERS: Final = frozenset(
    {
        api_keys.FETCH,
        api_keys.LIST_OFFSETS,
        api_keys.OFFSET_FOR_LEADER_EPOCH,
        api_keys.ADD_PARTITIONS_TO_TXN,
        api_keys.WRITE_TXN_MARKERS,
    }
)
# The most bytes of a request without data of clients: strings are decoded at less than a gigabyte a second.
CLIENT_BYTES_MAX: Final = 16 * 1024 * 1024
_WITH_DATA: Final = frozenset({api_keys.PRODUCE, api_keys.JOIN_GROUP, api_keys.SYNC_GROUP})
_OF_CONTROL: Final = frozenset({api_keys.LEADER_AND_ISR, api_keys.STOP_REPLICA, api_keys.UPDATE_METADATA, api_keys.ALTER_PARTITION})
_HEADER_SIZE_MIN: Final = 8  # every header begins with key, version and correlation id


class RequestFrame:
    """A request whose header has been read. `reader` is positioned at the message, which `message` parses later."""

    __slots__ = ("api", "version", "correlation_id", "client_id", "reader")  # noqa: RUF023 - in the order of the constructor

    def __init__(self, api: Api, version: int, correlation_id: int, client_id: str, reader: Reader) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.reader = reader

    def __repr__(self) -> str:
        return f"{self.api.name} v{self.version} #{self.correlation_id} of {self.client_id}"

    @property
    def is_unsupported_api_versions(self) -> bool:
        """An ApiVersions of a newer client: it is not parsed; the response is version 0, with UNSUPPORTED_VERSION and the versions."""
        return not self.api.has_version(self.version)

    def message(self, elements_max: int = -1) -> Message:
        """The parsed request; raises MalformedMessage, and TooManyElements if it has more elements than `elements_max`, by default the
        limit of its API. After TooManyElements the call may be repeated with a larger limit.

        Bytes after the message are ignored, as in Kafka: librdkafka 2.16 sends three after a Metadata request for all topics.
        """
        reader = self.reader
        start = reader.at
        reader.elements_left = self.elements_max() if elements_max < 0 else elements_max
        try:
            return self.api.request.read(reader, self.version)
        except TooManyElements:
            reader.at = start
            raise

    def elements_max(self, is_of_broker: bool = False) -> int:
        """How many elements a request of this API may have, if any client or if only a broker can have sent it."""
        if is_of_broker and self.api.key in _OF_BROKERS:
            return BROKER_ELEMENTS_MAX
        return _ELEMENTS_MAX.get(self.api.key, CLIENT_ELEMENTS_MAX)


def frame_size(data: bytes | bytearray | memoryview, at: int, max_bytes: int = REQUEST_MAX_BYTES) -> int:
    """The size of the frame whose prefix is at `at`, without the prefix; raises MalformedMessage if the frame is too large."""
    size = int.from_bytes(data[at : at + SIZE_PREFIX], "big", signed=True)
    if size < 0:
        raise MalformedMessage(f"Invalid receive (size = {size})")
    if size > max_bytes:
        raise MalformedMessage(f"Invalid receive (size = {size} larger than {max_bytes}): see socket.request.max.bytes")
    return size


def parse_request(frame: bytes) -> RequestFrame:
    """Reads the header of a frame, which is given without its size prefix; raises MalformedMessage for an invalid request."""
    if len(frame) < _HEADER_SIZE_MIN:
        raise MalformedMessage(f"A request of {len(frame)} bytes is too short for a header")
    api = APIS.get(read_i16_be(frame, 0))
    version = read_i16_be(frame, 2)
    if api is None:
        raise MalformedMessage(f"Unknown API key {read_i16_be(frame, 0)}")
    if not api.is_offered(version) and (api.key != api_keys.API_VERSIONS or version < 0):
        raise MalformedMessage(f"Received request for api with key {api.key} ({api.name}) and unsupported version {version}")
    if len(frame) > CLIENT_BYTES_MAX and api.key not in _WITH_DATA and api.key not in _OF_CONTROL:
        raise MalformedMessage(f"A {api.name} request of {len(frame)} bytes is larger than {CLIENT_BYTES_MAX}")
    header_version = api.request_header_version(version)
    reader = Reader(frame)
    header = RequestHeader.read(reader, header_version)
    return RequestFrame(api, version, header.correlation_id, header.client_id or "", reader)


def request_frame(message: Message, api: Api, version: int, correlation_id: int, client_id: str | None) -> list[bytes | memoryview]:
    """A request as a client sends it."""
    writer = Writer()
    writer.begin_frame()
    header_version = api.request_header_version(version)
    header = RequestHeader(api.key, version, correlation_id, client_id)
    header.write(writer, header_version)
    message.write(writer, version)
    writer.end_frame()
    return cast("list[bytes | memoryview]", writer.buffers())  # a request has no streamed records


def response_frame(message: Message, correlation_id: int, version: int, header_version: int) -> list[bytes | memoryview | Streamed]:
    """A response as a broker sends it: buffers in order, large records uncopied, or still to be read from a file."""
    writer = Writer()
    writer.begin_frame()
    write_i32_be(writer.out, correlation_id)
    if header_version > 0:
        write_uvarint(writer.out, 0)
    message.write(writer, version)
    writer.end_frame()
    return writer.buffers()


def parse_response_header(frame: bytes, header_version: int) -> tuple[int, Reader]:
    """The correlation id of a response frame, given without its size prefix, and a reader positioned at the message."""
    reader = Reader(frame)
    correlation_id = reader.int32()
    if header_version > 0:
        reader.skip_tagged_fields()
    return correlation_id, reader
