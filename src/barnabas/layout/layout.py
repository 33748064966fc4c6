"""The directories of a cluster that runs on one machine, and the replication that its size allows.

A single broker has its logs in the data directory itself. Each of several brokers has a directory in it, `broker-1` to `broker-N`. The
metadata store is in the data directory in both cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.storage.directory import names

FIRST_NODE: Final = 1
REPLICAS_MAX: Final = 3  # the replication factor of Kafka's defaults


@dataclass(frozen=True)
class Layout:
    """`replicas_max` bounds the default replication factor: 1 for processes of one machine, whose replicas would be on the same disk."""

    brokers: int
    replicas_max: int = REPLICAS_MAX

    @property
    def nodes(self) -> range:
        """The ids of the brokers. The single broker of an adopted directory may have another id; see MetaProperties."""
        return range(FIRST_NODE, FIRST_NODE + self.brokers)

    @property
    def is_single(self) -> bool:
        return self.brokers == 1

    @property
    def replication_factor(self) -> int:
        """The default replication factor of topics."""
        return min(self.replicas_max, self.brokers)

    @property
    def min_in_sync(self) -> int:
        """min.insync.replicas of the topics of the coordinators."""
        return max(1, self.replication_factor - 1)

    def node_dir(self, node: int) -> str:
        """The log directory of a broker, relative to the data directory; empty if it is the data directory itself."""
        return "" if self.is_single else node_dir(node)

    def __str__(self) -> str:
        return f"{self.brokers} broker{'' if self.is_single else 's'}"


def node_dir(node: int) -> str:
    return f"{names.NODE_DIR_PREFIX}{node}"


def within(data: str, relative: str) -> str:
    return f"{data}/{relative}" if relative else data
