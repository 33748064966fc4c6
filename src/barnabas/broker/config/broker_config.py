"""The config of a broker, typed and validated: server.properties on top of Kafka's defaults.

A `BrokerConfig` is immutable. A dynamic update makes a new one (see dynamic.py), so a caller that keeps a value may keep an old one.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from typing import Any, Final

from barnabas.broker.config import validation
from barnabas.broker.config.definitions import BROKER_CONFIGS, DYNAMIC_ONLY_CONFIGS
from barnabas.broker.config.definitions.without_effect import BROKER_WITHOUT_EFFECT, warning
from barnabas.broker.config.listeners import (
    config_prefix,
    normalised,
    parse_listeners,
    parse_map,
    parse_security_protocol,
    parse_security_protocol_map,
)
from barnabas.broker.config.synonyms import base_name, config_key
from barnabas.config_def import LONG_MAX, InvalidConfig, value_text
from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.storage.log_config import LogConfig
from barnabas.storage.topic_configs import TIMESTAMP_BOUNDS, TIMESTAMP_DIFFERENCE, TOPIC_CONFIGS, topic_config_key

# Settings with these prefixes are passed to plugins, and only plugins know their names. The last two are of Kafka's authorizers.
_PLUGIN_PREFIXES: Final = ("config.providers.", "rlmm.config.", "rsm.config.", "super.users", "allow.everyone.if.no.acl.found")


class BrokerConfig:
    def __init__(self, properties: Mapping[str, str]) -> None:
        """Raises InvalidConfig for the first invalid value. Unknown names go into `unknown`, for a warning."""
        self.properties: Final[Mapping[str, str]] = _with_node_id(properties)
        self._values = {
            name: key.parse(self.properties[name]) if name in self.properties else key.default
            for name, key in (BROKER_CONFIGS | DYNAMIC_ONLY_CONFIGS).items()
        }
        for name, text in self.properties.items():
            if name not in self._values and (key := config_key(name)) is not None:
                self._values[name] = key.parse(text)
        self.unknown = sorted(name for name in self.properties if config_key(name) is None and not name.startswith(_PLUGIN_PREFIXES))
        validation.validate(self)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """The config in server.properties. Dynamic-only settings count as unknown there, as in Kafka."""
        config = cls({name: text for name, text in properties.items() if name not in DYNAMIC_ONLY_CONFIGS})
        config.unknown += sorted(DYNAMIC_ONLY_CONFIGS.keys() & properties.keys())
        return config

    def __getitem__(self, name: str) -> Any:
        """The value of a setting by Kafka's name. Raises KeyError for an unknown name."""
        return self._values[name]

    def number(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int), name
        return value

    def ratio(self, name: str) -> float:
        value = self._values[name]
        assert isinstance(value, float), name
        return value

    def flag(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool), name
        return value

    def text(self, name: str) -> str | None:
        value = self._values[name]
        assert value is None or isinstance(value, str), name
        return value

    def items(self, name: str) -> tuple[str, ...]:
        """The value of a LIST setting; empty if it is not set."""
        return self._values[name] or ()

    def is_set(self, name: str) -> bool:
        return name in self.properties

    def for_listener(self, listener_name: str, name: str, mechanism: str | None = None) -> Any:
        """The value of a setting for one listener, and optionally one of its SASL mechanisms: the most specific one that is set."""
        prefix = config_prefix(listener_name)
        if mechanism is not None and f"{prefix}{mechanism.lower()}.{name}" in self.properties:
            return self._values[f"{prefix}{mechanism.lower()}.{name}"]
        return self._values[prefix + name] if prefix + name in self.properties else self._values[name]

    def without_effect(self) -> list[str]:
        """One line for each setting that the user has set and that has no effect."""
        reasons = {name: BROKER_WITHOUT_EFFECT.get(base_name(name) or name) for name in sorted(self.properties)}
        return [warning(name, reason) for name, reason in reasons.items() if reason is not None]

    @property
    def broker_id(self) -> int:
        return self.number("broker.id")

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return self.items("log.dirs") or self.items("log.dir")

    @property
    def cordoned_log_dirs(self) -> frozenset[str]:
        """The log directories that get no new replicas, with their names in log.dirs. A relative name equals its absolute one."""
        listed = self.items("cordoned.log.dirs")
        if validation.ALL_LOG_DIRS in listed:
            return frozenset(self.log_dirs)
        cordoned = {os.path.abspath(path) for path in listed}
        return frozenset(path for path in self.log_dirs if os.path.abspath(path) in cordoned)

    @property
    def is_cordoned(self) -> bool:
        """Whether all log directories are cordoned: the broker gets no new replicas."""
        return self.cordoned_log_dirs == frozenset(self.log_dirs)

    @property
    def security_protocols(self) -> dict[str, SecurityProtocol]:
        """The security protocol of each listener name. Controller listeners that are not in the map use PLAINTEXT, as in KRaft."""
        name = "listener.security.protocol.map"
        protocols = parse_security_protocol_map(self._values[name], name)
        if not self.is_set(name):
            for listener in self.items("controller.listener.names"):
                protocols.setdefault(normalised(listener), SecurityProtocol.PLAINTEXT)
        return protocols

    @property
    def listeners(self) -> list[EndPoint]:
        return parse_listeners(self.items("listeners"), self.security_protocols)

    @property
    def broker_listeners(self) -> list[EndPoint]:
        """The listeners for clients and brokers: all except controller.listener.names."""
        return self._without_controllers(self.listeners)

    @property
    def data_plane_listeners(self) -> list[EndPoint]:
        return [endpoint for endpoint in self.broker_listeners if endpoint.listener_name != self.control_plane_listener_name]

    @property
    def listeners_of_brokers(self) -> frozenset[str]:
        """The listeners for brokers only: the control-plane listener, and the inter-broker listener if clients have another one."""
        names = {self.control_plane_listener_name} if self.control_plane_listener_name is not None else set()
        if len(self.data_plane_listeners) > 1:
            names.add(self.inter_broker_listener_name)
        return frozenset(names)

    @property
    def advertised_listeners(self) -> list[EndPoint]:
        """The endpoints for clients and other brokers. The caller replaces an empty host by the name of this machine."""
        if self["advertised.listeners"] is None:
            return self.broker_listeners
        advertised = parse_listeners(self.items("advertised.listeners"), self.security_protocols, distinct_ports=False)
        return self._without_controllers(advertised)

    def _without_controllers(self, endpoints: list[EndPoint]) -> list[EndPoint]:
        controllers = {normalised(name) for name in self.items("controller.listener.names")}
        return [endpoint for endpoint in endpoints if endpoint.listener_name not in controllers]

    @property
    def inter_broker_listener_name(self) -> str:
        return self._inter_broker[0]

    @property
    def inter_broker_security_protocol(self) -> SecurityProtocol:
        return self._inter_broker[1]

    @property
    def _inter_broker(self) -> tuple[str, SecurityProtocol]:
        by_name, by_protocol = "inter.broker.listener.name", "security.inter.broker.protocol"
        listener = self.text(by_name)
        if listener is None:
            protocol = parse_security_protocol(self._values[by_protocol], by_protocol)
            return protocol.name, protocol
        if self.is_set(by_protocol):
            raise InvalidConfig(f"Only one of {by_name} and {by_protocol} should be set.")
        if normalised(listener) not in self.security_protocols:
            raise InvalidConfig(
                f"Listener with name {normalised(listener)} defined in {by_name} not found in listener.security.protocol.map."
            )
        return normalised(listener), self.security_protocols[normalised(listener)]

    @property
    def control_plane_listener_name(self) -> str | None:
        name = self.text("control.plane.listener.name")
        if name is None:
            return None
        if normalised(name) not in self.security_protocols:
            raise InvalidConfig(
                f"Listener with {normalised(name)} defined in control.plane.listener.name not found in listener.security.protocol.map."
            )
        return normalised(name)

    @property
    def max_connections_per_ip_overrides(self) -> dict[str, int]:
        name = "max.connections.per.ip.overrides"
        overrides = parse_map(self._values[name], name)
        try:
            return {address: int(count) for address, count in overrides.items()}
        except ValueError:
            raise InvalidConfig(f"Invalid value {self._values[name]} for configuration {name}: Each entry should be host:count") from None

    def topic_default(self, name: str) -> Any:
        """The value for a topic without its own: that of the first synonym that the broker sets, else Kafka's default."""
        key = topic_config_key(name)
        if name in TIMESTAMP_BOUNDS and self._values[key.synonyms[0].name] in (key.default, LONG_MAX):
            difference = self.topic_default(TIMESTAMP_DIFFERENCE)
            if difference != LONG_MAX:
                return difference
        for synonym in key.synonyms:
            if (value := self._values[synonym.name]) is not None:
                scaled = value * synonym.unit if synonym.unit != 1 else value
                # Every negative retention means unlimited.
                return -1 if name == "retention.ms" and scaled < 0 else scaled
        return key.default

    def log_config(self) -> LogConfig:
        """The LogConfig of topics without configs of their own."""
        defaults = {name: value_text(self.topic_default(name)) for name in TOPIC_CONFIGS}
        return LogConfig.from_properties({name: text for name, text in defaults.items() if text is not None})


def _with_node_id(properties: Mapping[str, str]) -> dict[str, str]:
    """broker.id and node.id are synonyms: if only one is set, the other gets the same value."""
    completed = dict(properties)
    for name, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if name in completed and other not in completed:
            completed[other] = completed[name]
    return completed
