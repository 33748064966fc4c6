"""The real broker in a simulated world: it serves, crashes, loses power and restarts. One seed is one history."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.records.reader import records_of
from barnabas.simulation.checkers import EnoughReplicas
from barnabas.simulation.client import SimulatedConnection
from barnabas.simulation.cluster import PORT, SimulatedCluster
from barnabas.storage.log import log as storage_log
from barnabas.storage.log.fetch import read_segments
from barnabas.storage.log_manager import AllLogDirsFailed
from barnabas.topic_partition import TopicPartition

TOPIC = "t"


async def create(connection: SimulatedConnection, **configs: str) -> None:
    from barnabas.protocol.messages.create_topics_request import CreatableTopicConfig

    creatable_topic = CreatableTopic(
        TOPIC, 1, 1, configs=[CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()]
    )
    answer = await connection.ask(CreateTopicsRequest([creatable_topic], 10_000), 5)
    assert answer.topics[0].error_code == 0, answer


async def produce(connection: SimulatedConnection, value: bytes) -> int:
    batch = build([(1_700_000_000_000, None, value, ())])
    data = TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, Records(batch))])
    answer = (await connection.ask(ProduceRequest(None, -1, 10_000, [data]), 9)).responses[0].partition_responses[0]
    assert answer.error_code == 0, answer
    offset: int = answer.base_offset
    return offset


async def read(connection: SimulatedConnection) -> list[bytes | None]:
    fetch_topic = FetchTopic(TOPIC, partitions=[FetchPartition(0, partition_max_bytes=1 << 20)])
    answer = await connection.ask(FetchRequest(max_wait_ms=0, max_bytes=1 << 20, topics=[fetch_topic]), 11)
    partition = answer.responses[0].partitions[0]
    assert partition.error_code == 0, partition
    return [record.value for record in records_of(partition.records.to_bytes())]


def started(seed: int = 1, **settings: str) -> SimulatedCluster:
    cluster = SimulatedCluster(seed, settings={name.replace("_", "."): value for name, value in settings.items()})
    cluster.brokers[1].start()
    return cluster


def in_client(cluster: SimulatedCluster, doing: Any) -> Any:
    """Runs `doing(connection)` in a client process of its own."""

    async def connected() -> Any:
        connection = await SimulatedConnection.to("broker-1", PORT)
        try:
            return await doing(connection)
        finally:
            connection.close()

    return cluster.process("client").run_until_complete(connected())


async def write_ten(connection: SimulatedConnection) -> list[bytes]:
    await create(connection)
    values = [b"%d" % number for number in range(10)]
    assert [await produce(connection, value) for value in values] == list(range(10))
    return values


def test_a_broker_serves_in_no_time() -> None:
    cluster = started()
    values = in_client(cluster, write_ten)
    assert in_client(cluster, read) == values
    assert cluster.world.failures == []


def test_a_clean_stop_keeps_everything() -> None:
    cluster = started()
    values = in_client(cluster, write_ten)
    cluster.brokers[1].stop()
    cluster.brokers[1].start()
    assert in_client(cluster, read) == values


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_process_loses_nothing_that_it_acknowledged(seed: int) -> None:
    cluster = started(seed)
    values = in_client(cluster, write_ten)
    cluster.brokers[1].kill()
    cluster.world.run_for(10)  # its session expires, and its node with it
    cluster.brokers[1].start()
    assert in_client(cluster, read) == values


@pytest.mark.parametrize("seed", range(5))
def test_with_every_message_flushed_a_power_loss_loses_nothing_that_was_acknowledged(seed: int) -> None:
    async def write(connection: SimulatedConnection) -> list[bytes]:
        await create(connection, flush_messages="1")
        for number in range(10):
            await produce(connection, b"%d" % number)
        await asyncio.sleep(5)
        return [b"%d" % number for number in range(10)]

    cluster = started(seed)
    values = in_client(cluster, write)
    cluster.brokers[1].lose_power()
    cluster.world.run_for(10)
    cluster.brokers[1].start()
    assert in_client(cluster, read) == values


CORRUPT_MESSAGE = 2
LARGE = 300_000  # bytes of a record, so that three fill a segment of the smallest size


async def read_on(connection: SimulatedConnection, end: int) -> tuple[list[int], list[int]]:
    """The offsets of all records, as a reader gets them that goes on after an error, and those at which it got CORRUPT_MESSAGE."""
    offsets: list[int] = []
    refused: list[int] = []
    offset = 0
    while offset < end:
        fetch_topic = FetchTopic(TOPIC, partitions=[FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)])
        answer = await connection.ask(FetchRequest(max_wait_ms=0, max_bytes=1 << 20, topics=[fetch_topic]), 11)
        partition = answer.responses[0].partitions[0]
        if partition.error_code:
            assert partition.error_code == CORRUPT_MESSAGE
            refused.append(offset)
            offset += 1
            continue
        got = [record.offset for record in records_of(partition.records.to_bytes()) if record.offset >= offset]
        offsets += got
        offset = got[-1] + 1
    return offsets, refused


def read_after_a_cut(cut_to: int) -> tuple[list[int], list[int]]:
    """A segment in the middle is cut while the broker is stopped."""
    cluster = started()
    broker = cluster.brokers[1]

    async def write(connection: SimulatedConnection) -> None:
        await create(connection, segment_bytes="1048576")
        for _ in range(10):
            await produce(connection, bytes(LARGE))

    in_client(cluster, write)
    broker.stop()
    file = broker.files.open("/data/t-0/00000000000000000003.log")
    file.truncate(cut_to)
    file.close()
    broker.start()
    found: tuple[list[int], list[int]] = in_client(cluster, lambda connection: read_on(connection, 10))
    return found


@pytest.mark.parametrize("cut_to", [2 * LARGE + 200, LARGE // 2, 0])
def test_a_reader_is_told_of_a_segment_that_was_cut_while_the_broker_was_stopped(cut_to: int) -> None:
    found, refused = read_after_a_cut(cut_to)
    assert sorted([*found, *refused]) == list(range(10)) and 5 in refused


@pytest.mark.plain_python
def test_a_broker_that_passes_over_what_was_cut_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same reader finds the known mistake."""
    monkeypatch.setattr(storage_log, "read_segments", lambda *arguments: read_segments(*[*arguments[:-2], False, False]))
    found, refused = read_after_a_cut(2 * LARGE + 200)
    assert sorted([*found, *refused]) != list(range(10))


def test_one_seed_is_one_history_of_a_broker() -> None:
    def history(seed: int) -> tuple[int, int]:
        cluster = started(seed)
        in_client(cluster, write_ten)
        cluster.brokers[1].kill()
        cluster.world.run_for(10)
        cluster.brokers[1].start()
        in_client(cluster, read)
        return cluster.world.trace, cluster.world.steps

    assert history(3) == history(3)
    assert history(3) != history(4)


def test_the_end_of_a_log_in_a_failed_directory_is_read_from_its_disk() -> None:
    cluster = started()
    in_client(cluster, write_ten)
    broker = cluster.brokers[1]
    assert broker.broker is not None
    with pytest.raises(AllLogDirsFailed):
        broker.broker.replica_manager.log_manager.disk_failed(
            "/data", "Error while testing", OSError(errno.ENOSPC, "No space left on device")
        )
    checker = EnoughReplicas(cluster, min_insync_replicas=1)
    checker.acknowledged(TopicPartition(TOPIC, 0), 9)
    assert checker.wrong == []
    checker.acknowledged(TopicPartition(TOPIC, 0), 10)
    assert checker.wrong == ["offset 10 of t-0 was acknowledged when only [] had it"]
