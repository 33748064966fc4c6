from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.transactions.producer_ids import ProducerIdManager
from barnabas.coordinator.transaction.config import TransactionConfig
from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
from barnabas.metadata import paths
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from tests.unit.broker.handlers.asking import a_broker, ask
from tests.unit.coordinator.coordinator_host import MemoryLog, Time
from tests.unit.coordinator.transaction.transaction_host import Partitions


def initialized(*requests: InitProducerIdRequest, version: int = 5, block: bytes | None = None) -> list[InitProducerIdResponse]:
    async def scenario() -> list[InitProducerIdResponse]:
        broker = a_broker()
        await broker.tree.connect()
        await broker.tree.create(paths.PRODUCER_ID_BLOCK, block)
        broker.transactions = coordinator(ProducerIdManager(0, broker.tree))
        return [await ask(broker, request, InitProducerIdResponse, version) for request in requests]

    return asyncio.run(scenario())


def coordinator(producer_ids: ProducerIdManager) -> TransactionCoordinator:
    """One that leads no partition of its topic."""
    time = Time()
    made = TransactionCoordinator(
        TransactionConfig(),
        MemoryLog(),
        time,
        time,
        producer_ids,
        Partitions(),
        transaction_version=lambda: 2,
        offsets_partition=lambda group_id: 0,
    )
    made.start(50)
    return made


def refused(error: ErrorCode) -> list[InitProducerIdResponse]:
    return [InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)]


@pytest.mark.parametrize("version", range(6))
def test_every_call_gives_a_new_id_with_epoch_0(version: int) -> None:
    request = InitProducerIdRequest(None, 1000)
    assert initialized(request, request, version=version) == [InitProducerIdResponse(producer_id=producer_id) for producer_id in (0, 1)]


def test_a_producer_that_tells_its_old_id_gets_a_new_one_all_the_same() -> None:
    assert initialized(InitProducerIdRequest(None, 1000, 500, 3)) == [InitProducerIdResponse(producer_id=0)]


def test_the_timeout_of_a_producer_without_transactions_does_not_matter() -> None:
    assert initialized(InitProducerIdRequest(None, -1)) == [InitProducerIdResponse(producer_id=0)]


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 3)])
def test_id_and_epoch_come_together_or_not_at_all(producer_id: int, epoch: int) -> None:
    assert initialized(InitProducerIdRequest(None, 1000, producer_id, epoch)) == refused(ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("version", range(6))
def test_an_empty_transactional_id_is_refused(version: int) -> None:
    assert initialized(InitProducerIdRequest("", 1000), version=version) == refused(ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_transaction_may_last_for_transaction_max_timeout_ms(timeout_ms: int) -> None:
    assert initialized(InitProducerIdRequest("t", timeout_ms)) == refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_producer_is_sent_to_look_for_its_coordinator(version: int) -> None:
    assert initialized(InitProducerIdRequest("t", 1000), version=version) == refused(ErrorCode.NOT_COORDINATOR)


def test_a_tree_that_gives_no_ids_is_answered_and_not_hung_on() -> None:
    assert initialized(InitProducerIdRequest(None, 1000), block=b"?") == refused(ErrorCode.UNKNOWN_SERVER_ERROR)
