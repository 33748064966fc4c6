"""metrics.listener with TLS, users and an authorizer, in a real broker: who may read what."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.server.server import BrokerServer
from barnabas.config_def import InvalidConfig
from barnabas.network.event_loop import run
from barnabas.security.new_user import NewUser
from tests.unit.security.certificates import authority, key_store

T = TypeVar("T")
USERS = {
    "listeners": "SASL_SSL://localhost:0",
    "security.inter.broker.protocol": "SASL_SSL",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN",
    "barnabas.sasl.plain.users": "carol:of plain",
    "metrics.listener.authentication": "basic",
}
ACLS = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:alice"}


def serving(path: Path, use: Callable[[BrokerServer], Awaitable[T]], settings: dict[str, str]) -> T:
    store = path / "broker.pem"
    store.write_text(key_store("broker", "localhost"))
    properties = {
        "listeners": "PLAINTEXT://localhost:0",
        "broker.id": "5",
        "log.dirs": str(path / "data"),
        "metrics.listener": "https://localhost:0",
        "ssl.keystore.location": str(store),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.certificates": authority().own.pem,
        "ssl.truststore.type": "PEM",
        "barnabas.ssl.reload.interval.ms": "10",
        **settings,
    }
    users = [NewUser.of_password(name, f"of {name}", "SCRAM-SHA-256") for name in ("alice", "bob")]

    async def life() -> T:
        server = BrokerServer(BrokerConfig.from_properties(properties), new_users=users)
        await server.start()
        try:
            return await asyncio.wait_for(use(server), 60)
        finally:
            await server.shutdown(1000)

    return run(life())


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority().own.pem)


async def get(server: BrokerServer, path: str, user: str = "", password: str = "") -> tuple[int, str]:
    assert server.metrics is not None
    request = urllib.request.Request(f"{server.metrics.address}{path}")
    if user:
        request.add_header("Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())

    def fetched() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=30, context=trusting()) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    return await asyncio.to_thread(fetched)


def test_https_uses_the_certificate_of_the_broker(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        status, text = await get(server, "/metrics")
        assert (status, "kafka_server_kafkaserver_brokerstate" in text) == (200, True)

    serving(tmp_path, use, {})


def test_a_replaced_certificate_is_shown_to_new_clients(tmp_path: Path) -> None:
    def serial(port: int) -> str:
        return ssl.get_server_certificate(("localhost", port))

    async def use(server: BrokerServer) -> None:
        assert server.metrics is not None and server.metrics.address is not None
        port = int(server.metrics.address.rpartition(":")[2])
        before = await asyncio.to_thread(serial, port)
        (tmp_path / "new").write_text(key_store("broker", "localhost"))
        os.replace(tmp_path / "new", tmp_path / "broker.pem")
        while await asyncio.to_thread(serial, port) == before:
            await asyncio.sleep(0.01)
        assert (await get(server, "/health/live"))[0] == 200

    serving(tmp_path, use, {})


def test_basic_authentication_accepts_the_users_of_plain_and_scram_only(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        for _ in range(2):  # the second time a password of SCRAM is remembered
            assert (await get(server, "/metrics", "alice", "of alice"))[0] == 200
        assert (await get(server, "/health/cluster", "carol", "of plain"))[0] in (200, 503)
        for user, password in (("alice", "of bob"), ("nobody", "of alice"), ("carol", "of carol"), ("alice", "")):
            assert (await get(server, "/metrics", user, password))[0] == 401
        for path in ("/metrics", "/health/cluster", "/", "/x", "/health/ready/../../metrics"):
            assert (await get(server, path))[0] == 401

    serving(tmp_path, use, USERS)


def test_probes_need_no_password_and_tell_the_status_only(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        assert await get(server, "/health/live") == (200, '{"status": "good"}\n')
        assert await get(server, "/health/ready") == (200, '{"status": "good"}\n')
        assert await get(server, "/health/ready", "alice", "wrong") == (200, '{"status": "good"}\n')
        assert await get(server, "/health/ready", "alice", "of alice") == (200, '{"status": "good", "problems": []}\n')

    serving(tmp_path, use, USERS)


def test_with_an_authorizer_reading_needs_describe_on_the_cluster(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        assert (await get(server, "/metrics", "alice", "of alice"))[0] == 200
        assert await get(server, "/metrics", "bob", "of bob") == (403, "User:bob needs DESCRIBE on the cluster\n")

    serving(tmp_path, use, USERS | ACLS)


def test_without_authentication_an_authorizer_decides_about_the_anonymous(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> int:
        return (await get(server, "/metrics"))[0]

    (tmp_path / "a").mkdir()
    assert serving(tmp_path / "a", use, ACLS) == 403
    (tmp_path / "b").mkdir()
    assert serving(tmp_path / "b", use, ACLS | {"super.users": "User:ANONYMOUS"}) == 200


def test_a_changed_password_ends_the_memory_of_the_old_one(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        assert (await get(server, "/metrics", "bob", "of bob"))[0] == 200
        server.broker.credentials.set_user("SCRAM-SHA-256", "bob", NewUser.of_password("bob", "new", "SCRAM-SHA-256").credential)
        assert (await get(server, "/metrics", "bob", "of bob"))[0] == 401
        assert (await get(server, "/metrics", "bob", "new"))[0] == 200

    serving(tmp_path, use, USERS)


def test_http_on_the_port_of_https_is_closed_and_the_next_client_is_served(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        assert server.metrics is not None and server.metrics.address is not None
        port = int(server.metrics.address.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("localhost", port)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        try:
            assert b"200" not in await asyncio.wait_for(reader.read(), 30)
        except ConnectionError:
            pass
        writer.close()
        assert (await get(server, "/health/live"))[0] == 200

    serving(tmp_path, use, {})


def test_passwords_are_not_sent_in_clear_beyond_this_machine() -> None:
    with pytest.raises(InvalidConfig, match="use https"):
        BrokerConfig.from_properties({"metrics.listener": "http://:9404", "metrics.listener.authentication": "basic"})
    BrokerConfig.from_properties({"metrics.listener": "http://127.0.0.1:9404", "metrics.listener.authentication": "basic"})


def test_basic_authentication_without_users_stops_the_start(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        raise AssertionError

    with pytest.raises(InvalidConfig, match="needs users"):
        serving(tmp_path, use, {"metrics.listener.authentication": "basic"})
