"""A reply is completed once: with a response, without one, or by closing the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from tests.unit.broker.handlers.asking import request_of

RESPONSE = HeartbeatResponse(error_code=27)


MESSAGE = HeartbeatRequest("g", 1, "m")


ENDINGS: list[Callable[[Reply[HeartbeatResponse]], None]] = [
    lambda reply: reply.complete(RESPONSE),
    lambda reply: reply.complete_with_frame([b"frame"]),
    lambda reply: reply.complete_without_response(),
    lambda reply: reply.close_connection(),
]


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("second", range(4))
def test_a_second_completion_raises_and_the_first_holds(first: int, second: int) -> None:
    request = request_of(MESSAGE, 4)
    reply: Reply[HeartbeatResponse] = Reply(request)
    ENDINGS[first](reply)
    sent, closes = request.exchange.response, request.exchange.closes
    with pytest.raises(RuntimeError, match="Heartbeat v4 #17 of test on test was answered twice"):
        ENDINGS[second](reply)
    assert (request.exchange.response, request.exchange.closes) == (sent, closes)


def test_completing_sends_the_response() -> None:
    request = request_of(MESSAGE, 4)
    reply: Reply[HeartbeatResponse] = Reply(request)
    assert request.exchange.response is None
    reply.complete(RESPONSE)
    assert reply.is_complete and request.exchange.response


def test_a_reply_of_now_is_left_to_the_dispatcher() -> None:
    request = request_of(MESSAGE, 4)
    reply = Reply.now(request, RESPONSE)
    assert request.exchange.response is None
    assert asyncio.run(reply.result()) is RESPONSE


@pytest.mark.parametrize("response", [RESPONSE, None])
def test_a_coroutine_gives_the_response_or_leaves_it_to_a_callback(response: HeartbeatResponse | None) -> None:
    async def work() -> HeartbeatResponse | None:
        return response

    request = request_of(MESSAGE, 4)
    assert asyncio.run(Reply.awaiting(request, work()).result()) is response


def test_a_request_leaves_the_queue_while_its_reply_waits() -> None:
    left_queue: list[None] = []
    request = request_of(MESSAGE, 4, lambda: left_queue.append(None))
    reply: Reply[HeartbeatResponse] = Reply(request)
    reply.wait()
    assert reply.is_waiting and len(left_queue) == 1
    reply.complete(RESPONSE)
    assert len(left_queue) == 1


def test_a_reply_that_is_complete_does_not_wait() -> None:
    request = request_of(MESSAGE, 4)
    reply: Reply[HeartbeatResponse] = Reply(request)
    reply.complete(RESPONSE)
    reply.wait()
    assert not reply.is_waiting
