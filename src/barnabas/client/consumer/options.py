"""Argument types of the consumer's methods: timeouts, and what close does with the membership."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from barnabas.client.consumer.membership import membership
from barnabas.client.errors import IllegalArgument
from barnabas.topic_partition import TopicPartition

Seconds = float | int | timedelta

CLOSE_TIMEOUT_S = 30
ARROW_ROWS_MAX = 2**31 - 1


class GroupMembershipOperation(Enum):
    """DEFAULT: a dynamic member leaves its group, a static member stays."""

    DEFAULT = membership.DEFAULT
    LEAVE_GROUP = membership.LEAVE_GROUP
    REMAIN_IN_GROUP = membership.REMAIN_IN_GROUP


@dataclass(frozen=True)
class CloseOptions:
    """How a consumer closes:

        consumer.close(CloseOptions(timeout=5, operation=GroupMembershipOperation.REMAIN_IN_GROUP))

    `timeout` is the longest it may take, in seconds or as a timedelta; 30 seconds by default. `operation` says whether it leaves its group.
    """

    timeout: Seconds = CLOSE_TIMEOUT_S
    operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT


def milliseconds(timeout: Seconds) -> int:
    """Converts a timeout in seconds or a timedelta to milliseconds. A positive timeout never becomes 0."""
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if seconds < 0:
        raise IllegalArgument("Timeout must not be negative")
    whole = int(min(seconds, 10**12) * 1000)
    return whole if whole or not seconds else 1


def milliseconds_or_none(timeout: Seconds | None) -> int | None:
    return None if timeout is None else milliseconds(timeout)


def close_options(options: CloseOptions | Seconds | None) -> CloseOptions:
    if options is None:
        return CloseOptions()
    return options if isinstance(options, CloseOptions) else CloseOptions(options)


def partitions_of(partitions: Iterable[TopicPartition] | TopicPartition | None) -> list[TopicPartition]:
    """A list of one partition, or of several; None is rejected as in Kafka."""
    if partitions is None:
        raise IllegalArgument("The partitions must not be None")
    if isinstance(partitions, TopicPartition):
        return [partitions]
    return [TopicPartition(*partition) for partition in partitions]


def rows_max(max_records: int | None) -> int:
    """The maximum number of rows of a poll_arrow; without a limit, everything that was fetched."""
    if max_records is not None and max_records < 1:
        raise IllegalArgument(f"max_records must be at least 1, not {max_records}")
    return ARROW_ROWS_MAX if max_records is None else max_records


def topics_of(names: Iterable[str]) -> list[str]:
    topics = [names] if isinstance(names, str) else list(names)
    for topic in topics:
        if not isinstance(topic, str) or not topic.strip():
            raise IllegalArgument("Topic collection to subscribe to cannot contain None or an empty topic")
    return topics
