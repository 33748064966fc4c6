"""Quotas in a broker that runs: loaded before the first request, and client.quota.callback.class."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.alterations.alter import Operation, OpType
from barnabas.broker.config.alterations.config_alterations import Alteration
from barnabas.broker.config.alterations.quota_alterations import QuotaAlteration
from barnabas.broker.quotas.client_quota_callback import DEFAULT, ClientQuotaCallback, ClientQuotaEntity, ClientQuotaType, ClusterMetadata
from barnabas.broker.server.server import BrokerServer
from barnabas.config_def import ConfigResourceType, InvalidConfig
from barnabas.network.event_loop import run
from barnabas.security.principal import KafkaPrincipal
from tests.unit.broker.server.test_server import create, properties, serving

PRODUCE = "producer_byte_rate"
SPEED = "example.speed"


class Recorded(ClientQuotaCallback):
    """Writes down how it is called."""

    calls: list[Any]

    def __init__(self) -> None:
        self.calls = []

    def configure(self, configs: Mapping[str, Any]) -> None:
        self.calls.append(("configure", configs[SPEED]))

    def quota_metric_tags(self, quota_type: ClientQuotaType, principal: KafkaPrincipal, client_id: str) -> Mapping[str, str]:
        return {}

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        return None

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        if entity.user == "broken":
            raise RuntimeError("an error of the callback")
        self.calls.append(("update", quota_type, entity, value))

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        self.calls.append(("remove", quota_type, entity))

    def update_cluster_metadata(self, cluster: ClusterMetadata) -> bool:
        self.calls.append(cluster)
        return True

    def reconfigurable_configs(self) -> Collection[str]:
        return [SPEED]

    def validate_reconfiguration(self, configs: Mapping[str, Any]) -> None:
        if configs.get(SPEED) == "never":
            raise InvalidConfig(f"Invalid value never for configuration {SPEED}")

    def reconfigure(self, configs: Mapping[str, Any]) -> None:
        self.calls.append(("reconfigure", configs.get(SPEED)))

    def close(self) -> None:
        self.calls.append("close")


def named(data: Path, cls: str) -> dict[str, str]:
    return properties(data, **{"client.quota.callback.class": cls, SPEED: "slow"})


def recorded(data: Path) -> dict[str, str]:
    return named(data, f"{__name__}.Recorded")


def callback_of(server: BrokerServer) -> Recorded:
    callback = server.broker.quotas.callback
    assert isinstance(callback, Recorded)
    return callback


async def set_quota(server: BrokerServer, entity: Mapping[str, str | None], value: float | None, name: str = PRODUCE) -> None:
    (outcome,) = await server.broker.configs.alter_client_quotas([QuotaAlteration(entity, [(name, value)])], False)
    assert outcome.error is None


def test_stored_quotas_are_there_before_the_first_request(tmp_path: Path) -> None:
    alice = KafkaPrincipal("User", "al ice")

    async def bound(server: BrokerServer) -> tuple[float | None, float | None]:
        sensor = server.broker.quotas.produce.sensor(alice, "c", 0)
        return (None if sensor is None else sensor.bound), server._connection_rates.rate_of("127.0.0.9")

    async def alter(server: BrokerServer) -> tuple[float | None, float | None]:
        await set_quota(server, {"user": "al ice", "client-id": None}, 1024.0)
        await set_quota(server, {"ip": None}, 50.0, "connection_creation_rate")
        return await bound(server)

    assert serving(properties(tmp_path), bound) == (None, None)
    assert serving(properties(tmp_path), alter) == (1024.0, 50.0)
    assert serving(properties(tmp_path), bound) == (1024.0, 50.0)


def test_a_callback_gets_settings_quotas_and_metadata_and_is_closed(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> Recorded:
        callback = callback_of(server)
        assert callback.calls[0] == ("configure", "slow")
        del callback.calls[:]
        await set_quota(server, {"user": "alice", "client-id": None}, 1024.0)
        assert ("update", ClientQuotaType.PRODUCE, ClientQuotaEntity("alice", DEFAULT), 1024.0) in callback.calls
        await set_quota(server, {"user": "alice", "client-id": None}, None)
        assert callback.calls[-1][0] == "remove"
        del callback.calls[:]
        await create(server, "t")
        cluster = next(call for call in reversed(callback.calls) if isinstance(call, ClusterMetadata))
        assert (cluster.broker_ids, [(part.topic, part.leader) for part in cluster.partitions]) == ([5], [("t", 5)])
        return callback

    assert serving(recorded(tmp_path), use).calls[-1] == "close"


def test_a_stored_quota_reaches_the_callback_at_the_start(tmp_path: Path) -> None:
    async def alter(server: BrokerServer) -> None:
        await set_quota(server, {"client-id": "c"}, 7.0)
        await set_quota(server, {"user": "broken"}, 8.0)  # the error is logged: the broker starts, and goes on

    async def calls(server: BrokerServer) -> list[Any]:
        return callback_of(server).calls

    serving(recorded(tmp_path), alter)
    assert ("update", ClientQuotaType.PRODUCE, ClientQuotaEntity(None, "c"), 7.0) in serving(recorded(tmp_path), calls)


def test_the_settings_of_a_callback_can_change(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        async def altered(name: str, value: str) -> str | None:
            alteration = Alteration(ConfigResourceType.BROKER, "5", (Operation(name, OpType.SET, value),))
            ((_, message),) = await server.broker.configs.alter([alteration], False)
            return message

        callback = callback_of(server)
        assert await altered(SPEED, "fast") is None
        assert ("reconfigure", "fast") in callback.calls
        assert "Invalid value never for configuration example.speed" in (await altered(SPEED, "never") or "")
        del callback.calls[:]
        assert await altered("log.cleaner.threads", "2") is None
        assert not any(call[0] == "reconfigure" for call in callback.calls)

    serving(recorded(tmp_path), use)


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        ("org.example.QuotaCallback", "no Python class can be made of it"),
        ("QuotaCallback", "no Python class can be made of it"),
        ("os.path.join", "the class must derive from barnabas.broker.quotas.client_quota_callback.ClientQuotaCallback"),
        ("collections.Counter", "the class must derive from barnabas.broker.quotas.client_quota_callback.ClientQuotaCallback"),
    ],
)
def test_a_bad_class_stops_the_start_with_a_line_that_names_the_setting(tmp_path: Path, cls: str, text: str) -> None:
    async def life() -> None:
        server = BrokerServer(BrokerConfig.from_properties(named(tmp_path, cls)))
        with pytest.raises(InvalidConfig, match=f"^Invalid value {cls} for configuration client.quota.callback.class: {text}"):
            await server.start()

    run(life())
    serving(properties(tmp_path), lambda server: asyncio.sleep(0))  # the directory is free again
