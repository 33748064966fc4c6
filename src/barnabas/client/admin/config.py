"""The settings of the admin client: Kafka's names, defaults and validation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from barnabas.client.config.common_config import common, finish
from barnabas.client.config.config import ClientConfig, key
from barnabas.config_def import Importance, InvalidConfig, Range, Type, table

_INT_MAX: Final = 2**31 - 1

KEYS: Final = table(
    [
        *(
            replace(definition, default=()) if definition.name == "bootstrap.servers" else definition
            for definition in common(connections_max_idle_ms=300000, enable_metrics_push=False)
        ),
        key("bootstrap.controllers", Type.LIST, (), None, Importance.HIGH, "Controllers to connect to directly, instead of brokers."),
        key("default.api.timeout.ms", Type.INT, 60000, Range(0), Importance.MEDIUM, "The longest time of a call, including its retries."),
        key(
            "retries", Type.INT, _INT_MAX, Range(0, _INT_MAX), Importance.LOW, "The highest number of retries of a call within its timeout."
        ),
    ]
)

# Numbers the admin clients of a process that have no client.id of their own, as Kafka does, so that brokers can tell them apart.
_numbers = itertools.count(1)


def admin_config(given: Mapping[str, object] | None, keywords: Mapping[str, object] | None = None) -> ClientConfig:
    """The validated settings of a user; raises InvalidConfig."""
    config = ClientConfig(KEYS, given, keywords)
    servers, controllers = config["bootstrap.servers"], config["bootstrap.controllers"]
    if servers and controllers:
        raise InvalidConfig("You cannot configure both bootstrap.servers and bootstrap.controllers.")
    if not servers and not controllers:
        raise InvalidConfig("You must set either bootstrap.servers or bootstrap.controllers")
    if controllers:
        config.override("bootstrap.servers", controllers)
    if config["default.api.timeout.ms"] < config["request.timeout.ms"]:
        if config.is_given("default.api.timeout.ms"):
            raise InvalidConfig("The specified value of default.api.timeout.ms must be no smaller than the value of request.timeout.ms.")
        config.override("default.api.timeout.ms", config["request.timeout.ms"])
    if not config["client.id"]:
        config.override("client.id", f"adminclient-{next(_numbers)}")
    finish(config)
    return config
