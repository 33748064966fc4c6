"""The brokers, ours and Apache Kafka, with the same listeners, users and ACLs.

The authorizer is on. The anonymous user of the PLAINTEXT listener is a super user, by which the tests create topics, users and ACLs.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from barnabas.client import Admin, NewTopic
from barnabas.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests import broker, kafka_server
from tests.integration.security.clients.login import GROUP, WAIT_S
from tests.integration.security.clients.stores import Stores, make_stores
from tests.integration.security.clients.tokens import AUDIENCE, ISSUER, Issuer, make_issuer

USER = "alice"
PASSWORD = "alice-secret"
TOPIC = "secured"
SESSION_MS = 1500  # of the listener whose sessions expire
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM, "OAUTHBEARER")

# Listeners by what is special about them: a good certificate, an expired one, one of another host, and sessions that expire.
SECURE, EXPIRED, ELSEWHERE, SHORT = "SECURE", "EXPIRED", "ELSEWHERE", "SHORT"
_PLAIN = "PLAINTEXT"
SASL_LISTENERS = (SECURE, EXPIRED, ELSEWHERE, SHORT)
_PACKAGE = "org.apache.kafka.common.security"
_JAAS = {
    "PLAIN": f'{_PACKAGE}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "OAUTHBEARER": f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=broker;",
} | dict.fromkeys(SCRAM, f"{_PACKAGE}.scram.ScramLoginModule required;")


@dataclass(frozen=True)
class Peer:
    """Addresses by listener, and what a client needs to be let in."""

    addresses: dict[str, str]
    stores: Stores
    issuer: Issuer

    def admin(self) -> Admin:
        return Admin(bootstrap_servers=self.addresses[_PLAIN])


@contextmanager
def apache_kafka(directory: Path, more: Mapping[str, str] | None = None, options: Sequence[str] = ()) -> Generator[Peer, None, None]:
    """`more` settings win over those of all tests; `options` are for its JVM."""
    peer, controller = _peer(directory)
    port = int(peer.addresses[_PLAIN].rpartition(":")[2])
    settings = _settings(peer) | {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "listeners": f"{_listeners(peer)},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": f"{_protocols()},CONTROLLER:PLAINTEXT",
        **(more or {}),
    }
    java, *rest = kafka_server.command(directory, 1, port, controller, settings)
    command = [java, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={peer.issuer.key_set.as_uri()}", *options, *rest]
    with broker.started(command, kafka_server.STARTED, kafka_server.START_TIMEOUT_S):
        _prepare(peer)
        yield peer


@contextmanager
def own_broker(directory: Path, more: Mapping[str, str] | None = None) -> Generator[Peer, None, None]:
    peer, _ = _peer(directory)
    settings = _settings(peer) | {
        "broker.id": "1",
        "log.dirs": str(directory / "data"),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "listeners": _listeners(peer),
        "listener.security.protocol.map": _protocols(),
        **(more or {}),
    }
    properties = directory / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = [sys.executable, "-m", "barnabas", "server", str(properties)]
    with broker.started(command, broker.READY, broker.START_TIMEOUT_S, broker.CRASH):
        _prepare(peer)
        yield peer


def _peer(directory: Path) -> tuple[Peer, int]:
    """With the port of the controller."""
    names = (_PLAIN, *SASL_LISTENERS)
    *ports, controller = _free_ports(len(names) + 1)
    addresses = {name: f"localhost:{port}" for name, port in zip(names, ports, strict=True)}
    return Peer(addresses, make_stores(directory), make_issuer(directory)), controller


def _settings(peer: Peer) -> dict[str, str]:
    stores = peer.stores
    settings = {
        "advertised.listeners": _listeners(peer),
        "inter.broker.listener.name": _PLAIN,
        "super.users": "User:ANONYMOUS",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(stores.good),
        "listener.name.expired.ssl.keystore.location": str(stores.expired),
        "listener.name.elsewhere.ssl.keystore.location": str(stores.elsewhere),
        "sasl.oauthbearer.jwks.endpoint.url": peer.issuer.key_set.as_uri(),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    for listener in SASL_LISTENERS:
        prefix = f"listener.name.{listener.lower()}"
        settings |= {f"{prefix}.{mechanism.lower()}.sasl.jaas.config": jaas for mechanism, jaas in _JAAS.items()}
        handler = f"{_PACKAGE}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        settings[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = handler
    for mechanism in MECHANISMS:
        settings[f"listener.name.short.{mechanism.lower()}.connections.max.reauth.ms"] = str(SESSION_MS)
    return settings


def _listeners(peer: Peer) -> str:
    return ",".join(f"{name}://{address}" for name, address in peer.addresses.items())


def _protocols() -> str:
    return ",".join(f"{name}:{'PLAINTEXT' if name == _PLAIN else 'SASL_SSL'}" for name in (_PLAIN, *SASL_LISTENERS))


def _prepare(peer: Peer) -> None:
    """The topic, the SCRAM user, and the ACLs of the user."""
    with peer.admin() as admin:
        create_topic(admin, TOPIC)
        admin.create_acls([allowed(ResourceType.GROUP, GROUP, PatternType.PREFIXED)]).all()
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            credential = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD)
            admin.alter_user_scram_credentials([credential]).all()
        _wait_until_applied(admin)


def _wait_until_applied(admin: Admin) -> None:
    """Apache Kafka answers before its broker has the ACLs and the users."""
    deadline = time.monotonic() + WAIT_S
    while len(admin.describe_acls()) < 2 or len(admin.describe_user_scram_credentials([USER])[USER].credential_infos) < 2:
        assert time.monotonic() < deadline, "the ACLs and SCRAM users are not there"


def create_topic(admin: Admin, name: str) -> AclBinding:
    """A topic that the user may do everything with, by the ACL that is returned."""
    acl = allowed(ResourceType.TOPIC, name)
    admin.create_acls([acl]).all()
    admin.create_topics([NewTopic(name, 1, 1)]).all()
    return acl


def allowed(kind: ResourceType, name: str, pattern: PatternType = PatternType.LITERAL) -> AclBinding:
    entry = AccessControlEntry(f"User:{USER}", "*", AclOperation.ALL, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(kind, name, pattern), entry)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        return [held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]
