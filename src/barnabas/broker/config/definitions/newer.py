"""Settings of Kafka versions after 4.2, hidden so that DescribeConfigs shows them only where they are set.

Definitions of broker settings: name, type, default, validator, importance, update mode, and description.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.keys import LIST, MEDIUM, PER_BROKER, BrokerConfigKey, key
from barnabas.config_def import ListOf

# fmt: off
KEYS: Final[tuple[BrokerConfigKey, ...]] = (
    key("cordoned.log.dirs", LIST, (), ListOf(), MEDIUM, PER_BROKER,
        "Log directories, of those in log.dirs, that get no new replicas; * for all, so that the broker gets none. Kafka 4.3 has it.",
        hidden=True),
)
# fmt: on
