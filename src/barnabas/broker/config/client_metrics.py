"""Configs of client metrics subscriptions (KIP-714): which metrics, how often, of which clients."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from barnabas.broker.config.describe import ConfigEntry, ConfigSynonym
from barnabas.config_def import ConfigKey, ConfigSource, Importance, InvalidConfig, Type, table, value_text
from barnabas.coordinator.expression import Expression, ExpressionError, compile_expression
from barnabas.errors import InvalidRequest

INTERVAL_MS_MIN: Final = 100
INTERVAL_MS_MAX: Final = 3_600_000
PROGRAM_SIZE_MAX: Final = 500  # instructions of a pattern. The slowest such program takes about 10 ms for 1,000 characters

MATCHED: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)

# fmt: off
CLIENT_METRICS_CONFIGS: Final = table((
    ConfigKey("interval.ms", Type.INT, 300_000, None, Importance.MEDIUM,
              "How often a client sends the metrics of this subscription."),
    ConfigKey("match", Type.LIST, (), None, Importance.MEDIUM,
              "Which clients it is for: name=regular expression, of the names client_id, client_software_name and so on; all if empty."),
    ConfigKey("metrics", Type.LIST, (), None, Importance.MEDIUM,
              "Prefixes of the names of the metrics that are asked for; * asks for all."),
))
# fmt: on


def validate_client_metrics(name: str, properties: Mapping[str, str]) -> None:
    """Raises Kafka's errors: InvalidRequest for names and the interval, InvalidConfig for values."""
    if not name:
        raise InvalidRequest("Subscription name can't be empty")
    for setting in properties:
        if setting not in CLIENT_METRICS_CONFIGS:
            raise InvalidRequest(f"Unknown client metrics configuration: {setting}")
    values = {setting: CLIENT_METRICS_CONFIGS[setting].parse(text) for setting, text in properties.items()}
    interval = values.get("interval.ms", INTERVAL_MS_MIN)
    if not INTERVAL_MS_MIN <= interval <= INTERVAL_MS_MAX:
        raise InvalidRequest(
            f"Invalid value {interval} for interval.ms, interval must be between {INTERVAL_MS_MIN} and {INTERVAL_MS_MAX} (1 hour)"
        )
    parse_patterns(values.get("match", ()))


def parse_patterns(patterns: Collection[str]) -> dict[str, Expression]:
    """The regular expression for each matched property of a client. Raises InvalidConfig.

    The expressions are RE2's, which take linear time: clients choose the texts that they are matched with."""
    expressions: dict[str, Expression] = {}
    for pattern in patterns:
        parts = pattern.split("=")
        if len(parts) != 2 or parts[0].strip() not in MATCHED or not parts[1]:
            raise InvalidConfig(f"Illegal client matching pattern: {pattern}")
        try:
            expressions[parts[0].strip()] = compile_expression(parts[1].strip(), PROGRAM_SIZE_MAX)
        except ExpressionError:
            raise InvalidConfig(f"Illegal client matching pattern: {pattern}") from None
    return expressions


def describe_client_metrics(subscription: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
    entries = []
    for name, key in CLIENT_METRICS_CONFIGS.items():
        if names is not None and name not in names:
            continue
        own = name in subscription
        value = value_text(key.parse(subscription[name]) if own else key.default)
        source = ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG if own else ConfigSource.DEFAULT_CONFIG
        synonyms = (ConfigSynonym(name, value, source),) if own else ()
        entries.append(ConfigEntry(name, value, source, False, False, synonyms, int(key.type), key.doc))
    return entries
