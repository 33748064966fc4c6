"""The entity types of kafka-configs, and the settings of its --add-config and --add-config-file."""

from __future__ import annotations

import re
from typing import Final

from barnabas.tools.command_line.failures import BadArgument
from barnabas.tools.command_line.options import Options
from barnabas.tools.command_line.text import java_split
from barnabas.tools.connecting.connect import load_properties

TOPICS: Final = "topics"
CLIENTS: Final = "clients"
USERS: Final = "users"
BROKERS: Final = "brokers"
IPS: Final = "ips"
CLIENT_METRICS: Final = "client-metrics"
GROUPS: Final = "groups"
LOGGERS: Final = "broker-loggers"
ZOOKEEPER_TYPES: Final = (TOPICS, CLIENTS, USERS, BROKERS, IPS)
TYPES: Final = (*ZOOKEEPER_TYPES, CLIENT_METRICS, GROUPS, LOGGERS)
_NOT_IN_BRACKETS: Final = r"(?=[^\]]*(?:\[|$))"


class Refused(BadArgument):
    """InvalidConfigurationException of the tool itself."""

    java_name = "org.apache.kafka.common.errors.InvalidConfigurationException"


def added_configs(options: Options) -> dict[str, str]:
    """The settings of --add-config and --add-config-file."""
    added = load_properties(options.optional("add-config-file"))
    if options.has("add-config"):
        pairs = [re.split(r"\s*=\s*" + _NOT_IN_BRACKETS, pair) for pair in java_split(options.text("add-config"), "," + _NOT_IN_BRACKETS)]
        if any(len(pair) != 2 for pair in pairs):
            raise BadArgument(
                "requirement failed: Invalid entity config: all configs to be added must be in the format "
                '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
            )
        added |= {key.strip(): re.sub(r"\[?\]?", "", value).strip() for key, value in pairs}
    for key in added:
        if not re.fullmatch(r"[a-zA-Z0-9._-]*", key):
            raise BadArgument(f"Invalid character found for config key: {key}")
    return added
