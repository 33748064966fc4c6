"""Metrics and health of a broker in this process, as a scraper sees them: each test makes a metric move."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.exposition import metrics_listener
from barnabas.broker.exposition.observed import BrokerState
from barnabas.broker.server.server import BrokerServer
from barnabas.config_def import InvalidConfig
from barnabas.network.event_loop import run
from barnabas.protocol.framing import request_frame
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequest
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.registry import BY_NAME
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.topic_partition import TopicPartition
from benchmarks.generator import PRODUCE_VERSION, Batch, fetch_frame
from benchmarks.wire import CLIENT_ID, Client
from pyspark_barnabas.cluster import ClusterClient
from pyspark_barnabas.offsets import StreamOffset
from pyspark_barnabas.read.progress import GroupProgress
from tests.logged import lines_of

T = TypeVar("T")
SAMPLE = re.compile(r"^([a-zA-Z_][a-zA-Z0-9_]*)(?:\{(.*)\})? (\S+)$")


def serving(data: Path, use: Callable[[BrokerServer], Awaitable[T]], **settings: str) -> T:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "broker.id": "5",
        "log.dirs": str(data),
        "metrics.listener": "http://127.0.0.1:0",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }

    async def life() -> T:
        server = BrokerServer(BrokerConfig.from_properties(properties))
        await server.start()
        try:
            return await asyncio.wait_for(use(server), 60)
        finally:
            await server.shutdown(1000)

    return run(life())


async def ask(server: BrokerServer, question: Callable[[Client], T]) -> T:
    def answered() -> T:
        with Client("127.0.0.1", server.endpoints[0].port) as client:
            return question(client)

    return await asyncio.to_thread(answered)


def send(client: Client, frame: bytes) -> None:
    client.socket.sendall(frame)
    client.next_frame()


def fetched(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def get(server: BrokerServer, path: str) -> tuple[int, str]:
    assert server.metrics is not None
    return await asyncio.to_thread(fetched, f"{server.metrics.address}{path}")


async def scrape(server: BrokerServer) -> dict[str, float]:
    """The value of each series, by its name with its labels."""
    status, text = await get(server, "/metrics")
    assert status == 200
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if not line.startswith("#")}


def test_a_produce_and_a_fetch_move_the_metrics_of_their_topic_and_of_requests(tmp_path: Path) -> None:
    batch = Batch(100, 3)

    async def use(server: BrokerServer) -> None:
        def traffic(client: Client) -> None:
            client.create_topics(["orders"])
            for _ in range(2):
                send(client, batch.produce_frame("orders"))
            send(client, fetch_frame("orders", 0, 100_000))

        before = await scrape(server)
        await ask(server, traffic)
        after = await scrape(server)
        topics = "kafka_server_brokertopicmetrics_"
        for labels in ("", '{topic="orders"}'):
            assert after[f"{topics}messagesin_total{labels}"] == 6
            assert after[f"{topics}bytesin_total{labels}"] == 2 * batch.records.size
            assert after[f"{topics}bytesout_total{labels}"] == 2 * batch.records.size
            assert after[f"{topics}totalproducerequests_total{labels}"] == 2
            assert after[f"{topics}totalfetchrequests_total{labels}"] == 1
        assert before[f"{topics}messagesin_total"] == 0
        assert f'{topics}messagesin_total{{topic="orders"}}' not in before
        requests = "kafka_network_requestmetrics_"
        assert after[f'{requests}requests_total{{request="Produce",version="9"}}'] == 2
        assert after[f'{requests}errors_total{{request="Produce",error="NONE"}}'] == 2
        for stage in ("requestqueue", "local", "remote", "throttle", "responsequeue", "responsesend", "total"):
            assert after[f'{requests}{stage}timems_count{{request="Produce"}}'] == 2
        assert after[f'{requests}totaltimems{{request="Produce",quantile="0.99"}}'] > 0
        assert after[f'{requests}requestbytes{{request="Produce",quantile="0.50"}}'] > batch.records.size * 0.9
        assert after[f'{requests}responsebytes{{request="FetchConsumer",quantile="0.50"}}'] > 2 * batch.records.size * 0.9
        assert after[f'{requests}totaltimems_count{{request="Fetch"}}'] == 1
        assert f'{requests}totaltimems_count{{request="FetchFollower"}}' not in after
        log = '{topic="orders",partition="0"}'
        assert after[f"kafka_log_log_size{log}"] == 2 * batch.records.size
        assert (after[f"kafka_log_log_logendoffset{log}"], after[f"kafka_topic_partition_current_offset{log}"]) == (6, 6)
        assert after["kafka_server_replicamanager_leadercount"] == after["kafka_server_replicamanager_partitioncount"] == 1
        assert after['kafka_server_socket_server_metrics_request_total{listener="PLAINTEXT",networkProcessor="0"}'] >= 4

    serving(tmp_path, use)


def test_groups_and_their_lag_are_shown(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        def traffic(client: Client) -> None:
            client.create_topics(["orders"], partitions=2)
            send(client, Batch(10, 5).produce_frame("orders"))
            committed = OffsetCommitRequestTopic(
                "orders", partitions=[OffsetCommitRequestPartition(index, offset) for index, offset in ((0, 2), (1, 0))]
            )
            request = OffsetCommitRequest("readers", topics=[committed])
            while any(part.error_code for topic in client.ask(request, 8).topics for part in topic.partitions):
                client.ask(FindCoordinatorRequest(coordinator_keys=["readers"]), 4)  # the first one creates __consumer_offsets

        await ask(server, traffic)
        after = await scrape(server)
        prefix = "kafka_consumergroup_"
        assert after[f'{prefix}current_offset{{consumergroup="readers",topic="orders",partition="0"}}'] == 2
        assert after[f'{prefix}lag{{consumergroup="readers",topic="orders",partition="0"}}'] == 3
        assert after[f'{prefix}lag{{consumergroup="readers",topic="orders",partition="1"}}'] == 0
        assert after[f'{prefix}lag_sum{{consumergroup="readers",topic="orders"}}'] == 3
        assert after[f'{prefix}current_offset_sum{{consumergroup="readers",topic="orders"}}'] == 2
        assert after[f'{prefix}members{{consumergroup="readers"}}'] == 0
        assert after["kafka_coordinator_group_groupmetadatamanager_numoffsets"] == 2
        assert after["kafka_coordinator_group_groupmetadatamanager_numgroupsempty"] == 1
        assert after['kafka_server_group_coordinator_metrics_group_count{protocol="classic"}'] == 1
        assert after["kafka_server_group_coordinator_metrics_offset_commit_count"] == 2
        assert after['kafka_topic_partitions{topic="orders"}'] == 2

    serving(tmp_path, use)


def test_lag_in_seconds_is_the_age_of_the_first_unread_record(tmp_path: Path) -> None:
    """Of a record at the beginning of a batch, of one in its middle, of deleted records, and of a group that has read everything."""

    async def use(server: BrokerServer) -> None:
        def traffic(client: Client) -> None:
            client.create_topics(["orders", "deleted"])
            for topic in ("orders", "deleted"):
                for age_s in (5000, 4000, 3000):
                    client.socket.sendall(aged_frame(topic, int(time.time()) - age_s))
                    client.next_frame()
            for group, topic, offset in (("begin", "orders", 3), ("middle", "orders", 4), ("end", "orders", 9), ("gone", "deleted", 0)):
                commit(client, group, topic, offset)

        await ask(server, traffic)
        log = server.broker.replica_manager.partition(TopicPartition("deleted", 0))
        assert log is not None and log.leader_log is not None
        log.leader_log.increment_log_start_offset(6, "records are deleted")
        after = await scrape(server)
        lag = 'kafka_consumergroup_lag_seconds{consumergroup="%s",topic="%s",partition="0"}'
        assert after[lag % ("begin", "orders")] == pytest.approx(4000, abs=60)
        assert after[lag % ("middle", "orders")] == pytest.approx(3900, abs=60)
        assert after[lag % ("end", "orders")] == 0
        assert after[lag % ("gone", "deleted")] == pytest.approx(3000, abs=60)
        reads = server.observed.unread_times.reads
        await scrape(server)
        assert (server.observed.unread_times.reads, len(server.observed.unread_times)) == (reads, 6)

    serving(tmp_path, use)


def test_the_group_of_a_spark_query_shows_its_lag(tmp_path: Path) -> None:
    """The source of Spark commits the offsets of finished batches to a group without members."""

    async def use(server: BrokerServer) -> None:
        def traffic(client: Client) -> None:
            client.create_topics(["orders"])
            for age_s in (500, 400):
                client.socket.sendall(aged_frame("orders", int(time.time()) - age_s))
                client.next_frame()
            with ClusterClient({"bootstrap.servers": f"127.0.0.1:{server.endpoints[0].port}"}) as cluster:
                cluster.reach()
                progress = GroupProgress("billing", cluster.commit)
                progress.finished(StreamOffset({TopicPartition("orders", 0): 3}))
                progress.close()

        await ask(server, traffic)
        after = await scrape(server)
        labels = '{consumergroup="billing",topic="orders",partition="0"}'
        assert after[f"kafka_consumergroup_lag{labels}"] == 3
        assert after[f"kafka_consumergroup_lag_seconds{labels}"] == pytest.approx(400, abs=60)

    serving(tmp_path, use)


def aged_frame(topic: str, at_s: int) -> bytes:
    """A Produce with a batch of three records, 100 seconds apart."""
    data = build([((at_s + 100 * number) * 1000, None, b"x", ()) for number in range(3)])
    partition = PartitionProduceData(0, Records(data))
    request = ProduceRequest(None, -1, 30_000, [TopicProduceData(topic, partition_data=[partition])])
    return b"".join(request_frame(request, BY_NAME["Produce"], PRODUCE_VERSION, 7, CLIENT_ID))


def commit(client: Client, group: str, topic: str, offset: int) -> None:
    request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(0, offset)])])
    while any(part.error_code for topic in client.ask(request, 8).topics for part in topic.partitions):
        client.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4)  # the first one creates __consumer_offsets


def test_all_dialects_show_the_traffic_and_the_lag(tmp_path: Path) -> None:
    batch = Batch(100, 3)

    async def use(server: BrokerServer) -> None:
        def traffic(client: Client) -> None:
            client.create_topics(["orders"])
            send(client, batch.produce_frame("orders"))
            send(client, fetch_frame("orders", 0, 100_000))
            commit(client, "readers", "orders", 1)

        await ask(server, traffic)
        after = await scrape(server)
        size = batch.records.size
        topic = 'redpanda_namespace="kafka",redpanda_topic="orders"'
        group = 'group_id="readers",topic_name="orders"'
        assert after['kafka_server_brokertopicmetrics_bytesinpersec_total{topic="orders"}'] == size
        assert after['kafka_server_brokertopicmetrics_bytesoutpersec{topic="orders"}'] == size
        assert after[f'redpanda_kafka_request_bytes_total{{{topic},redpanda_request="produce"}}'] == size
        assert after[f'redpanda_kafka_request_bytes_total{{{topic},redpanda_request="consume"}}'] == size
        assert after[f"redpanda_kafka_records_produced_total{{{topic}}}"] == 3
        assert after[f'redpanda_kafka_max_offset{{{topic},redpanda_partition="0"}}'] == 3
        assert after[f'redpanda_kafka_under_replicated_replicas{{{topic},redpanda_partition="0"}}'] == 0
        assert (after[f"redpanda_kafka_partitions{{{topic}}}"], after[f"redpanda_kafka_replicas{{{topic}}}"]) == (1, 1)
        assert after['redpanda_kafka_consumer_group_lag_sum{redpanda_group="readers"}'] == 2
        assert after['redpanda_kafka_consumer_group_lag_max{redpanda_group="readers"}'] == 2
        assert after['redpanda_kafka_consumer_group_topics{redpanda_group="readers"}'] == 1
        assert (after["redpanda_cluster_brokers"], after["redpanda_cluster_unavailable_partitions"]) == (1, 0)
        assert after["redpanda_storage_disk_total_bytes"] > after["redpanda_storage_disk_free_bytes"] > 0
        assert after['redpanda_rpc_active_connections{redpanda_server="kafka"}'] >= 0
        assert after[f"kminion_kafka_consumer_group_topic_lag{{{group}}}"] == 2
        assert after[f'kminion_kafka_consumer_group_topic_partition_lag{{{group},partition_id="0"}}'] == 2
        assert after[f"kminion_kafka_consumer_group_topic_offset_sum{{{group}}}"] == 1
        assert after['kminion_kafka_consumer_group_info{group_id="readers",state="Empty",coordinator_id="5"}'] == 0
        assert after['kminion_kafka_topic_high_water_mark_sum{topic_name="orders"}'] == 3
        assert after['kminion_kafka_topic_log_dir_size_total_bytes{topic_name="orders"}'] == size
        assert after['kminion_kafka_topic_info{topic_name="orders",partition_count="1",replication_factor="1"}'] == 1
        assert any(name.startswith('kminion_kafka_broker_info{broker_id="5",') for name in after)
        assert any(name.startswith("kminion_kafka_cluster_info{") for name in after)

    serving(tmp_path, use, metrics_dialects="jmx_exporter,kafka_exporter,strimzi_reporter,confluent,redpanda,kminion")


def test_a_flush_is_timed(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        def traffic(client: Client) -> None:
            client.create_topics(["orders"], configs={"flush.messages": "1"})
            send(client, Batch(10, 1).produce_frame("orders"))

        await ask(server, traffic)
        after = await scrape(server)
        assert after["kafka_log_logflushstats_logflushrateandtimems_count"] >= 1
        assert after['kafka_log_logflushstats_logflushrateandtimems{quantile="0.50"}'] > 0

    serving(tmp_path, use)


def test_clients_cannot_make_the_registry_grow(tmp_path: Path) -> None:
    """By made up client ids, versions, API keys, groups and transactional ids."""

    async def use(server: BrokerServer) -> None:
        def traffic(client: Client) -> None:
            for number in range(300):
                client.socket.sendall(api_versions(version=1000 + number, client_id=f"client-{number}"))
                client.next_frame()
                client.ask(OffsetFetchRequest(f"group-{number}", topics=None), 7)

        await ask(server, traffic)
        before = await scrape(server)
        assert before['kafka_network_requestmetrics_requests_total{request="ApiVersions",version="0"}'] == 300
        await ask(server, traffic)
        assert (await scrape(server)).keys() == before.keys()

    serving(tmp_path, use)


def api_versions(version: int, client_id: str) -> bytes:
    header = (18).to_bytes(2, "big") + version.to_bytes(2, "big") + (7).to_bytes(4, "big") + len(client_id).to_bytes(2, "big")
    body = header + client_id.encode() + b"\x00"
    return len(body).to_bytes(4, "big") + body


def test_an_error_counts_by_its_name_and_a_made_up_topic_makes_no_series(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        def traffic(client: Client) -> None:
            for index in range(50):
                send(client, Batch(10, 1).produce_frame(f"made-up-{index}"))
                send(client, fetch_frame(f"made-up-{index}", 0, 100_000))

        before = await scrape(server)
        await ask(server, traffic)
        after = await scrape(server)
        assert after['kafka_network_requestmetrics_errors_total{request="Produce",error="UNKNOWN_TOPIC_OR_PARTITION"}'] == 50
        assert after['kafka_network_requestmetrics_errors_total{request="Fetch",error="UNKNOWN_TOPIC_OR_PARTITION"}'] == 50
        assert [name for name in after if "made-up" in name] == []
        await ask(server, traffic)
        assert (await scrape(server)).keys() == after.keys() > before.keys()

    serving(tmp_path, use, auto_create_topics_enable="false")


def test_the_series_of_a_topic_go_with_it(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        def create(client: Client) -> None:
            client.create_topics(["orders"])
            send(client, Batch(10, 1).produce_frame("orders"))

        await ask(server, create)
        assert any('topic="orders"' in name for name in await scrape(server))
        await ask(server, lambda client: client.delete_topics(["orders"]))
        async with asyncio.timeout(30):
            while server.broker.replica_manager.partition(TopicPartition("orders", 0)) is not None:
                await asyncio.sleep(0.01)
        after = await scrape(server)
        assert [name for name in after if "orders" in name] == []
        assert after["kafka_server_brokertopicmetrics_messagesin_total"] == 1

    serving(tmp_path, use)


def test_every_family_is_shown_and_every_line_parses(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        _, text = await get(server, "/metrics")
        typed = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")]
        assert len(typed) == len(set(typed))
        assert {"kafka_brokers", "process_cpu_seconds_total", "kafka_server_kafkaserver_brokerstate"} <= set(typed)
        for line in text.splitlines():
            if not line.startswith("#"):
                assert SAMPLE.match(line), line
        values = await scrape(server)
        assert (values["kafka_brokers"], values["kafka_server_kafkaserver_brokerstate"]) == (1, 3)
        assert values["kafka_controller_kafkacontroller_activecontrollercount"] == 1
        assert values["process_resident_memory_bytes"] > 1_000_000
        assert values["process_open_fds"] > 3
        assert 0 <= values["kafka_network_socketserver_networkprocessoravgidle_percent"] <= 1

    serving(tmp_path, use)


def test_one_dialect_leaves_out_the_names_of_the_other(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> set[str]:
        return set(await scrape(server))

    names = serving(tmp_path, use, metrics_dialects="kafka_exporter")
    assert "kafka_brokers" in names
    assert not any(name.startswith("kafka_server_") for name in names)
    with pytest.raises(InvalidConfig, match=r"metrics\.dialects"):
        BrokerConfig.from_properties({"metrics.dialects": "klingon"})


def test_health_says_what_is_wrong(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        assert await get(server, "/health/live") == (200, '{"status": "good"}\n')
        assert await get(server, "/health/ready") == (200, '{"status": "good", "problems": []}\n')
        status, text = await get(server, "/health/cluster")
        facts = json.loads(text)
        assert (status, facts["status"], facts["brokers"], facts["controller_id"]) == (200, "good", [5], 5)
        server.observed.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        status, text = await get(server, "/health/ready")
        assert (status, json.loads(text)["problems"]) == (503, ["the broker is pending controlled shutdown"])
        server.observed.state = BrokerState.RUNNING
        await ask(server, lambda client: client.create_topics(["orders"]))
        hosted = server.broker.replica_manager.online.pop(TopicPartition("orders", 0))
        status, text = await get(server, "/health/ready")
        assert (status, json.loads(text)["problems"]) == (503, ["1 partitions that this broker should lead are not led yet"])
        server.broker.replica_manager.online[hosted.partition] = hosted
        assert (await get(server, "/health/ready"))[0] == 200
        assert (await get(server, "/nothing"))[0] == 404

    serving(tmp_path, use)


def test_a_port_that_is_taken_is_a_warning_and_the_next_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        async def use(server: BrokerServer) -> str | None:
            assert (await get(server, "/health/live"))[0] == 200
            return None if server.metrics is None else server.metrics.address

        address = serving(tmp_path, use, **{"metrics.listener": f"http://127.0.0.1:{port}"})
    assert address is not None
    assert port < int(address.rpartition(":")[2]) < port + 100
    assert lines_of(caplog, metrics_listener) == [f"Metrics are at {address}/metrics: port {port} of metrics.listener is taken"]


def test_without_the_setting_nothing_listens_and_nothing_is_measured(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        await ask(server, lambda client: client.create_topics(["orders"]))
        assert (server.metrics, server.observed.kinds.all()) == (None, [])

    async def life() -> None:
        settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "broker.id": "5", "log.dirs": str(tmp_path)}
        server = BrokerServer(BrokerConfig.from_properties(settings))
        await server.start()
        try:
            await use(server)
        finally:
            await server.shutdown(1000)

    run(life())


@pytest.mark.parametrize("listener", ["localhost:9404", "ftp://localhost:9404", "http://localhost", "http://h:70000", "http://h:1/metrics"])
def test_a_listener_that_is_none_is_refused(listener: str) -> None:
    with pytest.raises(InvalidConfig, match=r"^metrics\.listener=.* http://localhost:9404"):
        BrokerConfig.from_properties({"metrics.listener": listener})
