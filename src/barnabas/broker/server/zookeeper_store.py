"""ZooKeeper as the metadata store of a cluster, configured by the settings `zookeeper.*`."""

from __future__ import annotations

import os
import ssl
from random import Random
from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.config_def import InvalidConfig
from barnabas.metadata.zookeeper.access import of_creator, open_to_all
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree

# Kafka reads its user and password for ZooKeeper from a JAAS file of Java. Barnabas reads them from this environment variable.
CREDENTIALS_VARIABLE: Final = "BARNABAS_ZOOKEEPER_DIGEST"


def zookeeper_tree(config: BrokerConfig, random: Random) -> ZooKeeperTree:
    """Raises InvalidConfig or StoreUnusable; the message names the fix."""
    digest = os.environ.get(CREDENTIALS_VARIABLE)
    sets_acl = config.flag("zookeeper.set.acl")
    if sets_acl and not digest:
        raise InvalidConfig(
            f"zookeeper.set.acl is true, but this broker has no user and password for ZooKeeper: set {CREDENTIALS_VARIABLE}=user:password"
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
            tls=_tls(config) if config.flag("zookeeper.ssl.client.enable") else None,
            random=random,
        )
    )


def _tls(config: BrokerConfig) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=_pem(config, "truststore"))
    context.check_hostname = bool(config.text("zookeeper.ssl.endpoint.identification.algorithm"))
    key_store = _pem(config, "keystore")
    if key_store is not None:
        context.load_cert_chain(key_store, password=config.text("zookeeper.ssl.keystore.password"))
    return context


def _pem(config: BrokerConfig, store: str) -> str | None:
    location = config.text(f"zookeeper.ssl.{store}.location")
    if location is not None and (config.text(f"zookeeper.ssl.{store}.type") or "PEM").upper() != "PEM":
        raise InvalidConfig(f"zookeeper.ssl.{store}.type must be PEM: other stores are not read here")
    return location
