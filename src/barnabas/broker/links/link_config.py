"""The client settings that secure connections to other brokers, from the settings of the listener that they connect to.

As in Kafka, a broker is a client of its own listener: it uses the JAAS text that its listener has for the mechanism
`sasl.mechanism.inter.broker.protocol`, with the options that a client needs: `username` and `password`, or those of a token or a keytab.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.listeners import config_prefix
from barnabas.config_def import InvalidConfig
from barnabas.security.jaas import parse_jaas
from barnabas.security.scram import HASHES
from barnabas.security.tls.settings import TLS_SETTINGS

_SETUP_TIMEOUTS: Final = ("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms")
USERNAME: Final = "barnabas.sasl.inter.broker.username"
PASSWORD: Final = "barnabas.sasl.inter.broker.password"
KAFKAS_RETRIEVER: Final = "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"  # the default: by the other settings

_TLS: Final = ("ssl.endpoint.identification.algorithm", *TLS_SETTINGS)
# The settings of clients that a listener of a broker has, too.
_SASL: Final = (
    "sasl.client.callback.handler.class",
    "sasl.kerberos.service.name",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
)


def link_config(config: BrokerConfig, listener_name: str | None = None) -> dict[str, object]:
    """For connections to a listener; None: to the inter-broker listener. Raises InvalidConfig."""
    name = listener_name or config.inter_broker_listener_name
    endpoint = next((listener for listener in config.broker_listeners if listener.listener_name == name), None)
    if endpoint is None:
        return {}
    protocol = endpoint.security_protocol
    settings: dict[str, object] = {"security.protocol": protocol.name}
    if protocol.uses_tls:
        settings |= {key: config.for_listener(name, key) for key in _TLS}
    if protocol.uses_sasl:
        settings |= _sasl_config(config, name)
    return {key: value for key, value in settings.items() if value is not None}


def setup_timeouts(config: BrokerConfig) -> dict[str, object]:
    """How long an attempt to connect to another broker may take: at first, and after repeated failures."""
    return {name: config[name] for name in _SETUP_TIMEOUTS}


def _sasl_config(config: BrokerConfig, listener_name: str) -> dict[str, object]:
    mechanism = config.text("sasl.mechanism.inter.broker.protocol") or ""
    settings: dict[str, object] = {"sasl.mechanism": mechanism}
    settings |= {key: config.for_listener(listener_name, key) for key in _SASL}
    settings["sasl.login.callback.handler.class"] = config.for_listener(listener_name, "sasl.login.callback.handler.class", mechanism)
    retriever = config.for_listener(listener_name, "sasl.oauthbearer.jwt.retriever.class")
    settings["sasl.oauthbearer.jwt.retriever.class"] = None if retriever == KAFKAS_RETRIEVER else retriever
    jaas = config.for_listener(listener_name, "sasl.jaas.config", mechanism)
    if mechanism == "PLAIN" or mechanism in HASHES:
        settings |= _user(config, listener_name, mechanism, jaas)
    else:
        settings["sasl.jaas.config"] = jaas
        settings["sasl.kerberos.keytab"] = config.for_listener(listener_name, "barnabas.sasl.kerberos.keytab")
        settings["sasl.kerberos.principal"] = config.for_listener(listener_name, "barnabas.sasl.kerberos.principal")
    return settings


def _user(config: BrokerConfig, listener_name: str, mechanism: str, jaas: str | None) -> dict[str, object]:
    username, password = config.text(USERNAME), config.text(PASSWORD)
    if username and password:
        return {"sasl.username": username, "sasl.password": password}
    if username or password:
        raise InvalidConfig(f"{USERNAME} and {PASSWORD} must be set together")
    if config.text("sasl.client.callback.handler.class"):
        return {}
    options = {} if jaas is None else parse_jaas(jaas).options
    if not options.get("username") or not options.get("password"):
        raise InvalidConfig(
            f"This broker has no user for the listener {listener_name} of the other brokers: set {USERNAME} and {PASSWORD}, or add "
            f"username and password to {config_prefix(listener_name)}{mechanism.lower()}.sasl.jaas.config"
        )
    return {"sasl.jaas.config": jaas}
