"""What the controller, the metadata store, bad batches and quotas move in the metrics of a broker, and what a client cannot make grow."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.exposition.families.quota_families import SENSORS_MAX
from barnabas.broker.quotas.client_quota_callback import DEFAULT, ClientQuotaEntity
from barnabas.broker.server.server import BrokerServer
from barnabas.errors import ThrottlingQuotaExceeded
from barnabas.protocol.framing import request_frame
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.registry import BY_NAME
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.security.principal import ANONYMOUS
from benchmarks.generator import PRODUCE_VERSION
from benchmarks.wire import CLIENT_ID, Client
from tests.unit.broker.exposition.test_metrics_listener import ask, scrape, send, serving


def produce_frame(topic: str, data: bytes) -> bytes:
    request = ProduceRequest(None, -1, 30_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, Records(data))])])
    return b"".join(request_frame(request, BY_NAME["Produce"], PRODUCE_VERSION, 7, CLIENT_ID))


def test_the_events_of_the_controller_and_its_requests_are_timed(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        before = await scrape(server)
        await ask(server, lambda client: client.create_topics(["orders"]))
        after = await scrape(server)
        stats = "kafka_controller_controllerstats_"
        assert before[f"{stats}controllerchangerateandtimems_count"] >= 1
        assert before[f"{stats}topicchangerateandtimems_count"] == 0
        assert after[f"{stats}topicchangerateandtimems_count"] == 1
        assert after[f'{stats}topicchangerateandtimems{{quantile="0.50"}}'] > 0
        assert after[f"{stats}uncleanleaderelections_total"] == 0
        events = "kafka_controller_controllereventmanager_eventqueuetimems_count"
        assert after[events] > before[events] > 0
        assert after["kafka_controller_kafkacontroller_controllerstate"] == 0
        sent = 'kafka_controller_controllerchannelmanager_requestrateandqueuetimems_count{broker_id="5"}'
        assert after[sent] > before[sent]
        assert after["kafka_controller_controllerchannelmanager_totalqueuesize"] == 0
        requests = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms_count"
        assert after[requests] > before[requests] > 0
        assert after["kafka_server_sessionexpirelistener_zookeepersyncconnects_total"] == 1

    serving(tmp_path, use)


def test_records_that_are_refused_count_by_the_rule_that_they_break(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        def traffic(client: Client) -> None:
            client.create_topics(["compacted"], configs={"cleanup.policy": "compact"})
            send(client, produce_frame("compacted", build([(1, None, b"x", ()), (2, None, b"y", ()), (3, b"k", b"z", ())])))

        await ask(server, traffic)
        after = await scrape(server)
        prefix = "kafka_server_brokertopicmetrics_"
        assert after[f"{prefix}nokeycompactedtopicrecords_total"] == 2
        assert after[f"{prefix}failedproducerequests_total"] == 1
        assert after[f"{prefix}invalidoffsetorsequencerecords_total"] == after[f"{prefix}invalidmagicnumberrecords_total"] == 0
        assert after['kafka_network_requestmetrics_messageconversionstimems_count{request="Produce"}'] == 1

    serving(tmp_path, use)


def test_made_up_client_ids_with_a_default_quota_show_a_bounded_number_of_series(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        quota = server.broker.quotas.produce
        quota.update(ClientQuotaEntity(None, DEFAULT), 1000.0)
        for number in range(SENSORS_MAX + 100):
            quota.record(ANONYMOUS, f"client-{number}", 1.0, server.clock.monotonic_ms())
        quota.record(ANONYMOUS, "slow", 1e6, server.clock.monotonic_ms())
        mutations = server.broker.quotas.controller_mutation
        mutations.update(ClientQuotaEntity(None, DEFAULT), 1.0)
        for number in range(SENSORS_MAX + 100):
            mutations.of(ANONYMOUS, f"client-{number}", True, server.clock.monotonic_ms())
        shown = await scrape(server)
        assert sum(name.startswith("kafka_server_controllermutation_tokens{") for name in shown) == SENSORS_MAX
        rates = [name for name in shown if name.startswith("kafka_server_produce_byte_rate{")]
        assert len(rates) == SENSORS_MAX
        assert 'kafka_server_produce_byte_rate{client_id="client-0"}' not in rates
        assert shown['kafka_server_produce_byte_rate{client_id="slow"}'] > 1000
        assert shown['kafka_server_produce_throttle_time{client_id="slow"}'] > 0

    serving(tmp_path, use)


def test_a_client_with_controller_mutation_rate_shows_its_tokens_and_how_long_it_had_to_wait(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        quotas, now_ms = server.broker.quotas.controller_mutation, server.clock.monotonic_ms()
        quotas.update(ClientQuotaEntity(None, "creator"), 1.0)
        quota = quotas.of(ANONYMOUS, "creator", True, now_ms)
        assert quota is not None
        quota.record(1000, now_ms)
        with pytest.raises(ThrottlingQuotaExceeded):
            quota.record(1, now_ms)
        shown = await scrape(server)
        assert shown['kafka_server_controllermutation_tokens{client_id="creator"}'] < -900
        assert shown['kafka_server_controllermutation_throttle_time{client_id="creator"}'] > 900_000

    serving(tmp_path, use)
