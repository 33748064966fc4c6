"""Secured brokers that are compared: each with a listener of every kind, an authorizer, and the same ACLs and users.

`PLAINTEXT` is for the anonymous load generator, which the ACLs allow what it does; `TLS` adds encryption alone; `SASLTLS` has PLAIN for the
super user and SCRAM-SHA-256 for the handshakes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from barnabas.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    Admin,
    ResourcePattern,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from benchmarks import peers
from benchmarks.peers import Peer
from tests import certificates, kafka
from tests.certificates import Certificates

ADMIN, ADMIN_PASSWORD = "admin", "admin-secret"
USER, USER_PASSWORD = "alice", "alice-secret"
ACLS = 1000
TOPIC_PREFIX = "bench-"
_LISTENERS = {"PLAINTEXT": "PLAINTEXT", "TLS": "SSL", "SASLTLS": "SASL_SSL"}
_ANONYMOUS = "User:ANONYMOUS"


@dataclass(frozen=True)
class SecuredPeer:
    peer: Peer
    ports: dict[str, int]
    authority: Path


@contextmanager
def barnabas() -> Iterator[SecuredPeer]:
    with _barnabas("kafka.security.authorizer.AclAuthorizer") as secured:
        _make_users_and_acls(secured)
        yield secured


@contextmanager
def without_authorizer() -> Iterator[SecuredPeer]:
    """This broker with the same listeners, and nothing that is decided."""
    with _barnabas(None) as unguarded:
        yield unguarded


@contextmanager
def _barnabas(authorizer: str | None) -> Iterator[SecuredPeer]:
    with peers._directory(None) as directory:
        files, ports = certificates.make(directory), _ports("PLAINTEXT", "TLS", "SASLTLS")
        properties = directory / "server.properties"
        _write(properties, _settings(ports, files, authorizer) | {"broker.id": "1", "log.dirs": str(directory / "logs")})
        command = [sys.executable, "-m", "barnabas", "server", str(properties)]
        name = "barnabas without an authorizer" if authorizer is None else "secured barnabas"
        for peer in peers._running(name, command, ports["PLAINTEXT"], directory):
            yield SecuredPeer(peer, ports, files.authority)


@contextmanager
def apache_kafka() -> Iterator[SecuredPeer]:
    """Version 4.2.0 with a heap of 1 GB, one node of KRaft."""
    with peers._directory(None) as directory:
        files, ports = certificates.make(directory), _ports("PLAINTEXT", "TLS", "SASLTLS", "CONTROLLER")
        properties = directory / "server.properties"
        authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        _write(properties, _settings(ports, files, authorizer) | _quorum(ports["CONTROLLER"], directory / "logs"))
        java = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{kafka.prepare()}/*"]
        format_storage = [*java, "kafka.tools.StorageTool", "format", "-c", str(properties), "-t", "AAAAAAAAAAAAAAAAAAAAAA"]
        subprocess.run(format_storage, check=True, capture_output=True, timeout=120)
        heap = ["-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        command = [java[0], *heap, *java[1:], "kafka.Kafka", str(properties)]
        for peer in peers._running("secured Apache Kafka", command, ports["PLAINTEXT"], directory):
            secured = SecuredPeer(peer, ports, files.authority)
            _make_users_and_acls(secured)
            yield secured


def _make_users_and_acls(secured: SecuredPeer) -> None:
    """All but three of the ACLs are about other users and topics: a decision has to find its way past them."""
    own = [
        _acl(ResourcePattern(ResourceType.TOPIC, "*"), _ANONYMOUS, AclOperation.ALL),
        _acl(ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"), _ANONYMOUS, AclOperation.ALL),
        _acl(ResourcePattern(ResourceType.TOPIC, "*"), f"User:{USER}", AclOperation.DESCRIBE),
    ]
    others = [
        _acl(ResourcePattern(ResourceType.TOPIC, f"{TOPIC_PREFIX}other-{number}"), f"User:user-{number % 50}", AclOperation.WRITE)
        for number in range(ACLS - len(own))
    ]
    with Admin(
        bootstrap_servers=f"localhost:{secured.ports['SASLTLS']}",
        security_protocol="SASL_SSL",
        ssl_truststore_location=str(secured.authority),
        sasl_mechanism="PLAIN",
        sasl_username=ADMIN,
        sasl_password=ADMIN_PASSWORD,
    ) as admin:
        admin.create_acls([*own, *others]).all()
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion(USER, credential, USER_PASSWORD)]).all()


def _acl(pattern: ResourcePattern, principal: str, operation: AclOperation) -> AclBinding:
    return AclBinding(pattern, AccessControlEntry(principal, "*", operation, AclPermissionType.ALLOW))


def _settings(ports: dict[str, int], files: Certificates, authorizer: str | None) -> dict[str, str]:
    plain = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{ADMIN}="{ADMIN_PASSWORD}";'
    protocols = _LISTENERS | {"CONTROLLER": "SASL_PLAINTEXT"}
    authorization = {} if authorizer is None else {"authorizer.class.name": authorizer, "super.users": f"User:{ADMIN}"}
    return authorization | {
        "listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(f"{name}://localhost:{ports[name]}" for name in _LISTENERS),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasltls.plain.sasl.jaas.config": plain,
        "listener.name.sasltls.scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.server_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def _quorum(controller_port: int, logs: Path) -> dict[str, str]:
    """The broker authenticates at the controller of KRaft as the super user."""
    login = f'username="{ADMIN}" password="{ADMIN_PASSWORD}" user_{ADMIN}="{ADMIN_PASSWORD}"'
    return {
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f"org.apache.kafka.common.security.plain.PlainLoginModule required {login};",
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@localhost:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(logs),
    }


def _write(properties: Path, settings: dict[str, str]) -> None:
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


def _ports(*names: str) -> dict[str, int]:
    return {name: peers._free_port() for name in names}
