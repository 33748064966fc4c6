"""The SASL listeners of a broker: settings that stop the start, and settings that cannot change while it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.server.server import BrokerServer
from barnabas.client import AsyncAdmin
from barnabas.client.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from barnabas.config_def import InvalidConfig
from barnabas.errors import InvalidRequest
from barnabas.security.scram import ScramCredential
from tests.unit.broker.security.sasl.connecting import SETTINGS, Server

PREFIX = "listener.name.sasl_plaintext."


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"sasl.enabled.mechanisms": "CRAM-MD5"}, "sasl.enabled.mechanisms of listener SASL_PLAINTEXT has the unknown mechanism CRAM-MD5"),
        ({"sasl.enabled.mechanisms": "plain"}, "unknown mechanism plain"),
        ({f"{PREFIX}sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms is empty"),
        ({f"{PREFIX}scram-sha-256.sasl.jaas.config": "nonsense"}, f"{PREFIX}scram-sha-256.sasl.jaas.config is wrong"),
        ({"principal.builder.class": "no.such.Builder"}, "principal.builder.class"),
    ],
)
def test_a_setting_that_cannot_be_used_stops_the_start(settings: dict[str, str], text: str) -> None:
    async def run() -> None:
        Server(settings)

    with pytest.raises(InvalidConfig) as refused:
        asyncio.run(run())
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("has_user", [False, True])
def test_a_listener_without_any_user_is_named_with_the_fix(has_user: bool, caplog: pytest.LogCaptureFixture) -> None:
    mechanism = "SCRAM-SHA-512"

    async def run() -> None:
        server = Server({"sasl.enabled.mechanisms": f"SCRAM-SHA-256,{mechanism}"})
        if has_user:
            server.credentials.set_user(mechanism, "alice", ScramCredential.of_password(mechanism, "secret", b"salt", 4096))
        await server.sasl.start()
        await server.sasl.close()

    asyncio.run(run())
    warning = "Nobody can authenticate on listener SASL_PLAINTEXT: there is no user of SCRAM-SHA-256 or SCRAM-SHA-512 yet."
    assert (warning in caplog.text) is not has_user
    assert ("--add-scram 'SCRAM-SHA-256=[name=admin,password=…]'" in caplog.text) is not has_user


def test_a_broker_with_such_a_setting_does_not_start(tmp_path: Path) -> None:
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "security.inter.broker.protocol": "SASL_PLAINTEXT"}
    mechanism = {"sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN"}

    async def run() -> None:
        await BrokerServer(BrokerConfig.from_properties(settings | mechanism | {"broker.id": "0", "log.dirs": str(tmp_path)})).start()

    with pytest.raises(InvalidConfig, match="enables PLAIN and has no users"):
        asyncio.run(run())


@pytest.mark.parametrize("name", [f"{PREFIX}plain.sasl.jaas.config", f"{PREFIX}sasl.enabled.mechanisms", "sasl.enabled.mechanisms"])
def test_a_client_that_may_alter_configs_cannot_change_who_may_log_in(tmp_path: Path, name: str) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings = SETTINGS | {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "broker.id": "0",
        "log.dirs": str(tmp_path),
        "password.encoder.secret": "of the cluster",
    }
    value = f'{module} required user_admin="mine";' if name.endswith("jaas.config") else "PLAIN"

    async def run() -> None:
        server = BrokerServer(BrokerConfig.from_properties(settings))
        await server.start()
        alteration = {ConfigResource(ConfigResourceType.BROKER, "0"): [AlterConfigOp(name, value)]}
        async with AsyncAdmin(bootstrap_servers=f"127.0.0.1:{server.sockets.port('PLAINTEXT')}") as admin:
            with pytest.raises(InvalidRequest, match=r"cannot be updated dynamically for existing listener ListenerName\(SASL_PLAINTEXT\)"):
                (await admin.incremental_alter_configs(alteration)).all()
        await server.shutdown()

    asyncio.run(run())


def test_the_brokers_of_a_cluster_answer_unknown_users_alike_if_they_share_a_secret() -> None:
    async def run() -> None:
        salts = [Server({"password.encoder.secret": secret}).sasl._secret for secret in ("one", "one", "two")]
        assert salts[0] == salts[1] != salts[2]
        assert b"one" not in salts[0]

    asyncio.run(run())
