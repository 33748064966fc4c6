"""Dynamic broker settings: per broker, or as the cluster-wide default.

The metadata store holds them. ConfigManager calls `update_broker` and `update_default` when they change, and `validate` before a client
changes them. An invalid setting in the metadata store is logged and skipped; an invalid request of a client is rejected.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from barnabas.broker.config.alterations.reconfiguration import refused, validate_reconfiguration
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.definitions import BROKER_CONFIGS
from barnabas.broker.config.definitions.without_effect import BROKER_WITHOUT_EFFECT, warning
from barnabas.broker.config.keys import UpdateMode
from barnabas.broker.config.synonyms import base_name, broker_config_synonyms, config_key
from barnabas.config_def import InvalidConfig
from barnabas.security.tls.settings import STORE_SETTINGS

_log = logging.getLogger(__name__)

# Listener settings that can also be changed cluster-wide.
_CLUSTER_WIDE_BY_LISTENER: Final = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
# Settings of one broker that it applies while it runs.
_APPLIED_BY_BROKER: Final = frozenset({"cordoned.log.dirs", *STORE_SETTINGS})
# Settings of Kafka's authorizers, which are no settings of the broker to Kafka: it accepts them dynamically, and they have no effect.
_OF_AUTHORIZERS: Final = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
# Settings that Kafka accepts dynamically and uses from the next start on.
_READ_AT_THE_START: Final = frozenset(
    {"config.providers"}
    | {name for name, key in BROKER_CONFIGS.items() if key.update_mode is UpdateMode.PER_BROKER and name not in _APPLIED_BY_BROKER}
)


class DynamicBrokerConfig:
    """`current` is the effective config. Configs of this broker override the cluster-wide ones, and these override server.properties."""

    def __init__(self, static: BrokerConfig) -> None:
        self.static: Final = static
        self.broker: dict[str, str] = {}
        self.default: dict[str, str] = {}
        self.current = static
        self.validators: list[Callable[[BrokerConfig], None]] = []  # of the parts that use settings: they raise InvalidConfig

    def validate(self, properties: Mapping[str, str], per_broker: bool) -> None:
        """Raises InvalidConfig if these cannot be the dynamic settings. `properties` has all of them, not only the change."""
        validate_dynamic(properties, per_broker)
        updated = self._merged(self.default, properties) if per_broker else self._merged(properties, self.broker)
        validate_reconfiguration(self.current, updated)
        for validator in self.validators:
            try:
                validator(updated)
            except InvalidConfig as error:
                raise refused(str(error)) from error

    def update_broker(self, properties: Mapping[str, str]) -> frozenset[str]:
        """Replaces the dynamic settings of this broker. Returns the names whose effective value changed."""
        return self._update(_usable(properties, per_broker=True), self.default)

    def update_default(self, properties: Mapping[str, str]) -> frozenset[str]:
        """Replaces the cluster-wide dynamic settings. Returns the names whose effective value changed."""
        return self._update(self.broker, _usable(properties, per_broker=False))

    def _update(self, broker: dict[str, str], default: dict[str, str]) -> frozenset[str]:
        try:
            updated = self._merged(default, broker)
        except InvalidConfig as error:
            _log.error("Dynamic configs could not be applied, the previous ones stay in effect: %s", error)
            return frozenset()
        before, self.current = self.current, updated
        self.broker, self.default = broker, default
        candidates = {*BROKER_CONFIGS, *before.properties, *updated.properties}
        return frozenset(name for name in candidates if _value(before, name) != _value(updated, name))

    def warnings(self, changed: Iterable[str], is_running: bool) -> list[str]:
        """One line for each dynamic setting among the changed names that has no effect, or none on a running broker."""
        lines: list[str] = []
        for name in sorted(name for name in changed if name in self.broker or name in self.default):
            base = base_name(name) or name
            if base in BROKER_WITHOUT_EFFECT:
                lines.append(warning(name, BROKER_WITHOUT_EFFECT[base]))
            elif is_running and base in _READ_AT_THE_START:
                lines.append(f"The setting {name} has no effect until this broker starts again, because it is read at the start")
        return lines

    def _merged(self, default: Mapping[str, str], broker: Mapping[str, str]) -> BrokerConfig:
        properties = dict(self.static.properties)
        for level in (default, broker):
            for name, text in level.items():
                # log.retention.ms in server.properties must not override a dynamic log.retention.hours.
                for synonym in broker_config_synonyms(name, match_listener_override=False):
                    properties.pop(synonym, None)
                properties[name] = text
        return BrokerConfig(properties)


def validate_dynamic(properties: Mapping[str, str], per_broker: bool) -> None:
    """Raises InvalidConfig if one of these cannot be set dynamically, at this level, or to this value."""
    _refuse(_read_only(properties), "Cannot update these configs dynamically")
    by_listener = "These security configs can be dynamically updated only per-listener using the listener prefix"
    _refuse(properties.keys() & STORE_SETTINGS, by_listener, "HashSet")
    for name, text in properties.items():
        if (key := config_key(name)) is not None:
            key.parse(text)
    if not per_broker:
        _refuse(_per_broker(properties), "Cannot update these configs at default cluster level, broker id must be specified")


def is_read_only(name: str) -> bool:
    """As DescribeConfigs shows it: only a dynamic setting without a listener prefix can be altered."""
    key = BROKER_CONFIGS.get(name)
    return key is None or key.update_mode is UpdateMode.READ_ONLY


def _refuse(names: Iterable[str], message: str, collection: str = "Set") -> None:
    """Kafka's message contains the name of a Scala collection, which is HashSet from five elements on."""
    if rejected := sorted(names):
        raise InvalidConfig(f"{message}: {collection if len(rejected) < 5 else 'HashSet'}({', '.join(rejected)})")


def _read_only(properties: Iterable[str]) -> set[str]:
    return {name for name in properties if name in _OF_AUTHORIZERS or (name in BROKER_CONFIGS and is_read_only(name))}


def _per_broker(properties: Iterable[str]) -> set[str]:
    return {name for name in properties if _is_per_broker(name)}


def _is_per_broker(name: str) -> bool:
    base = base_name(name)
    if base is not None:
        return base not in _CLUSTER_WIDE_BY_LISTENER
    return name in BROKER_CONFIGS and BROKER_CONFIGS[name].update_mode is UpdateMode.PER_BROKER


def _usable(properties: Mapping[str, str], per_broker: bool) -> dict[str, str]:
    """The valid settings: the metadata store may have settings of an older broker, or written by hand."""
    usable: dict[str, str] = {}
    for name, text in properties.items():
        try:
            validate_dynamic({name: text}, per_broker)
        except InvalidConfig as error:
            _log.error("The dynamic config %s is ignored: %s", name, error)
        else:
            usable[name] = text
    return usable


def _value(config: BrokerConfig, name: str) -> object:
    return config[name] if name in BROKER_CONFIGS or (config_key(name) is not None and config.is_set(name)) else config.properties.get(name)
