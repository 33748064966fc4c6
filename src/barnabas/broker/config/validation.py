"""Constraints between the settings of a broker: Kafka's checks at the start, with its messages.

The definition of each setting has validated its value alone. Kafka's checks of a KRaft quorum are left out, because Barnabas has none.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.listeners import names, normalised
from barnabas.broker.config.metrics_listener import BASIC, LISTENER_NAME, MetricsListener
from barnabas.broker.config.protocol_version import LOWEST
from barnabas.config_def import InvalidConfig, invalid
from barnabas.kafka_version import position

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig

ALL_LOG_DIRS: Final = "*"  # as the value of cordoned.log.dirs
_CODECS: Final = range(5)
_HOST: Final = re.compile(r"([0-9a-zA-Z\-%._:]*)")


# Flags that must stay false, because a broker that ignored them would not do what they promise: the reasons.
REFUSED: Final[Mapping[str, str]] = {
    "remote.log.storage.system.enable": "there is no tiered storage here, all segments stay on local disks.",
    "zookeeper.metadata.migration.enable": "there is no KRaft quorum to migrate to.",
    "zookeeper.ssl.crl.enable": "revocation lists of the certificates of ZooKeeper are not checked here.",
    "zookeeper.ssl.ocsp.enable": "revocation of the certificates of ZooKeeper is not checked here.",
}


class UnmetRequirement(InvalidConfig):
    """Values that contradict each other. In responses to clients, Kafka puts `requirement failed: ` before the message."""


def validate(config: BrokerConfig) -> None:
    _refused(config)
    _identity(config)
    _logs(config)
    _replication(config)
    _listeners(config)
    _sasl(config)
    _connections(config)
    _groups(config)
    _metrics(config)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise UnmetRequirement(message)


def _refused(config: BrokerConfig) -> None:
    for name, reason in REFUSED.items():
        _require(not config.flag(name), f"{name} must be false: {reason}")


def _identity(config: BrokerConfig) -> None:
    broker_id = config.broker_id
    _require(config["node.id"] in (None, broker_id), "You must set `node.id` to the same value as `broker.id`.")
    if config.items("process.roles"):
        _require(
            "broker" in config.items("process.roles"), "process.roles must contain broker: a node of Barnabas is never a controller alone."
        )
        _require(broker_id >= 0, "Missing configuration `node.id` which is required when `process.roles` is defined.")
    elif config.flag("broker.id.generation.enable"):
        _require(
            -1 <= broker_id <= config.number("reserved.broker.max.id"),
            "broker.id must be greater than or equal to -1 and not greater than reserved.broker.max.id",
        )
    else:
        _require(broker_id >= 0, "broker.id must be greater than or equal to 0")


def _logs(config: BrokerConfig) -> None:
    retention_ms = config.topic_default("retention.ms")
    _require(config.topic_default("segment.ms") >= 1, "log.roll.ms must be greater than or equal to 1")
    _require(config.topic_default("segment.jitter.ms") >= 0, "log.roll.jitter.ms must be greater than or equal to 0")
    _require(retention_ms >= 1 or retention_ms == -1, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    _require(len(config.log_dirs) > 0, "At least one log directory must be defined via log.dirs or log.dir.")
    _cordoned_log_dirs(config)
    threads = config.number("log.cleaner.threads")
    if threads == 0:
        raise invalid("log.cleaner.threads", 0, "Value must be at least 1")
    _require(
        config.number("log.cleaner.dedupe.buffer.size") // threads > 1024 * 1024,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )


def _cordoned_log_dirs(config: BrokerConfig) -> None:
    listed = config.items("cordoned.log.dirs")
    if ALL_LOG_DIRS in listed:
        _require(len(listed) == 1, f"cordoned.log.dirs must be {ALL_LOG_DIRS} alone, or a list of log directories")
        return
    known = {os.path.abspath(path) for path in config.log_dirs}
    unknown = [path for path in listed if os.path.abspath(path) not in known]
    _require(not unknown, f"All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries: {', '.join(unknown)}")


def _replication(config: BrokerConfig) -> None:
    protocol = config.text("inter.broker.protocol.version") or ""
    _require(
        position(protocol) >= position(LOWEST),
        f"inter.broker.protocol.version must be at least {LOWEST}, not {protocol}: upgrade the brokers of the cluster to it first.",
    )
    wait_ms = config.number("replica.fetch.wait.max.ms")
    _require(
        wait_ms <= config.number("replica.socket.timeout.ms"),
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary socket timeouts",
    )
    _require(
        wait_ms <= config.number("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent frequent changes in ISR",
    )


def _listeners(config: BrokerConfig) -> None:
    listening, advertised = names(config.broker_listeners), names(config.advertised_listeners)
    _require(len(listening) > 0, "listeners must name at least one listener that is not in controller.listener.names.")
    _require(len(advertised) > 0, "There must be at least one broker advertised listener.")
    options = f"The valid options based on currently configured listeners are {','.join(advertised)}"
    _require(
        config.inter_broker_listener_name in advertised,
        f"inter.broker.listener.name must be a listener name defined in advertised.listeners. {options}",
    )
    _require(
        set(advertised) <= set(listening),
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. "
        f"Found {','.join(advertised)}. The valid options based on the current configuration are {','.join(listening)}",
    )
    _require(
        all(endpoint.host != "0.0.0.0" for endpoint in config.advertised_listeners),
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.",
    )
    control_plane = config.control_plane_listener_name
    if control_plane is not None:
        _require(
            control_plane in advertised, f"control.plane.listener.name must be a listener name defined in advertised.listeners. {options}"
        )
        _require(
            control_plane != config.inter_broker_listener_name,
            "control.plane.listener.name, when defined, should have a different value from the inter broker listener name. "
            f"Currently they both have the value {control_plane}",
        )
    listener_names = {*names(config.listeners), *map(normalised, config.items("controller.listener.names"))}
    for listener in config.items("early.start.listeners"):
        _require(
            normalised(listener) in listener_names,
            f"early.start.listeners contains listener {normalised(listener)}, but this is not contained in listeners or "
            "controller.listener.names",
        )


def _sasl(config: BrokerConfig) -> None:
    if config.inter_broker_security_protocol.uses_sasl:
        enabled = config.for_listener(config.inter_broker_listener_name, "sasl.enabled.mechanisms")
        _require(
            config["sasl.mechanism.inter.broker.protocol"] in enabled,
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is used for "
            "inter-broker communication",
        )


def _connections(config: BrokerConfig) -> None:
    queued, overrides = config.number("queued.max.request.bytes"), config.max_connections_per_ip_overrides
    _require(
        queued <= 0 or queued >= config.number("socket.request.max.bytes"),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    _require(
        config.number("max.connections.per.ip") > 0 or len(overrides) > 0,
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    wrong = [address for address in overrides if not _HOST.fullmatch(address)]
    _require(not wrong, f"max.connections.per.ip.overrides contains invalid addresses : {','.join(wrong)}")
    delay_ms, idle_ms = config.number("connection.failed.authentication.delay.ms"), config.number("connections.max.idle.ms")
    _require(
        idle_ms < 0 or delay_ms < idle_ms,
        f"connection.failed.authentication.delay.ms={delay_ms} should always be less than connections.max.idle.ms={idle_ms} "
        "to prevent failed authentication responses from timing out",
    )


def _groups(config: BrokerConfig) -> None:
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        _between(config, f"group.{kind}.min.heartbeat.interval.ms", heartbeat, f"group.{kind}.max.heartbeat.interval.ms")
        _between(config, f"group.{kind}.min.session.timeout.ms", session, f"group.{kind}.max.session.timeout.ms")
        _require(config.number(heartbeat) < config.number(session), f"{heartbeat} must be less than {session}")
    lock, shortest, longest = (f"group.share.{bound}record.lock.duration.ms" for bound in ("", "min.", "max."))
    _require(config.number(lock) >= config.number(shortest), f"{lock} must be greater than or equal to {shortest}")
    _require(config.number(longest) >= config.number(lock), f"{longest} must be greater than or equal to {lock}")
    _require("classic" in config.items("group.coordinator.rebalance.protocols"), "Disabling the 'classic' protocol is not supported.")
    acks = config.number("offsets.commit.required.acks")
    _require(
        -1 <= acks <= 1,
        "offsets.commit.required.acks must be -1 (all replicas in sync), 0 or 1 (the leader): no other number of acks is supported.",
    )
    for name in ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"):
        _require(config.number(name) in _CODECS, f"Unknown compression type id: {config[name]}")


def _between(config: BrokerConfig, low: str, name: str, high: str) -> None:
    _require(config.number(high) >= config.number(low), f"{high} must be greater than or equal to {low}")
    _require(config.number(name) >= config.number(low), f"{name} must be greater than or equal to {low}")
    _require(config.number(name) <= config.number(high), f"{name} must be less than or equal to {high}")


def _metrics(config: BrokerConfig) -> None:
    text = config.text("metrics.listener")
    is_basic = config.text("metrics.listener.authentication") == BASIC
    if text is None:
        return
    listener = MetricsListener.parse(text)
    _require(
        not is_basic or listener.uses_tls or listener.is_local,
        f"metrics.listener.authentication={BASIC} sends passwords, which metrics.listener={text} does not encrypt: use https.",
    )
    _require(
        not (is_basic or listener.uses_tls) or LISTENER_NAME not in names(config.listeners),
        f"listeners must not have a listener {LISTENER_NAME}: listener.name.{LISTENER_NAME.lower()}.* are settings of metrics.listener.",
    )
