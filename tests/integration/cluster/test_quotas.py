"""Client quotas on three brokers: set on one, obeyed by all, and after a restart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from barnabas.client.admin import Admin, ClientQuotaAlteration, ClientQuotaEntity, NewTopic
from barnabas.errors import InvalidRequest
from benchmarks.generator import PRODUCE_VERSION
from benchmarks.quota_loads import produce_frame, throttle_time_of
from benchmarks.wire import Client
from tests import zookeeper
from tests.cluster import BrokerProcess, Cluster
from tests.integration.cluster.conftest import next_chroot
from tests.integration.cluster.describing import until

WILD = ClientQuotaEntity({"client-id": "wild"})
OTHER_ADDRESS = "127.0.0.9"  # the brokers themselves connect from 127.0.0.1
RATE = 20_000
REQUEST_BYTES = 16_384
REQUESTS_MAX = 40  # three times what a quiet client may send at once
CONNECTIONS_MAX = 40


def set_quota(broker: BrokerProcess, entity: ClientQuotaEntity, name: str, value: float | None) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.alter_client_quotas([ClientQuotaAlteration(entity, {name: value})]).all()


def throttle_ms(broker: BrokerProcess, client_id: str) -> int:
    """The first throttle time of a client that produces to the partition of this broker; 0 if it gets none."""
    frame = produce_frame(f"led-by-{broker.id}", client_id, REQUEST_BYTES)
    with Client(broker.host, broker.port, client_id=client_id) as client:
        for _ in range(REQUESTS_MAX):
            client.socket.sendall(frame)
            throttle = throttle_time_of(client, "Produce", PRODUCE_VERSION)
            if throttle:
                return throttle
    return 0


def is_leader(broker: BrokerProcess) -> bool:
    frame = produce_frame(f"led-by-{broker.id}", "calm", REQUEST_BYTES)
    with Client(broker.host, broker.port, client_id="calm") as client:
        client.socket.sendall(frame)
        try:
            throttle_time_of(client, "Produce", PRODUCE_VERSION)
        except RuntimeError:  # NOT_LEADER_OR_FOLLOWER
            return False
    return True


def is_refused(broker: BrokerProcess) -> bool:
    """Whether a connection from the other address is closed before it is served."""
    try:
        with Client(broker.host, broker.port, timeout=20, source=OTHER_ADDRESS) as client:
            client.metadata([])
    except ConnectionError:
        return True
    return False


def refusals(broker: BrokerProcess) -> int:
    return sum(is_refused(broker) for _ in range(CONNECTIONS_MAX))


def test_quotas_of_one_broker_are_obeyed_by_all_and_after_a_restart(three: Cluster) -> None:
    first, second, third = three.brokers.values()
    with Admin(bootstrap_servers=three.bootstrap) as admin:
        topics = [NewTopic(f"led-by-{number}", replicas_assignments={0: [number]}) for number in three.brokers]
        admin.create_topics(topics).all()
        assert isinstance(admin.alter_client_quotas([ClientQuotaAlteration(WILD, {"producer_byte_rate": 0})]).errors[WILD], InvalidRequest)
    for broker in three.brokers.values():
        until(lambda broker=broker: is_leader(broker), f"broker {broker.id} leads its partition")  # type: ignore[misc]
    set_quota(first, WILD, "producer_byte_rate", RATE)
    for broker in three.brokers.values():
        until(lambda broker=broker: throttle_ms(broker, "wild") > 0, f"broker {broker.id} throttles")  # type: ignore[misc]
        assert throttle_ms(broker, "calm") == 0

    second.stop()
    second.start()
    second.wait_ready()
    until(lambda: is_leader(second), "the broker leads its partition again")
    until(lambda: throttle_ms(second, "wild") > 0, "a broker that was started again throttles at once")

    tool = [sys.executable, "-m", "barnabas", "configs", "--zookeeper", third.setting("zookeeper.connect")]
    options = ["--alter", "--ip", OTHER_ADDRESS, "--add-config", "connection_creation_rate=1"]
    subprocess.run([*tool, *options], check=True, capture_output=True, timeout=60)
    until(lambda: refusals(first) > 0, "the rate of an address is kept")
    set_quota(second, ClientQuotaEntity({"ip": OTHER_ADDRESS}), "connection_creation_rate", None)
    until(lambda: refusals(first) == 0, "without a rate every connection is served")

    set_quota(second, WILD, "producer_byte_rate", None)
    for broker in three.brokers.values():
        until(lambda broker=broker: throttle_ms(broker, "wild") == 0, f"broker {broker.id} throttles no more")  # type: ignore[misc]
    assert three.tracebacks() == []


def test_a_class_of_quotas_that_is_none_ends_the_start_with_one_line(ensemble: zookeeper.ZooKeeper, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, next_chroot(ensemble), {"client.quota.callback.class": "org.example.Quotas"}, brokers=1)
    (broker,) = cluster.brokers.values()
    broker.start()
    assert not broker.becomes_ready()
    (line,) = [line for line in broker.said().splitlines() if "client.quota.callback.class" in line]
    assert "Invalid value org.example.Quotas for configuration client.quota.callback.class: no Python class can be made of it" in line
    assert "Traceback" not in broker.said() and broker.code != 0
