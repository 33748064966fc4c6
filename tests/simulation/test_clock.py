"""A wrong wall clock that is set while the broker runs does not disturb the broker's periodic work."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.simulation.checkers import log_of
from barnabas.simulation.client import SimulatedConnection
from barnabas.simulation.cluster import PORT, SimulatedCluster
from barnabas.simulation.world import START_S
from barnabas.topic_partition import TopicPartition

TOPIC = TopicPartition("t", 0)
RECORDS, DELETED = 10, 6
DAY_S = 86_400.0
STEPS_S = [-3600.0, 30 * DAY_S]
CHECKPOINTED_S = 70.0  # more than log.flush.start.offset.checkpoint.interval.ms
RETAINED_S = 340.0  # more than log.retention.check.interval.ms


@pytest.fixture
def cluster() -> Generator[SimulatedCluster, None, None]:
    cluster = SimulatedCluster(1)
    yield cluster
    cluster.world.end()


def ask(cluster: SimulatedCluster, doing: Callable[[SimulatedConnection], Any]) -> Any:
    async def asked() -> Any:
        connection = await SimulatedConnection.to("broker-1", PORT)
        try:
            return await doing(connection)
        finally:
            connection.close()

    return cluster.process("client").run_until_complete(asked())


def write(cluster: SimulatedCluster, size: int = 10, **configs: str) -> None:
    async def written(connection: SimulatedConnection) -> None:
        settings = [CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()]
        made = await connection.ask(CreateTopicsRequest([CreatableTopic(TOPIC.topic, 1, 1, configs=settings)], 10_000), 5)
        assert made.topics[0].error_code == 0
        for _ in range(RECORDS):
            batch = build([(int((START_S + cluster.world.now) * 1000), None, b"x" * size, ())])
            data = TopicProduceData(TOPIC.topic, partition_data=[PartitionProduceData(0, Records(batch))])
            answer = await connection.ask(ProduceRequest(None, -1, 10_000, [data]), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0

    ask(cluster, written)


def delete_records(cluster: SimulatedCluster) -> None:
    topic = DeleteRecordsTopic(TOPIC.topic, [DeleteRecordsPartition(0, DELETED)])
    answer = ask(cluster, lambda connection: connection.ask(DeleteRecordsRequest([topic], 10_000), 2))
    assert (answer.topics[0].partitions[0].error_code, answer.topics[0].partitions[0].low_watermark) == (0, DELETED)


def log_start_offset(cluster: SimulatedCluster) -> int:
    log = log_of(cluster.brokers[1], TOPIC)
    assert log is not None
    return log.log_start_offset


def restart(cluster: SimulatedCluster) -> None:
    cluster.brokers[1].kill()
    cluster.brokers[1].start()


@pytest.mark.parametrize("ahead_s", STEPS_S)
def test_records_that_were_deleted_stay_deleted_where_the_clock_was_wrong_at_the_start(cluster: SimulatedCluster, ahead_s: float) -> None:
    broker = cluster.brokers[1]
    broker.set_clock(ahead_s)
    broker.start()
    cluster.world.run_for(2.0)
    broker.set_clock(0.0)
    write(cluster)
    delete_records(cluster)
    cluster.world.run_for(CHECKPOINTED_S)
    restart(cluster)
    assert log_start_offset(cluster) == DELETED


@pytest.mark.parametrize("ahead_s", STEPS_S)
def test_records_that_were_deleted_stay_deleted_where_the_clock_is_set(cluster: SimulatedCluster, ahead_s: float) -> None:
    broker = cluster.brokers[1]
    broker.start()
    write(cluster, retention_ms="-1")
    broker.set_clock(ahead_s)
    delete_records(cluster)
    cluster.world.run_for(CHECKPOINTED_S)
    restart(cluster)
    assert log_start_offset(cluster) == DELETED


def test_retention_goes_on_where_the_clock_is_set_back(cluster: SimulatedCluster) -> None:
    cluster.brokers[1].start()
    write(cluster, 300_000, segment_bytes="1048576", retention_bytes="1")
    cluster.brokers[1].set_clock(-3600.0)
    cluster.world.run_for(RETAINED_S)
    assert log_start_offset(cluster) > 0


def test_retention_does_not_come_early_where_the_clock_is_set_forward(cluster: SimulatedCluster) -> None:
    cluster.brokers[1].start()
    write(cluster, 300_000, segment_bytes="1048576", retention_bytes="1")
    cluster.brokers[1].set_clock(30 * DAY_S)
    cluster.world.run_for(20.0)
    assert log_start_offset(cluster) == 0


def test_a_process_that_starts_has_the_clock_of_its_machine(cluster: SimulatedCluster) -> None:
    broker = cluster.brokers[1]
    broker.set_clock(30 * DAY_S)
    for _ in range(2):
        broker.start()
        assert broker.server is not None
        assert abs(broker.server.clock.now_ms() / 1000 - START_S - cluster.world.now - 30 * DAY_S) < 1
        assert abs(broker.server.clock.monotonic_ms() / 1000 - cluster.world.now) < 1
        broker.kill()
