"""Kafka's KafkaApis: gives each request to the handler of its API, and sees to it that it gets an answer or its connection is closed.

It stands between the network layer, which knows frames, and the handlers, which know messages. It decides nothing itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers import AT_ONCE, CONTROL, HANDLERS, Handler
from barnabas.broker.request import Request
from barnabas.errors import KafkaError
from barnabas.network.exchange import Exchange
from barnabas.protocol.errors import ErrorCode, MalformedMessage
from barnabas.protocol.framing import parse_request
from barnabas.protocol.message import Message, serialize

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.introduction import Introduction

_log = logging.getLogger(__name__)

_PRODUCE: Final = b"\x00\x00"  # its API key, the first bytes of the frame


class RequestDispatcher:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._handlers: dict[int, Handler] = {}
        self._running: set[asyncio.Task[None]] = set()  # tasks that nobody holds may be collected

    def is_pipelinable(self, frame: bytes) -> bool:
        return frame[:2] == _PRODUCE

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        header = parse_request(frame)
        handler = self._handlers.get(header.api.key) or self._handler(header.api.key)
        if header.is_unsupported_api_versions:
            request: Request[Any] = Request(exchange, header, None)
        else:
            request = Request(exchange, header, header.message())
        if header.api.key in AT_ONCE or (cluster := self._broker.cluster) is None or cluster.introduction.is_over:
            self._handle(handler, request)
        else:
            exchange.leave_queue()  # the controller must be heard, however many wait for it
            self._run(self._handle_after(cluster.introduction, handler, request))

    def _handle(self, handler: Handler, request: Request[Any]) -> None:
        result = handler.handle(self._broker, request)
        if result is None:
            return
        if isinstance(result, Message):
            request.respond(result)
        else:
            self._run(self._respond_when_done(request, result))

    async def _handle_after(self, introduction: Introduction, handler: Handler, request: Request[Any]) -> None:
        await introduction.wait()
        try:
            self._handle(handler, request)
        except Exception as error:
            self._fail(request, error)

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

    async def _respond_when_done(self, request: Request[Any], response: Awaitable[Message]) -> None:
        try:
            request.respond(await response)
        except Exception as error:
            self._fail(request, error)

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
