"""The synonyms of a setting: the same setting in other units of time, and with the prefix of a listener.

Synonyms are in order of precedence, the more precise unit first. DescribeConfigs lists them in this order.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.broker.config.definitions import BROKER_CONFIGS, DYNAMIC_ONLY_CONFIGS
from barnabas.broker.config.keys import BrokerConfigKey
from barnabas.near_names import near_name

_LISTENER_CONFIG: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")

# These have a prefix of listener and mechanism: listener.name.sasl_ssl.plain.sasl.jaas.config.
_MECHANISM_CONFIGS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)

_FAMILIES: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_SYNONYMS: Final = {name: family for family in _FAMILIES for name in family} | {
    # In one direction only: the interval of the scheduler is a separate setting that also serves as a default.
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}


def broker_config_synonyms(name: str, match_listener_override: bool = True) -> tuple[str, ...]:
    """All names of a setting, including `name`, in order of precedence."""
    if name in _SYNONYMS:
        return _SYNONYMS[name]
    base = base_name(name) if match_listener_override else None
    return (name,) if base is None else (name, base)


def base_name(name: str) -> str | None:
    """The name without the prefix of a listener. None if it has no such prefix."""
    match = _LISTENER_CONFIG.fullmatch(name) if name.startswith("listener.name.") else None
    if match is None:
        return None
    return next((config for config in _MECHANISM_CONFIGS if match[1].endswith(config)), match[1])


def config_key(name: str) -> BrokerConfigKey | None:
    """The definition of a setting, with or without the prefix of a listener. None for an unknown name."""
    for candidate in (name, base_name(name)):
        if candidate is not None and (key := BROKER_CONFIGS.get(candidate) or DYNAMIC_ONLY_CONFIGS.get(candidate)) is not None:
            return key
    return None


def near_config_name(name: str) -> str | None:
    """The known setting whose name is similar to an unknown one, with its listener prefix. None for a known name, or if none is similar."""
    if config_key(name) is not None:
        return None
    base = base_name(name)
    near = near_name(name if base is None else base, BROKER_CONFIGS)
    return near if near is None or base is None else name.removesuffix(base) + near
