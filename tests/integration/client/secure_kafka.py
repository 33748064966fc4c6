"""A broker with a listener for each way to be secure: TLS, mutual TLS, and SASL with and without TLS; and the settings for each.

Apache Kafka and ours have the same settings, except that ours accepts unsigned tokens only if it is told so.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from barnabas.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from tests import broker, kafka_server
from tests.certificates import Certificates
from tests.client_network import network, on_loop

USER = "alice"
OTHER_USER = "bob"  # of PLAIN
PASSWORD = "alice's secret"
SCRAM = {"SCRAM-SHA-256": (1, "sha256", 4096), "SCRAM-SHA-512": (2, "sha512", 8192)}
OAUTH_JAAS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub={};"
SESSION_MS = 3000  # of the listener that wants clients to authenticate again
_LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
    "SHORT": "SASL_PLAINTEXT",
}
_OUR_SETTINGS = {
    "broker.id": "1",
    "barnabas.sasl.oauthbearer.unsigned.tokens.allowed": "true",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
_READY = re.compile(r"^ready ")
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@dataclass(frozen=True)
class SecureKafka:
    """Addresses by listener: PLAINTEXT, TLS, MUTUAL, SASL, SASLTLS, and SHORT, whose sessions last SESSION_MS.

    TLS is there on every address of the machine, of which the certificate names one. SHORT has no SCRAM-SHA-512.
    """

    addresses: dict[str, str]
    certificates: Certificates


@contextmanager
def running(directory: Path, certificates: Certificates) -> Generator[SecureKafka, None, None]:
    """An Apache Kafka."""
    ports = _free_ports(*_LISTENERS, "CONTROLLER")
    command = kafka_server.command(directory, 1, ports["PLAINTEXT"], ports["CONTROLLER"], _settings(ports, certificates))
    with broker.started(command, kafka_server.STARTED, kafka_server.START_TIMEOUT_S):
        yield _with_users(ports, certificates)


@contextmanager
def running_ours(directory: Path, certificates: Certificates) -> Generator[SecureKafka, None, None]:
    """A Barnabas."""
    ports = _free_ports(*_LISTENERS)
    own = _OUR_SETTINGS | {"log.dirs": str(directory / "logs")}
    properties = directory / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in (_settings(ports, certificates) | own).items()))
    command = [sys.executable, "-m", "barnabas", "server", str(properties)]
    with broker.started(command, _READY, broker.START_TIMEOUT_S, broker.CRASH):
        yield _with_users(ports, certificates)


def with_tls(files: Certificates, **settings: Any) -> dict[str, Any]:
    return {"security_protocol": "SSL", "ssl_truststore_location": str(files.authority), **settings}


def with_sasl(mechanism: str, **settings: Any) -> dict[str, Any]:
    given = {"sasl_username": USER, "sasl_password": PASSWORD}
    return {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism} | given | settings


def with_token(**settings: Any) -> dict[str, Any]:
    given = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER", "sasl_jaas_config": OAUTH_JAAS.format(USER)}
    return given | settings


def _with_users(ports: dict[str, int], certificates: Certificates) -> SecureKafka:
    kafka = SecureKafka({name: f"localhost:{ports[name]}" for name in _LISTENERS}, certificates)
    on_loop(_make_users, kafka)
    return kafka


async def _make_users(kafka: SecureKafka) -> None:
    async with network(kafka.addresses["PLAINTEXT"]) as client:
        for number, name, iterations in SCRAM.values():
            salt = os.urandom(16)
            salted = hashlib.pbkdf2_hmac(name, PASSWORD.encode(), salt, iterations)
            user = ScramCredentialUpsertion(USER, number, iterations, salt, salted)
            response = await client.send_to_any(AlterUserScramCredentialsRequest(upsertions=[user]))
            assert isinstance(response, AlterUserScramCredentialsResponse) and response.results[0].error_code == 0


def _settings(ports: dict[str, int], certificates: Certificates) -> dict[str, str]:
    plain = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}" user_{OTHER_USER}="{PASSWORD}";'
    settings = {
        "listeners": ",".join(f"{name}://{'0.0.0.0' if name == 'TLS' else '127.0.0.1'}:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(f"{name}://localhost:{ports[name]}" for name in _LISTENERS),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in (_LISTENERS | {"CONTROLLER": "PLAINTEXT"}).items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.short.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.short.plain.connections.max.reauth.ms": str(SESSION_MS),
        "listener.name.short.scram-sha-256.connections.max.reauth.ms": str(SESSION_MS),
    }
    for listener in ("sasl", "sasltls", "short"):
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = plain
        settings[f"listener.name.{listener}.scram-sha-256.sasl.jaas.config"] = _SCRAM_MODULE
        settings[f"listener.name.{listener}.scram-sha-512.sasl.jaas.config"] = _SCRAM_MODULE
        settings[f"listener.name.{listener}.oauthbearer.sasl.jaas.config"] = OAUTH_JAAS.format("broker")
    return settings


def _free_ports(*names: str) -> dict[str, int]:
    with ExitStack() as held:
        return {name: held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for name in names}
