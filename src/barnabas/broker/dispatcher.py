# Compiled by mypyc: src/compiled.toml lists this module.
"""Kafka's KafkaApis: parses each request, calls the handler of its API, and sends the reply or closes the connection.

It connects the network layer, which has frames, with the handlers, which have messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers import AT_ONCE, CONTROL, HANDLERS, Handler
from barnabas.broker.handlers.fetch import is_follower
from barnabas.broker.metrics.request_kinds import RequestKinds
from barnabas.broker.metrics.response_errors import count_errors
from barnabas.broker.quotas.request_quota import RequestUsage
from barnabas.broker.requests.reply import Reply
from barnabas.broker.requests.request import Request, RequestPart
from barnabas.broker.requests.sliced_response import WRITTEN_AT_ONCE, frame_in_slices, longest_list
from barnabas.broker.scheduling.turns import BYTES_AT_ONCE, ELEMENTS_AT_ONCE
from barnabas.broker.security.authentication import Authentication
from barnabas.broker.security.session import Session
from barnabas.errors import KafkaError
from barnabas.network.exchange import Exchange
from barnabas.protocol import api_keys, framing
from barnabas.protocol.errors import ErrorCode, MalformedMessage, TooManyElements
from barnabas.protocol.framing import parse_request
from barnabas.protocol.message import Message, serialize
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.handlers.parts import Parts
    from barnabas.broker.requests.request_log import RequestLog
    from barnabas.broker.topics.initial_metadata import InitialMetadata

_log = logging.getLogger(__name__)

# API keys as they are in the first two bytes of a frame. The next two bytes are the version.
_PIPELINABLE: Final = (b"\x00\x00", b"\x00\x1b")  # Produce, WriteTxnMarkers
_ADD_PARTITIONS_TO_TXN: Final = b"\x00\x18"
_OF_BROKERS_VERSION: Final = 4  # the first version of AddPartitionsToTxn that brokers send
_OF_BROKERS: Final = b"\x00\x04"  # the same, as it is in a frame

# Handled at once whatever their size. Produce does not copy its records, and divides its work itself.
_ANY_SIZE_AT_ONCE: Final = frozenset({api_keys.PRODUCE, api_keys.API_VERSIONS, *CONTROL})

# Requests between brokers, whose time counts for no quota. That a Fetch comes from a follower is in its message.
_EXEMPT: Final = frozenset({api_keys.WRITE_TXN_MARKERS, *CONTROL})

# Long requests that wait for their first turn may hold this many bytes. Those beyond it count as queued (queued.max.requests,
# queued.max.request.bytes).
WAITING_BYTES_MAX: Final = 128 << 20


class RequestDispatcher:
    """`listeners_of_brokers` are the listeners that clients do not use. Requests there may have more elements. Without `authentication`
    every client is anonymous. Without `kinds` requests are not measured, without `request_log` they are not logged."""

    def __init__(
        self,
        broker: Broker,
        listeners_of_brokers: frozenset[str] = frozenset(),
        authentication: Authentication | None = None,
        kinds: RequestKinds | None = None,
        request_log: RequestLog | None = None,
    ) -> None:
        self._broker = broker
        self._request_quota = broker.quotas.request
        self._kinds = kinds
        self._request_log = request_log
        self._authentication = authentication or Authentication(None)
        self._listeners_of_brokers = listeners_of_brokers
        self.last_request: Request[Any] | None = None
        self._handlers: dict[int, Handler] = {}
        self._waiting_bytes = 0  # of long requests that are not parsed yet
        self._running: set[asyncio.Task[None]] = set()  # asyncio keeps weak references only: these keep the tasks alive

    def measure_requests(self, kinds: RequestKinds) -> None:
        """Requests are measured from now on."""
        self._kinds = kinds

    def is_pipelinable(self, frame: bytes) -> bool:
        """True for Produce and the transaction requests between brokers: each waits for replicas, not for the request before it."""
        key = frame[:2]
        if key == _ADD_PARTITIONS_TO_TXN:
            return frame[2:4] >= _OF_BROKERS
        return key in _PIPELINABLE

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        if type(exchange.connection.session) is not Session and not self._authentication.admits(exchange, frame):
            return
        header = parse_request(frame)
        handler = self._handlers.get(header.api.key) or self._handler(header.api.key)
        usage = self._new_usage(exchange, header) if self._request_quota.is_in_use else None
        if usage is None:
            self._dispatch(handler, exchange, frame, header, None)
            return
        usage.begin()
        try:
            self._dispatch(handler, exchange, frame, header, usage)
        finally:
            usage.end()

    def took_long(self, taken_ns: int) -> None:
        self._broker.loop_lag.held(taken_ns / 1_000_000, self.last_request)

    def _new_usage(self, exchange: Exchange, header: framing.RequestFrame) -> RequestUsage | None:
        """Counts the time of a request whose client has a quota on time, or which is exempt from all of them. That of a Fetch is not known
        before the message is parsed."""
        broker, quota, session = self._broker, self._request_quota, exchange.connection.session
        if not isinstance(session, Session):
            return None  # ApiVersions during the authentication of the client, which counts for no user, as in Kafka
        sensor = quota.sensor(session.principal, header.client_id, broker.clock.monotonic_ms())
        is_exempt = header.api.key in _EXEMPT
        if sensor is None and not is_exempt and header.api.key != api_keys.FETCH:
            return None
        return RequestUsage(quota, sensor, is_exempt, broker.clock, broker.turns)

    def _dispatch(
        self, handler: Handler, exchange: Exchange, frame: bytes, header: framing.RequestFrame, usage: RequestUsage | None
    ) -> None:
        if len(frame) > BYTES_AT_ONCE and header.api.key not in _ANY_SIZE_AT_ONCE:
            self._dispatch_later(handler, exchange, header, usage)
            return
        if header.is_unsupported_api_versions:
            request: Request[Any] = Request(exchange, header, None)
        else:
            if len(frame) > BYTES_AT_ONCE and header.api.key in CONTROL:
                self._require_broker(exchange, header)
            try:
                request = Request(exchange, header, header.message(ELEMENTS_AT_ONCE))
            except TooManyElements:
                if header.api.key not in CONTROL:
                    self._dispatch_later(handler, exchange, header, usage)
                    return
                self._require_broker(exchange, header)
                request = Request(exchange, header, header.message())
        self.last_request = request
        request.usage = usage
        if self._kinds is not None:
            self._measure(self._kinds, request)
        if self._request_log is not None and self._request_log.is_on:
            self._request_log.watch(request)
        if header.api.key in AT_ONCE or (cluster := self._broker.cluster) is None or cluster.initial_metadata.is_complete:
            self._handle(handler, request)
        else:
            exchange.is_task = True
            exchange.leave_queue()  # however many requests wait, the queue must have room for the control requests they wait for
            self._run(self._handle_after(cluster.initial_metadata, handler, request))

    def _require_broker(self, exchange: Exchange, header: framing.RequestFrame) -> None:
        """A long control request is parsed in one call, and so only if a broker may have sent it. Raises MalformedMessage."""
        request: Request[Any] = Request(exchange, header, None)
        if (cluster := self._broker.cluster) is not None:
            cluster.require_broker(request)
        if not self._broker.access.allows_on_cluster(request, AclOperation.CLUSTER_ACTION):
            raise MalformedMessage(f"{request} is long, and is read only from a client that has CLUSTER_ACTION on the cluster")

    def _measure(self, kinds: RequestKinds, request: Request[Any]) -> None:
        """Has the exchange record its times. A version that the API does not have, as only ApiVersions can, counts as 0 as in Kafka."""
        exchange, api, version = request.exchange, request.api, request.version
        exchange.metrics = kinds.of(api) if api.key != api_keys.FETCH else kinds.of_fetch(api, is_follower(request))
        exchange.version = version if api.has_version(version) else 0

    def _handle(self, handler: Handler, request: Request[Any]) -> None:
        reply = handler.handle(self._broker, request)
        if reply.awaitable is not None:
            request.exchange.is_task = True
            self._run(self._complete_when_done(reply))
        elif reply.response is not None:
            reply.complete(reply.response)
        else:
            reply.wait()

    async def _handle_after(self, initial_metadata: InitialMetadata, handler: Handler, request: Request[Any]) -> None:
        await initial_metadata.wait()
        try:
            self._handle(handler, request)
        except Exception as error:
            self._fail(request, error)

    def _dispatch_later(self, handler: Handler, exchange: Exchange, header: framing.RequestFrame, usage: RequestUsage | None) -> None:
        """Takes a long request out of the queue, so that it does not keep short ones out. If the waiting long requests hold more than
        WAITING_BYTES_MAX, it stays in the queue until its first turn, unless the initial metadata is missing: then no turn is certain."""
        exchange.hold_next()
        exchange.is_task = True
        cluster = self._broker.cluster
        if self._waiting_bytes + exchange.size <= WAITING_BYTES_MAX or (cluster is not None and not cluster.initial_metadata.is_complete):
            exchange.leave_queue()
        self._waiting_bytes += exchange.size
        self._run(self._handle_many(handler, exchange, header, usage))

    async def _handle_many(self, handler: Handler, exchange: Exchange, header: framing.RequestFrame, usage: RequestUsage | None) -> None:
        """Handles a request of many elements or megabytes, which takes a turn of the loop even to parse."""
        turns, cluster = self._broker.turns, self._broker.cluster
        if cluster is not None and header.api.key not in AT_ONCE:
            await cluster.initial_metadata.wait()
        await turns.next(header)
        self._waiting_bytes -= exchange.size
        exchange.leave_queue()
        try:
            elements_max = header.elements_max(exchange.connection.listener_name in self._listeners_of_brokers)
            request: Request[Any] = Request(exchange, header, header.message(elements_max))
            request.usage = usage
        except MalformedMessage as error:
            _log.warning("Closing connection %s on listener %s: %s", exchange.connection.id, exchange.connection.listener_name, error)
            exchange.close_connection()
            return
        if self._kinds is not None:
            exchange.dequeued_ns = perf_counter_ns()
            self._measure(self._kinds, request)
        if self._request_log is not None and self._request_log.is_on:
            self._request_log.watch(request)
        # A request of megabytes with few elements is not divided: offsets that are too large together must be refused together.
        is_divided = elements_max - header.reader.elements_left > ELEMENTS_AT_ONCE
        try:
            if is_divided and handler.handle_many is not None:
                reply = handler.handle_many(self._broker, request)
            elif is_divided and handler.parts is not None:
                reply = Reply.awaiting(request, self._handle_parts(handler, handler.parts, request, header))
            else:
                reply = handler.handle(self._broker, request)
            response = await reply.result()
            if response is None:
                reply.wait()
            else:
                await turns.next(request, is_broker=_is_broker(request))  # writing it takes as long as parsing the request did
                await self._complete(reply, response)
        except Exception as error:
            self._fail(request, error)

    async def _handle_parts(self, handler: Handler, parts: Parts, request: Request[Any], header: framing.RequestFrame) -> Message:
        """Handles each part in a turn of its own. A part that waits for replicas or a coordinator does not delay the next part."""
        loop, turns, is_broker = asyncio.get_running_loop(), self._broker.turns, _is_broker(request)
        answers: list[asyncio.Future[Message]] = []
        for message in parts.of(request.message):
            await turns.next(request, is_broker=is_broker)
            answer: asyncio.Future[Message] = loop.create_future()
            answers.append(answer)
            part: Request[Any] = RequestPart(request.exchange, header, message, answer.set_result)
            reply = handler.handle(self._broker, part)
            part_response = await reply.result()
            if part_response is not None:
                reply.complete(part_response)
        joined = parts.joined(await answers[0])
        for answer in answers[1:]:
            part_answer = await answer
            await turns.next(request, is_broker=is_broker)
            joined.add(part_answer)
        response: Message = joined.whole
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
        task = asyncio.ensure_future(self._broker.turns.counted(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _complete_when_done(self, reply: Reply[Any]) -> None:
        try:
            response = await reply.result()
            if response is None:
                reply.wait()
            else:
                await self._complete(reply, response)
        except Exception as error:
            self._fail(reply.request, error)

    async def _complete(self, reply: Reply[Any], response: Message) -> None:
        """Sends a response that may be long. Compiled messages are written in one call, the others in slices."""
        request = reply.request
        name = None if request.api.key in WRITTEN_AT_ONCE else longest_list(response)
        if name is None:
            reply.complete(response)
            return
        request.charge(response)
        header_version = request.api.response_header_version(request.version)
        work = frame_in_slices(response, name, request.correlation_id, request.version, header_version)
        try:
            frame = await self._broker.turns.run(work, request, is_broker=_is_broker(request))
        except KafkaError:
            reply.complete(response)  # which shortens its error texts, or closes the connection
            return
        if (metrics := request.exchange.metrics) is not None:
            count_errors(metrics.errors, response, request.exchange.version)
        if (watcher := request.exchange.watcher) is not None:
            watcher.response_made(response)
        reply.complete_with_frame(frame)

    def _fail(self, request: Request[Any], error: Exception) -> None:
        if not isinstance(error, KafkaError):
            _log.error("Handling %s failed", request, exc_info=error)
        self._refuse(request, error)

    def _refuse(self, request: Request[Any], error: Exception) -> None:
        """Responds with the error, if the response has an error of the whole in this version; else closes the connection."""
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        kind = request.api.response  # in two steps: mypyc compiles the call of a property's value as a method call
        response: Any = kind()
        without = serialize(response, request.version)
        if "error_code" in response.field_names():
            response.error_code = int(code)
        if serialize(response, request.version) == without:  # no such field, or not in this version
            request.exchange.close_connection()
        else:
            request.respond(response)


def _is_broker(request: Request[Any]) -> bool:
    """Whether a request in parts comes from a broker, or claims to. The Fetch handler checks for itself."""
    key = request.api.key
    if key == api_keys.OFFSET_FOR_LEADER_EPOCH:
        replica_id: int = request.message.replica_id
        return replica_id >= 0
    return key == api_keys.WRITE_TXN_MARKERS or (key == api_keys.ADD_PARTITIONS_TO_TXN and request.version >= _OF_BROKERS_VERSION)
