"""The group coordinator in its broker: its topic, start and shutdown, and changes of partitions and topics."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from barnabas.broker.groups.group_caller import java_address
from barnabas.broker.handlers.produce import ADMIN_CLIENT
from barnabas.config_def import ConfigResourceType
from barnabas.coordinator import runtime
from barnabas.coordinator.group.group_metrics import CLASSIC, MODERN
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX, request_frame
from barnabas.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.protocol.messages.create_partitions_response import CreatePartitionsResponse
from barnabas.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest, LeaderAndIsrTopicState
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import ProduceResponse
from barnabas.protocol.registry import BY_NAME
from barnabas.protocol.slices import Records
from barnabas.records.batch import read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs.compression import GZIP
from barnabas.topic_name import CONSUMER_OFFSETS
from barnabas.topic_partition import TopicPartition
from tests.logged import lines_of
from tests.unit.broker.grouping import GROUP, PARTITIONS, Groups, turn_of_the_loop, with_groups
from tests.unit.broker.handlers.asking import exchange, read

OTHER_BROKER = 6


def offsets_partition(groups: Groups) -> TopicPartition:
    return TopicPartition(CONSUMER_OFFSETS, groups.broker.groups.partition_for(GROUP))


def test_the_topic_of_the_offsets_is_made_when_a_client_first_looks_for_its_coordinator(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        assert (await groups.find()).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await groups.broker.topic_creation.settled()
        found = await groups.find()
        assert (found.error_code, found.node_id) == (0, 5)
        assert groups.broker.metadata_cache.partition_count(CONSUMER_OFFSETS) == PARTITIONS
        config = groups.broker.configs.topic_properties(CONSUMER_OFFSETS)
        assert config == {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}

    with_groups(tmp_path, use)


def test_members_and_offsets_are_there_again_after_a_restart(tmp_path: Path) -> None:
    async def first(groups: Groups) -> tuple[int, str]:
        await groups.create_topic("t")
        await groups.ready()
        joined = await groups.join_alone()
        assert await groups.commit(42, joined=joined) == 0
        return joined.generation_id, joined.member_id

    async def second(groups: Groups) -> None:
        await groups.ready()
        assert (await groups.heartbeat(generation, member_id)).error_code == 0
        assert await groups.committed() == {("t", 0): 42}

    generation, member_id = with_groups(tmp_path, first)
    with_groups(tmp_path, second)


def test_a_consumer_group_is_there_again_after_a_restart(tmp_path: Path) -> None:
    async def first(groups: Groups) -> int:
        await groups.create_topic("t", 2)
        await groups.ready()
        entered = await groups.enter("m", "t")
        assert entered.assignment is not None
        assert [sorted(topic.partitions) for topic in entered.assignment.topic_partitions] == [[0, 1]]
        return entered.member_epoch

    async def second(groups: Groups) -> None:
        await groups.ready()
        answer = await groups.beat("m", epoch)
        assert (answer.error_code, answer.member_epoch) == (0, epoch)

    epoch = with_groups(tmp_path, first)
    with_groups(tmp_path, second)


def test_a_member_that_waits_for_others_is_sent_away_when_the_broker_stops(tmp_path: Path) -> None:
    async def use(groups: Groups) -> asyncio.Future[int]:
        await groups.ready()
        await groups.join_alone()
        waiting = asyncio.ensure_future(groups.join())
        await turn_of_the_loop()
        assert not waiting.done()
        return asyncio.ensure_future(_error_of(waiting))

    assert with_groups(tmp_path, use).result() == ErrorCode.NOT_COORDINATOR


async def _error_of(waiting: Awaitable[JoinGroupResponse]) -> int:
    return (await waiting).error_code


def test_who_waits_hears_at_once_that_another_broker_leads_now(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        joined = await groups.join_alone()
        waiting = asyncio.ensure_future(groups.join())
        await turn_of_the_loop()
        lead(groups, OTHER_BROKER)
        assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR
        assert (await groups.heartbeat(joined.generation_id, joined.member_id)).error_code == ErrorCode.NOT_COORDINATOR

    with_groups(tmp_path, use)


def test_a_lead_that_comes_back_brings_the_group_back(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        joined = await groups.join_alone()
        lead(groups, OTHER_BROKER)
        lead(groups, groups.broker.broker_id)
        assert await groups.commit(1, joined=joined) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await groups.ready()
        assert await groups.commit(1, joined=joined) == 0

    with_groups(tmp_path, use)


def test_a_long_log_is_loaded_in_slices_between_which_others_are_served(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        for offset in range(2_500):
            assert await groups.commit(offset) == 0
        lead(groups, OTHER_BROKER)
        lead(groups, groups.broker.broker_id)
        turns = 0
        while groups.broker.groups.list_groups(ListGroupsRequest()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            turns += 1
            await turn_of_the_loop()
        assert turns >= 2
        assert await groups.committed() == {("t", 0): 2_499}

    with_groups(tmp_path, use)


def test_the_offsets_of_a_topic_go_with_it(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.create_topic("other")
        await groups.ready()
        assert [await groups.commit(7, "t"), await groups.commit(8, "other")] == [0, 0]
        await groups.delete_topic("t")
        assert await groups.committed() == {("other", 0): 8}

    with_groups(tmp_path, use)


def test_without_its_topic_there_is_no_coordinator_and_a_new_one_begins_empty(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        assert await groups.commit(7) == 0
        await groups.delete_topic(CONSUMER_OFFSETS)
        assert await groups.commit(8) == ErrorCode.NOT_COORDINATOR
        await groups.ready()
        assert await groups.committed() == {}
        assert await groups.commit(9) == 0

    with_groups(tmp_path, use)


@pytest.mark.parametrize("partitions", [1, PARTITIONS + 1])
def test_a_topic_that_somebody_made_with_other_partitions_is_used_as_it_is(tmp_path: Path, partitions: int) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.create_topic(CONSUMER_OFFSETS, partitions)
        await groups.ready()
        assert await groups.commit(7) == 0
        assert groups.broker.groups.partition_for(GROUP) == ord(GROUP) % partitions

    with_groups(tmp_path, use)


def test_a_commit_is_answered_when_it_is_on_disk_where_the_settings_ask_for_it(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        log = groups.broker.replica_manager.log_manager.get(offsets_partition(groups))
        assert log is not None
        for offset in range(3):
            assert await groups.commit(offset) == 0
            assert log.recovery_point == log.log_end_offset > 0

    with_groups(tmp_path, use, log_flush_interval_messages="1")


def test_records_are_compressed_as_the_settings_say(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        assert await groups.commit(7) == 0
        partition = offsets_partition(groups)
        (batch,) = read_batches((tmp_path / str(partition) / f"{0:020}.log").read_bytes())
        assert batch.codec == GZIP

    with_groups(tmp_path, use, offsets_topic_compression_codec=str(GZIP))


def test_a_member_without_an_id_gets_one_of_the_form_its_protocol_has_in_kafka(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        classic = (await groups.join()).member_id
        assert re.fullmatch(r"test-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", classic)
        entered = await groups.enter("", "t", version=0, group_id="other")
        assert re.fullmatch(r"[A-Za-z0-9_-]{22}", entered.member_id or "")

    with_groups(tmp_path, use, offsets_topic_num_partitions="1")


def test_a_consumer_group_hears_of_new_partitions_and_of_new_topics(tmp_path: Path) -> None:
    async def owned(groups: Groups, epoch: int) -> tuple[int, dict[str, list[int]]]:
        answer = await groups.beat("m", epoch, rebalance_timeout_ms=60_000, subscribed_topic_names=["t", "later"], topic_partitions=[])
        assert answer.error_code == 0 and answer.assignment is not None
        names = groups.broker.metadata_cache.topic_name
        return answer.member_epoch, {names(topic.topic_id) or "": topic.partitions for topic in answer.assignment.topic_partitions}

    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        epoch, assigned = await owned(groups, 0)
        assert assigned == {"t": [0]}
        more = CreatePartitionsRequest([CreatePartitionsTopic("t", 2, None)], 10_000)
        created = await groups.ask(more, CreatePartitionsResponse, 3)
        assert [topic.error_code for topic in created.results] == [0]
        epoch, assigned = await owned(groups, epoch)
        assert assigned == {"t": [0, 1]}
        await groups.create_topic("later")
        epoch, assigned = await owned(groups, epoch)
        assert assigned == {"t": [0, 1], "later": [0]}

    with_groups(tmp_path, use)


def test_the_settings_of_a_group_win_over_the_broker_s(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        assert (await groups.enter("m", "t")).heartbeat_interval_ms == 5_000
        await set_group_config(groups, "consumer.heartbeat.interval.ms", "7000")
        assert (await groups.enter("m", "t")).heartbeat_interval_ms == 7_000

    with_groups(tmp_path, use)


def test_what_has_happened_is_counted_under_kafka_s_names(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        joined = await groups.join_alone()
        await groups.commit(1, joined=joined)
        metrics = groups.server.groups.metrics()
        assert metrics[f"{MODERN}group-completed-rebalance-count"] == metrics[f"{MODERN}offset-commit-count"] == 1
        assert metrics[f"{CLASSIC}NumOffsets"] == metrics[f"{CLASSIC}NumGroupsStable"] == 1

    with_groups(tmp_path, use)


def cut(data: bytes) -> bytes:
    return data[:-10]


def overwrite_last_batch(data: bytes) -> bytes:
    size = read_batches(data)[-1].size
    return data[:-size] + b"\xff" * size


@pytest.mark.parametrize("damage", [cut, overwrite_last_batch])
def test_a_segment_of_the_offsets_that_is_damaged_costs_what_was_in_it_and_no_group(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes]
) -> None:
    damaged: list[Path] = []

    async def first(groups: Groups) -> None:
        for topic in ("kept", "lost", "later"):
            await groups.create_topic(topic)
        await groups.ready()
        assert (await groups.commit(1, "kept"), await groups.commit(2, "lost")) == (0, 0)
        log = groups.broker.replica_manager.log_manager.get(offsets_partition(groups))
        assert log is not None
        damaged.append(Path(log.active_segment.file.path))
        log.roll(0)
        assert await groups.commit(3, "later") == 0

    async def second(groups: Groups) -> None:
        await groups.ready()
        assert await groups.committed() == {("kept", 0): 1, ("later", 0): 3}
        assert await groups.commit(4, "lost") == 0
        assert groups.server.groups.metrics()[f"{MODERN}skipped-record-count"] == 1

    with_groups(tmp_path, first)
    (segment,) = damaged
    segment.write_bytes(damage(segment.read_bytes()))
    with_groups(tmp_path, second)
    (line,) = lines_of(caplog, runtime, logging.ERROR)
    assert line.startswith("Skipped the offsets from 1 up to 1 of __consumer_offsets-") and "What they held is lost" in line


def test_garbage_that_an_admin_client_wrote_into_the_topic_costs_no_group(tmp_path: Path) -> None:
    async def first(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        assert await groups.commit(42) == 0
        builder = BatchBuilder()
        builder.append(0, b"garbage", b"garbage")
        builder.append(0, b"\x00\x01garbage", b"garbage")
        data = PartitionProduceData(offsets_partition(groups).partition, Records(builder.build()))
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(CONSUMER_OFFSETS, partition_data=[data])])
        frame = b"".join(request_frame(request, BY_NAME["Produce"], 9, 17, ADMIN_CLIENT))[SIZE_PREFIX:]
        response = read(await exchange(groups.broker, frame), ProduceResponse, 9)
        assert response.responses[0].partition_responses[0].error_code == 0

    async def second(groups: Groups) -> None:
        await groups.ready()
        assert await groups.committed() == {("t", 0): 42}
        assert groups.server.groups.metrics()[f"{MODERN}skipped-record-count"] == 2

    with_groups(tmp_path, first)
    with_groups(tmp_path, second)


# Each as Java's InetAddress prints it.
@pytest.mark.parametrize(
    ("address", "printed"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42:8329", "/2001:db8:0:0:0:ff00:42:8329"),
        ("::ffff:192.0.2.1", "/192.0.2.1"),
        ("fe80::1%eth0", "/fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_addresses_are_written_as_java_writes_them(address: str, printed: str) -> None:
    assert java_address(address) == printed


@pytest.mark.parametrize("acks", ["0", "1"])
def test_a_commit_with_the_acks_of_the_leader_does_not_wait_for_other_replicas(tmp_path: Path, acks: str) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        lead(groups, groups.broker.broker_id, isr=[groups.broker.broker_id, OTHER_BROKER])
        await groups.ready()
        assert await groups.commit(42) == 0
        assert await groups.committed() == {("t", 0): 42}

    with_groups(tmp_path, use, offsets_commit_required_acks=acks)


def test_a_commit_waits_for_all_replicas_in_sync(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        lead(groups, groups.broker.broker_id, isr=[groups.broker.broker_id, OTHER_BROKER])
        await groups.ready()
        assert await groups.commit(42) == ErrorCode.COORDINATOR_NOT_AVAILABLE, "Kafka's error of a write that times out"

    with_groups(tmp_path, use, offsets_commit_timeout_ms="50")


def lead(groups: Groups, leader: int, isr: list[int] | None = None) -> None:
    """As a controller would say that this broker now leads the partition of the group, or that it follows another."""
    partition = offsets_partition(groups)
    replicas = groups.broker.replica_manager
    found = replicas.partition(partition)
    assert found is not None
    epoch, brokers = found.leader_epoch + 1, [groups.broker.broker_id, OTHER_BROKER]
    state = LeaderAndIsrPartitionState(
        partition.topic, partition.partition, replicas.controller_epoch, leader, epoch, isr or [leader], found.partition_epoch + 1, brokers
    )
    topics = [LeaderAndIsrTopicState(partition.topic, found.topic_id, [state])] if found.topic_id is not None else []
    replicas.become_leader_or_follower(LeaderAndIsrRequest(0, False, replicas.controller_epoch, topic_states=topics))


async def set_group_config(groups: Groups, name: str, value: str) -> None:
    resource = AlterConfigsResource(ConfigResourceType.GROUP, GROUP, [AlterableConfig(name, 0, value)])
    response = await groups.ask(IncrementalAlterConfigsRequest([resource]), IncrementalAlterConfigsResponse, 1)
    assert [altered.error_code for altered in response.responses] == [0]
