"""Batches that take some turns of the loop, in a simulated world: what one client sends on one connection keeps its order, and another
client is served meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.registry import BY_NAME
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.records.codecs.compression import FIRST_LOOK, GZIP
from barnabas.simulation.client import SimulatedConnection
from barnabas.simulation.cluster import PORT, SimulatedCluster
from barnabas.simulation.conversations import Frames
from tests.simulation import mistakes
from tests.simulation.test_broker import TOPIC, create, produce, started

REQUESTS = 6
LARGE = bytes(FIRST_LOOK)
PRODUCE = BY_NAME["Produce"]
TRANSACTION_VERSION_2 = 12  # from this version of Produce on, the broker adds the partition to the transaction
TRANSACTIONAL_ID = "orders-1"


class Pipeline(asyncio.Protocol):
    """Sends its requests all at once, and collects the answers."""

    def __init__(self, requests: list[bytes], version: int) -> None:
        self.answers: list[Any] = []
        self.all_came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._requests = requests
        self._version = version
        self._frames = Frames()

    def connection_made(self, transport: Any) -> None:
        transport.write(b"".join(self._requests))

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.cut(data):
            _, reader = parse_response_header(frame, PRODUCE.response_header_version(self._version))
            answer: Any = PRODUCE.response.read(reader, self._version)
            self.answers.append(answer.responses[0].partition_responses[0])
        if len(self.answers) == len(self._requests):
            self.all_came.set_result(None)


def request(producer: InitProducerIdResponse, sequence: int, transactional_id: str | None, version: int) -> bytes:
    """Every second one unfolds into a megabyte."""
    value, codec = (LARGE, GZIP) if sequence % 2 == 0 else (b"small", 0)
    batch = build(
        [(1_700_000_000_000, None, value, ())],
        codec=codec,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence,
        transactional=transactional_id is not None,
    )
    data = TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, Records(batch))])
    return b"".join(request_frame(ProduceRequest(transactional_id, -1, 10_000, [data]), PRODUCE, version, sequence, "pipeline"))


async def initialized(connection: SimulatedConnection, transactional_id: str | None) -> InitProducerIdResponse:
    """A producer; that of transactions as soon as its id has a coordinator."""
    while True:
        if transactional_id is not None:
            await connection.ask(FindCoordinatorRequest(transactional_id, 1), 3)
        producer: InitProducerIdResponse = await connection.ask(InitProducerIdRequest(transactional_id, 60_000), 4)
        if producer.error_code == 0:
            return producer
        await asyncio.sleep(0.1)


async def pipelined(connection: SimulatedConnection, transactional_id: str | None) -> list[Any]:
    version = 9 if transactional_id is None else TRANSACTION_VERSION_2
    producer = await initialized(connection, transactional_id)
    frames = [request(producer, sequence, transactional_id, version) for sequence in range(REQUESTS)]
    _, pipeline = await asyncio.get_running_loop().create_connection(lambda: Pipeline(frames, version), "broker-1", PORT)
    other = asyncio.ensure_future(_small_ones(connection))
    await asyncio.wait_for(pipeline.all_came, 60)
    await other
    return pipeline.answers


async def _small_ones(connection: SimulatedConnection) -> None:
    for number in range(REQUESTS):
        await produce(connection, b"other %d" % number)


def run(seed: int, transactional_id: str | None = None) -> None:
    cluster = started(seed, log_flush_interval_messages="1")  # so that a coordinator answers in a later turn of the loop

    async def history() -> list[Any]:
        connection = await SimulatedConnection.to("broker-1", PORT)
        await create(connection)
        return await pipelined(connection, transactional_id)

    answers = cluster.process("client").run_until_complete(history())
    assert [answer.error_code for answer in answers] == [0] * REQUESTS
    offsets = [answer.base_offset for answer in answers]
    assert offsets == sorted(offsets)
    assert cluster.world.failures == []
    assert _turns(cluster) >= REQUESTS // 2 * (FIRST_LOOK // (512 * 1024))


def _turns(cluster: SimulatedCluster) -> int:
    server = cluster.brokers[1].server
    assert server is not None
    return server.broker.turns.taken


@pytest.mark.parametrize("seed", range(2))
def test_a_long_append_keeps_the_order_of_its_connection(seed: int) -> None:
    run(seed)


@pytest.mark.parametrize("seed", range(2))
def test_a_long_append_whose_transaction_has_to_be_verified_first_keeps_it_too(seed: int) -> None:
    run(seed, TRANSACTIONAL_ID)


@pytest.mark.plain_python
@pytest.mark.parametrize("mistake", [mistakes.let_the_next_request_overtake_a_long_one, mistakes.look_at_everything_in_one_turn])
def test_a_known_mistake_is_found(mistake: Callable[[], Any]) -> None:
    with mistake(), pytest.raises(AssertionError):
        run(0)
