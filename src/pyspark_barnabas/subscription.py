"""The subscription of a query: topics by name, topics by a pattern, or single partitions.

It is resolved for every batch, so that new partitions and topics are read as well. A named topic that does not exist is an error, not an
empty result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.errors import OptionError, UnknownTopicError
from pyspark_barnabas.options import given, json_object

SUBSCRIBE: Final = "subscribe"
SUBSCRIBE_PATTERN: Final = "subscribePattern"
ASSIGN: Final = "assign"
STRATEGIES: Final = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)
QUERIES_TOPIC: Final = "__barnabas_queries"  # to which queries publish their progress
_ASSIGN_EXAMPLE: Final = '{"topicA":[0,1],"topicB":[2,4]}'


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the cluster: its id, if the cluster has topic ids, and the numbers of its partitions."""

    name: str
    topic_id: str | None
    numbers: frozenset[int]

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in sorted(self.numbers)]


@dataclass(frozen=True, slots=True)
class Subscription:
    """Exactly one of the three fields is set."""

    topics: frozenset[str] = frozenset()
    pattern: str | None = None
    assigned: frozenset[TopicPartition] = frozenset()

    @property
    def option(self) -> str:
        """The option that was set."""
        return SUBSCRIBE if self.topics else ASSIGN if self.assigned else SUBSCRIBE_PATTERN

    def names(self) -> frozenset[str] | None:
        """The named topics, or None for a pattern."""
        return None if self.pattern is not None else self.topics or frozenset(partition.topic for partition in self.assigned)

    def includes(self, partition: TopicPartition) -> bool:
        """Whether a partition belongs to the subscription."""
        if self.pattern is not None:
            return self._matches(partition.topic)
        return partition.topic in self.topics or partition in self.assigned

    def chosen(self, names: Iterable[str]) -> list[str]:
        """The topics of the cluster that the pattern matches anywhere in the name."""
        return sorted(name for name in names if self._matches(name))

    def _matches(self, name: str) -> bool:
        """A pattern never matches the topic of queries: a query that reads its own progress would never be done."""
        assert self.pattern is not None
        return name != QUERIES_TOPIC and re.search(self.pattern, name) is not None

    @property
    def reads_queries(self) -> bool:
        """Whether the topic of queries is named."""
        return QUERIES_TOPIC in (self.names() or ())

    def partitions(self, topics: Iterable[Topic]) -> list[TopicPartition]:
        """The partitions of existing topics, by topic and number."""
        partitions = [partition for topic in topics for partition in topic.partitions()]
        return sorted(partition for partition in partitions if self.includes(partition))

    def check(self, topics: Mapping[str, Topic], servers: str) -> None:
        """Raises an error if a named topic or partition does not exist."""
        missing = sorted((self.names() or frozenset()) - topics.keys())
        if missing:
            raise UnknownTopicError(
                f"{no_topic(self.option, missing, servers)}; topics that come later are found by '{SUBSCRIBE_PATTERN}'."
            )
        lost = sorted(partition for partition in self.assigned if partition.partition not in topics[partition.topic].numbers)
        if lost:
            raise UnknownTopicError(
                f"Option '{ASSIGN}': there is no partition {', '.join(map(str, lost))}; "
                f"topic {lost[0].topic} has {len(topics[lost[0].topic].numbers)} partitions, numbered from 0."
            )

    def __str__(self) -> str:
        value = self.pattern or ", ".join(sorted(self.topics)) or ", ".join(str(partition) for partition in sorted(self.assigned))
        return f"{self.option} {value}"


def no_topic(option: str, names: Sequence[str], servers: str) -> str:
    """The error text for named topics that do not exist, without a full stop."""
    create = f"barnabas topics --bootstrap-server {servers} --create --topic {names[0]}"
    return f"Option '{option}': there is no topic {', '.join(names)} on the cluster at {servers}. Create it ({create}), or correct the name"


def parse_subscription(options: Mapping[str, str]) -> Subscription:
    """Exactly one of the three options must be set."""
    values = {name: value for name in STRATEGIES if (value := given(options, name)) is not None}
    if not values:
        raise OptionError(SUBSCRIBE, f"one of the options {', '.join(STRATEGIES)} must be set, to say which topics are read.")
    if len(values) > 1:
        raise OptionError(next(iter(values)), f"only one of the options {', '.join(values)} can be set.")
    ((name, value),) = values.items()
    if name == SUBSCRIBE:
        return Subscription(topics=_topics(value))
    return Subscription(pattern=_pattern(value)) if name == SUBSCRIBE_PATTERN else Subscription(assigned=_assigned(value))


def _topics(value: str) -> frozenset[str]:
    topics = frozenset(part.strip() for part in value.split(",") if part.strip())
    if not topics:
        raise OptionError(SUBSCRIBE, "names no topic; it is a list such as 'topicA,topicB'.")
    return topics


def _pattern(value: str) -> str:
    if not value:
        raise OptionError(SUBSCRIBE_PATTERN, "is empty; it is a regular expression such as 'orders-.*'.")
    try:
        re.compile(value)
    except re.error as error:
        raise OptionError(SUBSCRIBE_PATTERN, f"'{value}' is no regular expression: {error}.") from None
    return value


def _assigned(value: str) -> frozenset[TopicPartition]:
    partitions: set[TopicPartition] = set()
    for topic, numbers in json_object(ASSIGN, value, _ASSIGN_EXAMPLE).items():
        if not isinstance(numbers, list) or any(not isinstance(one, int) or isinstance(one, bool) or one < 0 for one in numbers):
            raise OptionError(ASSIGN, f"must be JSON such as {_ASSIGN_EXAMPLE}, but it is '{value}'.")
        partitions.update(TopicPartition(topic, number) for number in numbers)
    if not partitions:
        raise OptionError(ASSIGN, f"names no partition; it is JSON such as {_ASSIGN_EXAMPLE}.")
    return frozenset(partitions)
