"""A partition of a topic: the key of most dictionaries in a broker."""

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
