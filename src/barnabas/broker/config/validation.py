"""Constraints between the settings of a broker: Kafka's checks at the start, with its messages.

The definition of each setting has validated its value alone. Kafka's checks of a KRaft quorum are left out, because Barnabas has none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.listeners import names, normalised
from barnabas.config_def import InvalidConfig, invalid

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig

_CODECS: Final = range(5)
_HOST: Final = re.compile(r"([0-9a-zA-Z\-%._:]*)")


class UnmetRequirement(InvalidConfig):
    """Values that contradict each other. In responses to clients, Kafka puts `requirement failed: ` before the message."""


def validate(config: BrokerConfig) -> None:
    _identity(config)
    _logs(config)
    _replication(config)
    _listeners(config)
    _sasl(config)
    _connections(config)
    _groups(config)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise UnmetRequirement(message)


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
    _require(
        not config.flag("zookeeper.metadata.migration.enable"),
        "zookeeper.metadata.migration.enable must be false: there is no KRaft quorum to migrate to.",
    )


def _logs(config: BrokerConfig) -> None:
    retention_ms = config.topic_default("retention.ms")
    _require(config.topic_default("segment.ms") >= 1, "log.roll.ms must be greater than or equal to 1")
    _require(config.topic_default("segment.jitter.ms") >= 0, "log.roll.jitter.ms must be greater than or equal to 0")
    _require(retention_ms >= 1 or retention_ms == -1, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    _require(len(config.log_dirs) > 0, "At least one log directory must be defined via log.dirs or log.dir.")
    threads = config.number("log.cleaner.threads")
    if threads == 0:
        raise invalid("log.cleaner.threads", 0, "Value must be at least 1")
    _require(
        config.number("log.cleaner.dedupe.buffer.size") // threads > 1024 * 1024,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )


def _replication(config: BrokerConfig) -> None:
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
    known = {*names(config.listeners), *map(normalised, config.items("controller.listener.names"))}
    for listener in config.items("early.start.listeners"):
        _require(
            normalised(listener) in known,
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
    for name in ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"):
        _require(config.number(name) in _CODECS, f"Unknown compression type id: {config[name]}")


def _between(config: BrokerConfig, low: str, name: str, high: str) -> None:
    _require(config.number(high) >= config.number(low), f"{high} must be greater than or equal to {low}")
    _require(config.number(name) >= config.number(low), f"{name} must be greater than or equal to {low}")
    _require(config.number(name) <= config.number(high), f"{name} must be less than or equal to {high}")
