"""ZooKeeper as the metadata store of a cluster, configured by the settings `zookeeper.*`."""

from __future__ import annotations

import os
from random import Random
from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.config_def import InvalidConfig
from barnabas.metadata.zookeeper.access import of_creator, open_to_all
from barnabas.metadata.zookeeper.address import of_socket, parse
from barnabas.metadata.zookeeper.digest_md5 import SaslUser
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from barnabas.security.jaas import parse_jaas
from barnabas.security.tls.renewed_context import RenewedContext
from barnabas.security.tls.settings import TlsSettings

# Kafka reads its user and password for ZooKeeper from a JAAS file of Java. Barnabas reads them from settings, or, as user:password, from
# one of these environment variables: for SASL with DIGEST-MD5, and for ZooKeeper's own scheme `digest`, which needs no users there.
SASL_VARIABLE: Final = "BARNABAS_ZOOKEEPER_SASL"
CREDENTIALS_VARIABLE: Final = "BARNABAS_ZOOKEEPER_DIGEST"
LOCAL_IN_FLIGHT_MAX: Final = 1000  # requests to the parent: writes that arrive together share one commit

_TLS: Final = (
    "zookeeper.ssl.cipher.suites",
    "zookeeper.ssl.enabled.protocols",
    "zookeeper.ssl.keystore.location",
    "zookeeper.ssl.keystore.password",
    "zookeeper.ssl.keystore.type",
    "zookeeper.ssl.protocol",
    "zookeeper.ssl.truststore.location",
    "zookeeper.ssl.truststore.password",
    "zookeeper.ssl.truststore.type",
)


def zookeeper_tree(config: BrokerConfig, random: Random) -> ZooKeeperTree:
    """Raises InvalidConfig or StoreUnusable; the message names the fix."""
    digest = os.environ.get(CREDENTIALS_VARIABLE)
    sasl = _configured_user(config) or sasl_user_of_environment()
    sets_acl = config.flag("zookeeper.set.acl")
    if sets_acl and not digest and sasl is None:
        raise InvalidConfig(
            "zookeeper.set.acl is true, but this broker has no user and password for ZooKeeper: set barnabas.zookeeper.sasl.username and "
            f"barnabas.zookeeper.sasl.password, or the environment variable {SASL_VARIABLE} or {CREDENTIALS_VARIABLE} to user:password"
        )
    session_timeout_ms = config.number("zookeeper.session.timeout.ms")
    return ZooKeeperTree(
        ZooKeeperOptions(
            parse(config.text("zookeeper.connect") or ""),
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=config["zookeeper.connection.timeout.ms"] or session_timeout_ms,
            in_flight_max=config.number("zookeeper.max.in.flight.requests"),
            access_of=of_creator if sets_acl else open_to_all,
            credentials=[("digest", digest.encode())] if digest else (),
            sasl=sasl,
            tls=_tls(config).current if config.flag("zookeeper.ssl.client.enable") else None,
            random=random,
        )
    )


def parent_tree(socket_path: str, config: BrokerConfig) -> ZooKeeperTree:
    """The store that the parent process serves on a Unix socket."""
    session_timeout_ms = config.number("zookeeper.session.timeout.ms")
    return ZooKeeperTree(
        ZooKeeperOptions(
            of_socket(socket_path),
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=config["zookeeper.connection.timeout.ms"] or session_timeout_ms,
            in_flight_max=LOCAL_IN_FLIGHT_MAX,
        )
    )


def sasl_user_of_environment() -> SaslUser | None:
    """Raises InvalidConfig."""
    text = os.environ.get(SASL_VARIABLE)
    if not text:
        return None
    name, colon, password = text.partition(":")
    if not name or not colon or not password:
        raise InvalidConfig(f"The environment variable {SASL_VARIABLE} must be user:password")
    return SaslUser(name, password)


def _configured_user(config: BrokerConfig) -> SaslUser | None:
    name, password = config.text("barnabas.zookeeper.sasl.username"), config.text("barnabas.zookeeper.sasl.password")
    jaas = config.text("barnabas.zookeeper.sasl.jaas.config")
    if jaas is not None:
        if name is not None or password is not None:
            raise InvalidConfig("barnabas.zookeeper.sasl.jaas.config and barnabas.zookeeper.sasl.username are both set: remove one of them")
        return _jaas_user(jaas)
    if name is None and password is None:
        return None
    if not name or not password:
        raise InvalidConfig("barnabas.zookeeper.sasl.username and barnabas.zookeeper.sasl.password must be set together")
    return SaslUser(name, password)


def _jaas_user(text: str) -> SaslUser:
    try:
        options = parse_jaas(text).options
    except InvalidConfig as error:
        raise InvalidConfig(f"barnabas.zookeeper.sasl.jaas.config: {error}") from None
    if not options.get("username") or not options.get("password"):
        raise InvalidConfig(
            "barnabas.zookeeper.sasl.jaas.config must have the options username and password: "
            'org.apache.zookeeper.server.auth.DigestLoginModule required username="..." password="...";'
        )
    return SaslUser(options["username"], options["password"])


def _tls(config: BrokerConfig) -> RenewedContext:
    values = {name.removeprefix("zookeeper."): config[name] for name in _TLS}
    checks_host = bool(config.text("zookeeper.ssl.endpoint.identification.algorithm"))
    return RenewedContext(TlsSettings(values, prefix="zookeeper."), checks_host)
