"""A partition of a topic, the key under which nearly everything in a broker is kept."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic, by name and number:

        consumer.assign([TopicPartition("orders", 0)])

    It compares and hashes as a tuple.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
