"""Filters for topics and partitions: Kafka's include list, a regular expression in which a comma means "or".

Java's and Python's expressions agree on what is usual in topic filters; one that does not compile gives Kafka's error.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from barnabas.tools.command_line.failures import ToolError
from barnabas.topic_name import is_internal
from barnabas.topic_partition import TopicPartition


class IncludeList:
    def __init__(self, raw: str) -> None:
        self.regex = raw.strip().replace(",", "|").replace(" ", "").lstrip("\"'").rstrip("\"'")
        try:
            self._pattern = re.compile(self.regex)
        except re.error:
            raise ToolError(f"{self.regex} is an invalid regex.") from None

    def allows(self, topic: str, exclude_internal: bool = False) -> bool:
        return self._pattern.fullmatch(topic) is not None and not (exclude_internal and is_internal(topic))


class PartitionRule:
    """Topics of an include list, and their partitions for which a predicate holds."""

    def __init__(self, topics: IncludeList, takes: Callable[[int], bool]) -> None:
        self._topics = topics
        self._takes = takes

    def allows_topic(self, topic: str) -> bool:
        return self._topics.allows(topic)

    def allows(self, partition: TopicPartition) -> bool:
        return self._topics.allows(partition.topic) and self._takes(partition.partition)
