"""The settings that producer, consumer and admin share. Each adds its own settings, and its own defaults where Kafka's differ.

KEYS = table([*common(receive_buffer_bytes=65536), key("linger.ms", …), …])
config = ClientConfig(KEYS, given, keywords)
finish(config)
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from barnabas.client.config.config import REQUIRED, ClientConfig, key
from barnabas.client.config.security_config import OAUTHBEARER, SASL, SECURITY, SSL
from barnabas.config_def import ConfigKey, Importance, InvalidConfig, ListOf, OneOf, OneOfAnyCase, Range, Type, invalid

_STRING, _INT, _LONG, _LIST, _BOOLEAN = Type.STRING, Type.INT, Type.LONG, Type.LIST, Type.BOOLEAN
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

NETWORK: Final[tuple[ConfigKey, ...]] = (
    key("bootstrap.servers", _LIST, REQUIRED, None, _HIGH, "host:port, host:port, …: brokers from which the client learns the others."),
    key(
        "client.dns.lookup",
        _STRING,
        "use_all_dns_ips",
        OneOf(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
        _MEDIUM,
        "Whether each address of a name is tried in turn, or bootstrap names are replaced by the canonical names of their addresses.",
    ),
    key("client.id", _STRING, "", None, _MEDIUM, "The client's name in the brokers' logs, metrics and quotas."),
    key("connections.max.idle.ms", _LONG, 540000, None, _MEDIUM, "A connection that is idle for longer than this is closed."),
    key("receive.buffer.bytes", _INT, 65536, Range(-1), _MEDIUM, "SO_RCVBUF of sockets; -1 for the system's choice."),
    key("send.buffer.bytes", _INT, 131072, Range(-1), _MEDIUM, "SO_SNDBUF of sockets; -1 for the system's choice."),
    key("reconnect.backoff.ms", _LONG, 50, Range(0), _LOW, "The first wait before the next connection attempt to the same broker."),
    key("reconnect.backoff.max.ms", _LONG, 1000, Range(0), _LOW, "The longest wait before the next connection attempt to the same broker."),
    key("request.timeout.ms", _INT, 30000, Range(0), _MEDIUM, "The longest wait for a response; then the connection is closed."),
    key("retry.backoff.ms", _LONG, 100, Range(0), _LOW, "The first wait before a failed request is retried."),
    key("retry.backoff.max.ms", _LONG, 1000, Range(0), _LOW, "The longest wait before a failed request is retried."),
    key(
        "socket.connection.setup.timeout.ms",
        _LONG,
        10000,
        None,
        _MEDIUM,
        "The first timeout of a connection attempt; it grows with failures.",
    ),
    key("socket.connection.setup.timeout.max.ms", _LONG, 30000, None, _MEDIUM, "The longest timeout of a connection attempt."),
)

METADATA: Final[tuple[ConfigKey, ...]] = (
    key("metadata.max.age.ms", _LONG, 300000, Range(0), _LOW, "The metadata of the cluster is refreshed at least this often."),
    key(
        "metadata.recovery.strategy",
        _STRING,
        "rebootstrap",
        OneOfAnyCase(("REBOOTSTRAP", "NONE")),
        _LOW,
        "If no known broker can be reached: start again from bootstrap.servers (rebootstrap), or keep the known brokers (none).",
    ),
    key(
        "metadata.recovery.rebootstrap.trigger.ms",
        _LONG,
        300000,
        Range(0),
        _LOW,
        "After this time without a Metadata response, start again from bootstrap.servers.",
    ),
)

METRICS: Final[tuple[ConfigKey, ...]] = (
    key("metrics.num.samples", _INT, 2, Range(1), _LOW, "The number of windows that a metric covers."),
    key("metrics.sample.window.ms", _LONG, 30000, Range(0), _LOW, "The length of one window."),
    key("metrics.recording.level", _STRING, "INFO", OneOf(("INFO", "DEBUG", "TRACE")), _LOW, "The level up to which metrics are recorded."),
    key("metric.reporters", _LIST, (), None, _LOW, "Objects that are notified when a metric is added or removed."),
    key("enable.metrics.push", _BOOLEAN, True, None, _LOW, "Whether metrics are pushed to brokers that subscribe to them."),
    key(
        "config.providers",
        _LIST,
        (),
        None,
        _LOW,
        "Names of providers that resolve values such as ${file:/etc/secrets:password}; their classes are in config.providers.NAME.class.",
    ),
)

PORT_MAX: Final = 65535
_HOST: Final = re.compile(r"[0-9a-zA-Z\-._]+|\[[0-9a-fA-F:.%]+]")
_ADDRESS: Final = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)]?:([0-9]+)")

COMMON: Final[tuple[ConfigKey, ...]] = (*NETWORK, *METADATA, *METRICS, *SECURITY, *SSL, *SASL, *OAUTHBEARER)


def common(**defaults: object) -> list[ConfigKey]:
    """The shared settings, with other defaults for some: `common(connections_max_idle_ms=300000)`."""
    changed = {name.replace("_", "."): value for name, value in defaults.items()}
    unknown = changed.keys() - {definition.name for definition in COMMON}
    assert not unknown, f"no common settings: {unknown}"
    return [replace(definition, default=changed.get(definition.name, definition.default)) for definition in COMMON]


def finish(config: ClientConfig) -> None:
    """Derives settings from other settings and validates combinations of settings. Call it once for each configuration.

    If only reconnect.backoff.ms is set, the wait is constant, as it was when there was only that setting.
    """
    if config.is_given("reconnect.backoff.ms") and not config.is_given("reconnect.backoff.max.ms"):
        config.override("reconnect.backoff.max.ms", config["reconnect.backoff.ms"])
    if config["retry.backoff.ms"] > config["retry.backoff.max.ms"] and not config.is_given("retry.backoff.max.ms"):
        config.override("retry.backoff.ms", config["retry.backoff.max.ms"])
    protocol = str(config["security.protocol"]).upper()
    if protocol.startswith("SASL") and not config["sasl.mechanism"]:
        reason = "When the security.protocol configuration enables SASL, mechanism must be non-null and non-empty string."
        raise invalid("sasl.mechanism", "null", reason)
    ListOf(empty=False).check("bootstrap.servers", config["bootstrap.servers"])
    bootstrap_addresses(config)


def bootstrap_addresses(config: ClientConfig) -> list[tuple[str, int]]:
    """The addresses of bootstrap.servers; raises InvalidConfig in Kafka's words. Names are resolved when the client connects, not here."""
    addresses: list[tuple[str, int]] = []
    for entry in config["bootstrap.servers"]:
        match = _ADDRESS.fullmatch(str(entry))
        if match is None and _HOST.fullmatch(str(entry)):
            raise InvalidConfig(f"Invalid url in bootstrap.servers: {entry}: the port is missing, write {entry}:9092")
        if match is None or not match[1]:
            raise InvalidConfig(f"Invalid url in bootstrap.servers: {entry}: write host:port")
        if len(match[2]) > 5 or int(match[2]) > PORT_MAX:
            raise InvalidConfig(f"Invalid port in bootstrap.servers: {entry}")
        addresses.append((match[1], int(match[2])))
    return addresses
