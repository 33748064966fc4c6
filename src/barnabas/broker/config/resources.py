"""What has configs: the kinds of resources of DescribeConfigs and AlterConfigs, with the protocol's numbers."""

from __future__ import annotations

from enum import IntEnum


class ResourceType(IntEnum):
    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def of(cls, number: int) -> ResourceType:
        """UNKNOWN for a number that is none, as Kafka reads it."""
        try:
            return cls(number)
        except ValueError:
            return cls.UNKNOWN
