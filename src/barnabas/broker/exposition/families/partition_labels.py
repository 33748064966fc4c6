"""The labels of partitions, made once: a scrape needs those of each partition for a dozen families."""

from __future__ import annotations

from typing import Final

from barnabas.metrics.registry import Labels
from barnabas.topic_partition import TopicPartition

LABELS_MAX: Final = 50_000  # then they are forgotten, so that topics that are gone take no memory


class PartitionLabels(dict[TopicPartition, Labels]):
    """`labels[partition]` is the topic and the partition as texts."""

    def __missing__(self, partition: TopicPartition) -> Labels:
        if len(self) >= LABELS_MAX:
            self.clear()
        labels = self[partition] = partition.topic, str(partition.partition)
        return labels
