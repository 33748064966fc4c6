"""Every request gets a response, or its connection is closed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.broker.handlers import HANDLERS, Handler
from barnabas.broker.requests.reply import Reply
from barnabas.broker.requests.sliced_response import ELEMENTS_PER_SLICE
from barnabas.broker.topics.initial_metadata import InitialMetadata
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.errors import InvalidRequest
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode, MalformedMessage
from barnabas.protocol.framing import request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.describe_configs_request import DescribeConfigsRequest
from barnabas.protocol.messages.describe_configs_response import DescribeConfigsResponse, DescribeConfigsResult
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.produce_request import ProduceRequest
from barnabas.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from barnabas.protocol.registry import APIS, BY_NAME
from tests.unit.broker.handlers.asking import Closed, a_broker, dispatched, read, topic, update


def frame(request: Message, version: int) -> bytes:
    return b"".join(request_frame(request, BY_NAME[type(request).__name__.removesuffix("Request")], version, 17, "client"))[4:]


def failing(error: Exception) -> Handler:
    async def fail() -> Message:
        raise error

    handler = Handler("describe_cluster")
    handler.handle = lambda broker, request: Reply.awaiting(request, fail())
    return handler


def test_produce_and_what_brokers_ask_about_transactions_may_be_pipelined() -> None:
    dispatcher = RequestDispatcher(a_broker())
    assert dispatcher.is_pipelinable(frame(ProduceRequest(), 9))
    assert dispatcher.is_pipelinable(frame(WriteTxnMarkersRequest(), 1))
    assert dispatcher.is_pipelinable(frame(AddPartitionsToTxnRequest(), 4))
    assert not dispatcher.is_pipelinable(frame(MetadataRequest(), 9))


def test_brokers_may_ask_about_more_than_clients_by_a_listener_of_their_own() -> None:
    asked = [
        AddPartitionsToTxnTransaction(f"t{number}", number, 0, True, [AddPartitionsToTxnTopic("no such topic", [0])])
        for number in range(4_000)
    ]

    async def scenario() -> None:
        dispatcher = RequestDispatcher(a_broker(), frozenset({"OURS"}))
        request = frame(AddPartitionsToTxnRequest(transactions=asked), 5)
        answer = read(await dispatched(dispatcher, request, "OURS"), AddPartitionsToTxnResponse, 5)
        assert len(answer.results_by_transaction) == len(asked)
        with pytest.raises(Closed):
            await dispatched(dispatcher, request, "CLIENTS")

    asyncio.run(scenario())


def test_a_clients_produce_waits_for_its_adding_of_partitions() -> None:
    assert not RequestDispatcher(a_broker()).is_pipelinable(frame(AddPartitionsToTxnRequest(), 3))


@pytest.mark.parametrize("key", sorted(APIS.keys() - HANDLERS.keys()))
def test_an_api_that_is_not_served_closes_the_connection(key: int) -> None:
    header = key.to_bytes(2, "big") + APIS[key].highest_version.to_bytes(2, "big") + b"\0\0\0\1\0\0\0\0\0\0"
    with pytest.raises(MalformedMessage, match=f"key {key}"):
        asyncio.run(dispatched(RequestDispatcher(a_broker()), header))


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_every_api_of_the_table_has_its_module(key: int) -> None:
    assert callable(Handler(HANDLERS[key]).handle)


@pytest.mark.parametrize("key", sorted(set(HANDLERS) - {api_keys.API_VERSIONS}))
def test_a_version_that_does_not_exist_closes_the_connection(key: int) -> None:
    header = key.to_bytes(2, "big") + (APIS[key].highest_version + 1).to_bytes(2, "big") + b"\0\0\0\1\0\0"
    with pytest.raises(MalformedMessage, match="unsupported version"):
        asyncio.run(dispatched(RequestDispatcher(a_broker()), header))


@pytest.mark.parametrize(
    ("error", "code"),
    [(InvalidRequest("no"), ErrorCode.INVALID_REQUEST), (RuntimeError("a fault of ours"), ErrorCode.UNKNOWN_SERVER_ERROR)],
)
def test_a_handler_that_fails_while_it_waits_is_answered_for(error: Exception, code: ErrorCode) -> None:
    async def scenario() -> int:
        dispatcher = RequestDispatcher(a_broker())
        dispatcher._handlers[api_keys.DESCRIBE_CLUSTER] = failing(error)
        answer = await dispatched(dispatcher, frame(DescribeClusterRequest(), 0))
        return read(answer, DescribeClusterResponse, 0).error_code

    assert asyncio.run(scenario()) == code


def test_a_failure_that_the_response_cannot_carry_closes_the_connection() -> None:
    async def scenario() -> None:
        dispatcher = RequestDispatcher(a_broker())
        dispatcher._handlers[api_keys.METADATA] = failing(RuntimeError("a fault of ours"))
        with pytest.raises(Closed):
            await dispatched(dispatcher, frame(MetadataRequest(), 9))

    asyncio.run(scenario())


def test_a_broker_that_has_just_joined_keeps_its_clients_waiting_until_it_knows_what_there_is() -> None:
    async def scenario() -> None:
        initial_metadata = InitialMetadata(0, MetadataCache(0), TreeClient(LocalTree(now_ms=lambda: 0), lambda: None))
        broker = a_broker(cluster=SimpleNamespace(initial_metadata=initial_metadata))
        dispatcher = RequestDispatcher(broker)
        assert read(await dispatched(dispatcher, frame(ApiVersionsRequest(), 2)), ApiVersionsResponse, 2).api_keys
        asked = asyncio.ensure_future(dispatched(dispatcher, frame(DescribeClusterRequest(), 0)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not asked.done()
        initial_metadata._cache.update(update(topic("t")))
        assert read(await asked, DescribeClusterResponse, 0).cluster_id

    asyncio.run(scenario())


def test_an_answer_that_cannot_be_written_closes_the_connection_and_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        dispatcher = RequestDispatcher(a_broker())
        handler = Handler("describe_cluster")
        handler.handle = lambda broker, request: Reply.now(request, DescribeClusterResponse(cluster_id="x" * 40_000))
        dispatcher._handlers[api_keys.DESCRIBE_CLUSTER] = handler
        with pytest.raises(Closed):
            await dispatched(dispatcher, frame(DescribeClusterRequest(), 0))

    asyncio.run(scenario())
    assert "cannot be sent" in caplog.text


def test_an_error_text_that_is_too_long_is_cut() -> None:
    async def scenario() -> None:
        dispatcher = RequestDispatcher(a_broker())
        handler = Handler("describe_cluster")
        handler.handle = lambda broker, request: Reply.now(request, DescribeClusterResponse(error_code=42, error_message="é" * 40_000))
        dispatcher._handlers[api_keys.DESCRIBE_CLUSTER] = handler
        response = read(await dispatched(dispatcher, frame(DescribeClusterRequest(), 0)), DescribeClusterResponse, 0)
        assert (response.error_code, response.error_message) == (42, "é" * 16_383)

    asyncio.run(scenario())


@pytest.mark.parametrize("count", [1, ELEMENTS_PER_SLICE + 1])
def test_error_texts_of_parts_are_cut_too(count: int) -> None:
    async def scenario() -> None:
        dispatcher = RequestDispatcher(a_broker())
        handler = Handler("describe_cluster")
        results = [DescribeConfigsResult(42, "x" * 40_000, 2, "topic") for _ in range(count)]
        handler.handle = lambda broker, request: Reply.awaiting(request, _later(DescribeConfigsResponse(results=results)))
        dispatcher._handlers[api_keys.DESCRIBE_CONFIGS] = handler
        response = read(await dispatched(dispatcher, frame(DescribeConfigsRequest(), 4)), DescribeConfigsResponse, 4)
        assert [len(result.error_message or "") for result in response.results] == [32_767] * count

    asyncio.run(scenario())


async def _later(response: DescribeConfigsResponse) -> DescribeConfigsResponse:
    return response
