"""Policies such as somebody who runs a cluster may write."""

from __future__ import annotations

from barnabas.broker.config.policies import CreateTopicMetadata
from barnabas.errors import PolicyViolation


class AtLeastTwoPartitions:
    """Notes what it was asked."""

    made: AtLeastTwoPartitions

    def __init__(self) -> None:
        self.configs: dict[str, str] = {}
        self.asked: list[CreateTopicMetadata] = []
        self.closed = False
        AtLeastTwoPartitions.made = self

    def configure(self, configs: dict[str, str]) -> None:
        self.configs = configs

    def validate(self, metadata: CreateTopicMetadata) -> None:
        self.asked.append(metadata)
        if metadata.num_partitions is not None and metadata.num_partitions < 2:
            raise PolicyViolation("Two partitions at least")

    def close(self) -> None:
        self.closed = True


class Broken:
    def configure(self, configs: dict[str, str]) -> None: ...

    def validate(self, metadata: CreateTopicMetadata) -> None:
        raise ZeroDivisionError("a bug of the policy")

    def close(self) -> None: ...
