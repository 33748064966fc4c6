# Compiled by mypyc: src/compiled.toml lists this module.
"""Kafka's KafkaApis: gives each request to the handler of its API, and sees to it that it gets an answer or its connection is closed.

It stands between the network layer, which knows frames, and the handlers, which know messages. It decides nothing itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers import AT_ONCE, CONTROL, HANDLERS, Handler
from barnabas.broker.requests.request import Request, RequestPart
from barnabas.broker.requests.sliced_response import WRITTEN_AT_ONCE, frame_in_slices, longest_list
from barnabas.broker.scheduling.turns import BYTES_AT_ONCE, ELEMENTS_AT_ONCE
from barnabas.errors import KafkaError
from barnabas.network.exchange import Exchange
from barnabas.protocol import api_keys, framing
from barnabas.protocol.errors import ErrorCode, MalformedMessage, TooManyElements
from barnabas.protocol.framing import parse_request
from barnabas.protocol.message import Message, serialize

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.handlers.parts import Parts
    from barnabas.broker.topics.initial_metadata import InitialMetadata

_log = logging.getLogger(__name__)

# API keys, the first bytes of a frame; then comes the version.
_PIPELINABLE: Final = (b"\x00\x00", b"\x00\x1b")  # Produce, WriteTxnMarkers
_ADD_PARTITIONS_TO_TXN: Final = b"\x00\x18"
_OF_BROKERS_VERSION: Final = 4  # of AddPartitionsToTxn, from which on brokers send it
_OF_BROKERS: Final = b"\x00\x04"  # the same, as it stands in a frame

# Produce keeps its records where they were received, and divides its work itself.
_ANY_SIZE_AT_ONCE: Final = frozenset({api_keys.PRODUCE, api_keys.API_VERSIONS, *CONTROL})

# Long requests that wait for their turn hold so many bytes; more of them count as queued (queued.max.requests, queued.max.request.bytes).
WAITING_BYTES_MAX: Final = 128 << 20


class RequestDispatcher:
    """`listeners_of_brokers` are those by which no client comes: requests may be longer there."""

    def __init__(self, broker: Broker, listeners_of_brokers: frozenset[str] = frozenset()) -> None:
        self._broker = broker
        self._listeners_of_brokers = listeners_of_brokers
        self.last_request: Request[Any] | None = None
        self._handlers: dict[int, Handler] = {}
        self._waiting_bytes = 0  # of long requests that are not parsed yet
        self._running: set[asyncio.Task[None]] = set()  # tasks that nobody holds may be collected

    def is_pipelinable(self, frame: bytes) -> bool:
        """Produce, and what brokers ask each other about transactions: each waits for replicas, and none for the one before it."""
        key = frame[:2]
        if key == _ADD_PARTITIONS_TO_TXN:
            return frame[2:4] >= _OF_BROKERS
        return key in _PIPELINABLE

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        header = parse_request(frame)
        handler = self._handlers.get(header.api.key) or self._handler(header.api.key)
        if len(frame) > BYTES_AT_ONCE and header.api.key not in _ANY_SIZE_AT_ONCE:
            self._dispatch_later(handler, exchange, header)
            return
        if header.is_unsupported_api_versions:
            request: Request[Any] = Request(exchange, header, None)
        else:
            try:
                request = Request(exchange, header, header.message(ELEMENTS_AT_ONCE))
            except TooManyElements:
                if header.api.key not in CONTROL:
                    self._dispatch_later(handler, exchange, header)
                    return
                request = Request(exchange, header, header.message())
        self.last_request = request
        if header.api.key in AT_ONCE or (cluster := self._broker.cluster) is None or cluster.initial_metadata.is_over:
            self._handle(handler, request)
        else:
            exchange.leave_queue()  # the controller must be heard, however many wait for it
            self._run(self._handle_after(cluster.initial_metadata, handler, request))

    def took_long(self, taken_ns: int) -> None:
        self._broker.loop_lag.held(taken_ns / 1_000_000, self.last_request)

    def _handle(self, handler: Handler, request: Request[Any]) -> None:
        result = handler.handle(self._broker, request)
        if result is None:
            return
        if isinstance(result, Message):
            request.respond(result)
        else:
            self._run(self._respond_when_done(request, result))

    async def _handle_after(self, initial_metadata: InitialMetadata, handler: Handler, request: Request[Any]) -> None:
        await initial_metadata.wait()
        try:
            self._handle(handler, request)
        except Exception as error:
            self._fail(request, error)

    def _dispatch_later(self, handler: Handler, exchange: Exchange, header: framing.RequestFrame) -> None:
        """Takes the request out of the queue, where long ones would keep short ones out. Where those that wait for their first turn hold
        many bytes, it stays in the queue until its own: as long as the initial_metadata lasts, no turn is certain."""
        exchange.hold_next()
        cluster = self._broker.cluster
        if self._waiting_bytes + exchange.size <= WAITING_BYTES_MAX or (cluster is not None and not cluster.initial_metadata.is_over):
            exchange.leave_queue()
        self._waiting_bytes += exchange.size
        self._run(self._handle_many(handler, exchange, header))

    async def _handle_many(self, handler: Handler, exchange: Exchange, header: framing.RequestFrame) -> None:
        """A request of many elements or megabytes: even to parse it takes a turn of the loop."""
        turns, cluster = self._broker.turns, self._broker.cluster
        if cluster is not None and header.api.key not in AT_ONCE:
            await cluster.initial_metadata.wait()
        await turns.next(header)
        self._waiting_bytes -= exchange.size
        exchange.leave_queue()
        try:
            elements_max = header.elements_max(exchange.connection.listener_name in self._listeners_of_brokers)
            request: Request[Any] = Request(exchange, header, header.message(elements_max))
        except MalformedMessage as error:
            _log.warning("Closing connection %s on listener %s: %s", exchange.connection.id, exchange.connection.listener_name, error)
            exchange.close_connection()
            return
        # A request of megabytes with few elements is not divided: offsets that are too large together are refused together.
        is_divided = elements_max - header.reader.elements_left > ELEMENTS_AT_ONCE
        try:
            if is_divided and handler.handle_many is not None:
                response = await handler.handle_many(self._broker, request)
            elif is_divided and handler.parts is not None:
                response = await self._handle_parts(handler, handler.parts, request, header)
            else:
                result = handler.handle(self._broker, request)
                response = result if result is None or isinstance(result, Message) else await result
            if response is not None:
                await turns.next(request, is_broker=_is_broker(request))  # writing it takes as long as parsing the request did
                await self._respond(request, response)
        except Exception as error:
            self._fail(request, error)

    async def _handle_parts(self, handler: Handler, parts: Parts, request: Request[Any], header: framing.RequestFrame) -> Message:
        """Each part in a turn of its own. A part that waits, for replicas or for a coordinator, does not keep the next one waiting."""
        loop, turns, is_broker = asyncio.get_running_loop(), self._broker.turns, _is_broker(request)
        answers: list[asyncio.Future[Message]] = []
        for message in parts.of(request.message):
            await turns.next(request, is_broker=is_broker)
            answer: asyncio.Future[Message] = loop.create_future()
            answers.append(answer)
            part: Request[Any] = RequestPart(request.exchange, header, message, answer.set_result)
            result = handler.handle(self._broker, part)
            if isinstance(result, Message):
                answer.set_result(result)
            elif result is not None and (awaited := await result) is not None:
                answer.set_result(awaited)
        joint = parts.joint(await answers[0])
        for answer in answers[1:]:
            part_answer = await answer
            await turns.next(request, is_broker=is_broker)
            joint.add(part_answer)
        response: Message = joint.whole
        return response

    def _handler(self, key: int) -> Handler:
        module = HANDLERS.get(key)
        if module is None and self._broker.cluster is not None:
            module = CONTROL.get(key)
        if module is None:
            raise MalformedMessage(f"API key {key} is not served by this broker: ask ApiVersions for those that are")
        self._handlers[key] = handler = Handler(module)
        return handler

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _respond_when_done(self, request: Request[Any], work: Awaitable[Message | None]) -> None:
        try:
            response = await work
            if response is not None:
                await self._respond(request, response)
        except Exception as error:
            self._fail(request, error)

    async def _respond(self, request: Request[Any], response: Message) -> None:
        """Sends an answer that may be long: those of compiled messages are written fast enough, the others in slices."""
        name = None if request.api.key in WRITTEN_AT_ONCE else longest_list(response)
        if name is None:
            request.respond(response)
            return
        header_version = request.api.response_header_version(request.version)
        work = frame_in_slices(response, name, request.correlation_id, request.version, header_version)
        try:
            frame = await self._broker.turns.run(work, request, is_broker=_is_broker(request))
        except KafkaError as error:
            _log.warning("Closing connection %s: the answer to %s cannot be sent: %s", request.connection.id, request, error)
            request.exchange.close_connection()
            return
        request.exchange.respond(frame)

    def _fail(self, request: Request[Any], error: Exception) -> None:
        if not isinstance(error, KafkaError):
            _log.error("Handling %s failed", request, exc_info=error)
        self._refuse(request, error)

    def _refuse(self, request: Request[Any], error: Exception) -> None:
        """Answers with the error where the response can carry one as a whole; where it cannot, the connection goes."""
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        kind = request.api.response  # in two steps: mypyc takes the call of a property for the call of a method
        response: Any = kind()
        without = serialize(response, request.version)
        if "error_code" in response.field_names():
            response.error_code = int(code)
        if serialize(response, request.version) == without:  # no such field, or not in this version
            request.exchange.close_connection()
        else:
            request.respond(response)


def _is_broker(request: Request[Any]) -> bool:
    """Whether a request that is handled in parts is one that a broker sends, or says so. Fetch looks for itself."""
    key = request.api.key
    if key == api_keys.OFFSET_FOR_LEADER_EPOCH:
        replica_id: int = request.message.replica_id
        return replica_id >= 0
    return key == api_keys.WRITE_TXN_MARKERS or (key == api_keys.ADD_PARTITIONS_TO_TXN and request.version >= _OF_BROKERS_VERSION)
