"""The SASL listeners of a broker: settings that stop the start, and settings that change while it runs."""

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
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from barnabas.security.errors import SaslAuthentication
from tests.unit.broker.security.sasl.connecting import SETTINGS, Server

PREFIX = "listener.name.sasl_plaintext."
TIMEOUT_S = 10


async def mechanisms(server: Server) -> list[str]:
    return (await server.connect().ask(SaslHandshakeRequest(""), SaslHandshakeResponse, 1)).mechanisms


async def is_let_in(server: Server, user: str, password: str) -> bool:
    client = server.connect()
    await client.ask(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, 1)
    token = f"\0{user}\0{password}".encode()
    return (await client.ask(SaslAuthenticateRequest(token), SaslAuthenticateResponse, 2)).error_code == 0


async def change(server: Server, **settings: str) -> None:
    """Applies the settings as the broker does when they have changed in the metadata store."""
    config = BrokerConfig(SETTINGS | {PREFIX + name.replace("_", "."): value for name, value in settings.items()})
    server.sasl.settings_changed(config, {PREFIX + name.replace("_", ".") for name in settings})
    assert server.sasl._replacing is not None
    async with asyncio.timeout(TIMEOUT_S):
        await asyncio.wait([server.sasl._replacing])


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


def test_a_broker_with_such_a_setting_does_not_start(tmp_path: Path) -> None:
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "security.inter.broker.protocol": "SASL_PLAINTEXT"}
    mechanism = {"sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN"}

    async def run() -> None:
        await BrokerServer(BrokerConfig.from_properties(settings | mechanism | {"broker.id": "0", "log.dirs": str(tmp_path)})).start()

    with pytest.raises(InvalidConfig, match="enables PLAIN and has no users"):
        asyncio.run(run())


def test_a_client_changes_the_jaas_text_of_a_listener_of_a_running_broker(tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    name = f"{PREFIX}plain.sasl.jaas.config"
    settings = SETTINGS | {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "broker.id": "0",
        "log.dirs": str(tmp_path),
        "password.encoder.secret": "of the cluster",
        name: f'{module} required user_alice="secret";',
    }
    del settings["barnabas.sasl.plain.users"]

    async def run() -> None:
        server = BrokerServer(BrokerConfig.from_properties(settings))
        await server.start()
        address = f"127.0.0.1:{server.sockets.port('SASL_PLAINTEXT')}"
        async with as_plain_user(address, "alice", "secret") as admin:
            await alter(admin, name, f'{module} required user_carol="new";')
            with pytest.raises(InvalidRequest, match=r"login module org\.example\.Other"):
                await alter(admin, name, 'org.example.Other required user_carol="new";')
        await until_let_in(address, "carol", "new")
        with pytest.raises(SaslAuthentication):
            async with as_plain_user(address, "alice", "secret") as admin:
                await admin.list_topics()
        await server.shutdown()

    asyncio.run(run())


def as_plain_user(address: str, user: str, password: str) -> AsyncAdmin:
    return AsyncAdmin(
        bootstrap_servers=address,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=user,
        sasl_password=password,
    )


async def alter(admin: AsyncAdmin, name: str, value: str) -> None:
    results = await admin.incremental_alter_configs({ConfigResource(ConfigResourceType.BROKER, "0"): [AlterConfigOp(name, value)]})
    results.all()


async def until_let_in(address: str, user: str, password: str) -> None:
    """The change is applied when its notification arrives."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            try:
                async with as_plain_user(address, user, password) as admin:
                    await admin.list_topics()
                return
            except SaslAuthentication:
                await asyncio.sleep(0.01)


def test_users_and_mechanisms_of_a_listener_change_while_the_broker_runs() -> None:
    async def run() -> None:
        server = Server()
        assert await is_let_in(server, "alice", "secret")
        await change(server, barnabas_sasl_plain_users="carol:new", sasl_enabled_mechanisms="PLAIN")
        assert not await is_let_in(server, "alice", "secret")
        assert await is_let_in(server, "carol", "new")
        assert await mechanisms(server) == ["PLAIN"]

    asyncio.run(run())


def test_a_connection_that_is_being_authenticated_goes_on_with_the_settings_of_its_beginning() -> None:
    async def run() -> None:
        server = Server()
        client = server.connect()
        await client.ask(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, 1)
        await change(server, sasl_enabled_mechanisms="SCRAM-SHA-256")
        response = await client.ask(SaslAuthenticateRequest(b"\0alice\0secret"), SaslAuthenticateResponse, 2)
        assert response.error_code == 0

    asyncio.run(run())


def test_settings_that_cannot_be_applied_leave_the_previous_ones_in_effect(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        server = Server()
        await change(server, sasl_enabled_mechanisms="PLAIN,UNKNOWN")
        assert await mechanisms(server) == ["PLAIN", "SCRAM-SHA-256"]
        with pytest.raises(InvalidConfig, match="unknown mechanism"):
            server.sasl.validate(BrokerConfig(SETTINGS | {f"{PREFIX}sasl.enabled.mechanisms": "UNKNOWN"}))

    asyncio.run(run())
    assert "the previous ones stay in effect" in caplog.text


def test_the_brokers_of_a_cluster_answer_unknown_users_alike_if_they_share_a_secret() -> None:
    async def run() -> None:
        salts = [Server({"password.encoder.secret": secret}).sasl._secret for secret in ("one", "one", "two")]
        assert salts[0] == salts[1] != salts[2]
        assert b"one" not in salts[0]

    asyncio.run(run())


def test_other_settings_do_not_concern_the_listeners() -> None:
    async def run() -> None:
        server = Server()
        server.sasl.settings_changed(server.config, {"log.retention.ms", "listener.name.sasl_plaintext.max.connections"})
        assert server.sasl._replacing is None

    asyncio.run(run())
