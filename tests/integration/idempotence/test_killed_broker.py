"""What a broker that was killed knows of its producers: of each the last batch, as Apache Kafka does. Snapshots hold no more than that."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.builder import BatchBuilder
from barnabas.uuid import Uuid
from benchmarks.wire import Client
from tests.chaos import topics
from tests.chaos.mortal import MortalBroker, mortal
from tests.error_codes import code_of

TOPIC = "t"
BATCHES = 4
TIMEOUT_S = 60
NOT_YET = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def client_of(broker: MortalBroker) -> Client:
    host, _, port = broker.bootstrap.rpartition(":")
    return Client(host, int(port))


def producer_id(broker: MortalBroker) -> int:
    deadline = time.monotonic() + TIMEOUT_S
    with client_of(broker) as client:
        while (answer := client.ask(InitProducerIdRequest(None, 60_000), 4)).error_code in NOT_YET:
            assert time.monotonic() < deadline
        assert answer.error_code == ErrorCode.NONE
        return int(answer.producer_id)


def produce(broker: MortalBroker, producer: int, sequence: int) -> ErrorCode:
    builder = BatchBuilder(producer_id=producer, producer_epoch=0, base_sequence=sequence)
    builder.append(int(time.time() * 1000), None, b"%d" % sequence)
    data = [PartitionProduceData(0, Records(builder.build()))]
    deadline = time.monotonic() + TIMEOUT_S
    with client_of(broker) as client:
        while True:
            answer = client.ask(ProduceRequest(None, -1, 30_000, [TopicProduceData(TOPIC, Uuid.ZERO, data)]), 9)
            code = code_of(answer.responses[0].partition_responses[0].error_code)
            if code not in NOT_YET:
                return code
            assert time.monotonic() < deadline


@pytest.mark.parametrize("kind", ["barnabas", "kafka"])
def test_a_retry_of_another_than_the_last_batch_is_out_of_order_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("BARNABAS_CHAOS_BROKER", kind)
    with mortal(tmp_path) as broker:
        topics.make_topics(broker.bootstrap, [TOPIC], 1)
        producer = producer_id(broker)
        assert [produce(broker, producer, sequence) for sequence in range(BATCHES)] == [ErrorCode.NONE] * BATCHES
        assert [produce(broker, producer, sequence) for sequence in range(BATCHES)] == [ErrorCode.NONE] * BATCHES  # as retries
        broker.kill_and_start()
        outcomes = [produce(broker, producer, sequence) for sequence in range(BATCHES + 1)]
        assert outcomes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * (BATCHES - 1) + [ErrorCode.NONE] * 2
        assert topics.values(broker.bootstrap, TOPIC, 1, topics.COMMITTED) == [[str(sequence) for sequence in range(BATCHES + 1)]]
