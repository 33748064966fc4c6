"""The subscriptions of the members of a consumer group: topics by name, and topics by regular expression.

Counts how many members name a topic and how many expressions match it, so that a group has its topics without iterating over its members.
Expressions are RE2's, bounded in size (`expression`), and match whole names; `regex_queue` resolves them into sets of topics, never during
a heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.coordinator.expression import ExpressionError, compile_expression
from barnabas.coordinator.group.consumer.consumer_group_member import ConsumerGroupMember
from barnabas.errors import InvalidRegularExpression


class SubscriptionCount(NamedTuple):
    by_name: int  # members that name the topic
    by_regex: int  # expressions of the group that match it


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that an expression matched, and when it was resolved."""

    topics: frozenset[str] = frozenset()
    version: int = -1  # of the coordinator's topic metadata
    timestamp_ms: int = -1


NOTHING_RESOLVED: Final = ResolvedRegex()


class SubscribedTopics(dict[str, SubscriptionCount]):
    """The topics of a group. A topic without subscribers is removed."""

    def add_names(self, topics: Iterable[str]) -> None:
        self._change(topics, 1, 0)

    def remove_names(self, topics: Iterable[str]) -> None:
        self._change(topics, -1, 0)

    def add_matches(self, topics: Iterable[str]) -> None:
        self._change(topics, 0, 1)

    def remove_matches(self, topics: Iterable[str]) -> None:
        self._change(topics, 0, -1)

    def copy(self) -> SubscribedTopics:
        return SubscribedTopics(self)

    def _change(self, topics: Iterable[str], by_name: int, by_regex: int) -> None:
        for topic in topics:
            count = self.get(topic, _NO_COUNT)
            changed = SubscriptionCount(count.by_name + by_name, count.by_regex + by_regex)
            if changed.by_name > 0 or changed.by_regex > 0:
                self[topic] = changed
            else:
                self.pop(topic, None)


_NO_COUNT: Final = SubscriptionCount(0, 0)


def is_homogeneous(regexes: Mapping[str, int], topics: SubscribedTopics, member_count: int) -> bool:
    """Whether all members subscribe to the same topics, judged by the counts. `regexes` maps an expression to its number of members."""
    if not regexes:
        return all(count.by_name == member_count for count in topics.values())
    if next(iter(regexes.values())) != member_count:
        return False
    return all(count.by_regex == 1 and count.by_name == 0 for count in topics.values())


def subscribed_topics(member: ConsumerGroupMember, resolved: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """The topics by name and by expression; an expression that is not resolved yet matches nothing."""
    if not member.subscribed_topic_regex:
        return member.subscribed_topic_names
    return member.subscribed_topic_names | resolved.get(member.subscribed_topic_regex, NOTHING_RESOLVED).topics


def validate_regex(regex: str) -> None:
    """Raises InvalidRegularExpression with Kafka's message."""
    try:
        compile_expression(regex)
    except ExpressionError as error:
        raise InvalidRegularExpression(f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.") from error
