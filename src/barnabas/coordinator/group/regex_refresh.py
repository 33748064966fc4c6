"""Keeps the regular expressions of consumer groups resolved to topics.

All expressions of a group are resolved together, by the queue that all groups of the broker share: when a member subscribes to a new one,
when topics were created, and periodically. The result is written as records; heartbeats use it once it is replayed. It has only topics that
the member may describe whose request caused the refresh, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final

from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.consumer.consumer_group_member import ConsumerGroupMember
from barnabas.coordinator.group.consumer.consumer_group_records import group_epoch_record, regex_record, regex_tombstone
from barnabas.coordinator.group.consumer.metadata_hash import MetadataHashes
from barnabas.coordinator.group.consumer.subscription import NOTHING_RESOLVED, ResolvedRegex, validate_regex
from barnabas.coordinator.group.group import Group
from barnabas.coordinator.group.regex_queue import RegexQueue
from barnabas.coordinator.metrics import CONSUMER_GROUP_REBALANCES, CoordinatorMetrics
from barnabas.coordinator.result import Clock, CoordinatorRecord, CoordinatorResult, CoordinatorTimer

METADATA_REFRESH_INTERVAL_MS: Final = 2**31 - 1  # a topic change requests a refresh at once; this is only the upper bound
MIN_INTERVAL_MS: Final = 10_000


Describable = Callable[[Iterable[str]], set[str]]


class RegexChange(Enum):
    NONE = 0
    UNRESOLVED = 1  # the expression changed, and its topics are not resolved yet
    RESOLVED = 2  # the expression changed or was removed, and its topics are resolved


class RegexRefresh:
    def __init__(
        self,
        groups: dict[str, Group],
        config: GroupCoordinatorConfig,
        clock: Clock,
        timer: CoordinatorTimer,
        queue: RegexQueue,
        hashes: MetadataHashes,
        metrics: CoordinatorMetrics,
    ) -> None:
        self._groups = groups
        self._config = config
        self._clock = clock
        self._timer = timer
        self._queue = queue
        self._hashes = hashes
        self._metrics = metrics
        # Grows with every new topic, also across restarts: an expression resolved at an older version has not been matched with the topic.
        self._version = clock.now_ms()

    def on_topics_created(self) -> None:
        self._version = max(self._clock.now_ms(), self._version + 1)

    def update(
        self,
        group: ConsumerGroup,
        old: ConsumerGroupMember,
        new: ConsumerGroupMember,
        records: list[CoordinatorRecord],
        describable: Describable | None,
    ) -> RegexChange:
        """Handle a member's change of expression, and start a refresh when one is due. Raises InvalidRegularExpression."""
        is_new = bool(new.subscribed_topic_regex) and group.subscribed_regexes.get(new.subscribed_topic_regex or "", 0) == 0
        change = self._change(group, old, new, records)
        if change is not RegexChange.NONE and is_new:
            validate_regex(new.subscribed_topic_regex or "")
        elif not group.subscribed_regexes:
            return change
        regexes = group.regexes_with(old, new)
        if regexes and self._is_due(group, len(regexes), requested=change is not RegexChange.NONE and is_new):
            self._submit(group.group_id, sorted(regexes), describable)
        return change

    def _submit(self, group_id: str, regexes: list[str], describable: Describable | None) -> None:
        version = self._version  # topics created from now on may be missed

        def on_resolved(resolved: Mapping[str, frozenset[str]]) -> None:
            if describable is not None:
                resolved = _authorized(resolved, describable)
            self._timer.schedule(regex_key(group_id), 0, lambda: self.refresh(group_id, resolved, version))

        self._queue.submit(group_id, regexes, on_resolved)

    def cancel(self, group_id: str) -> None:
        """To be called when the group is no longer coordinated here."""
        self._queue.cancel(group_id)

    def _change(
        self, group: ConsumerGroup, old: ConsumerGroupMember, new: ConsumerGroupMember, records: list[CoordinatorRecord]
    ) -> RegexChange:
        before, after = old.subscribed_topic_regex, new.subscribed_topic_regex
        if before == after:
            return RegexChange.NONE
        if before and group.subscribed_regexes.get(before) == 1:
            records.append(regex_tombstone(group.group_id, before))
        if after:
            is_resolved = group.subscribed_regexes.get(after, 0) > 0 and after in group.resolved_regexes
            return RegexChange.RESOLVED if is_resolved else RegexChange.UNRESOLVED
        return RegexChange.RESOLVED if before else RegexChange.UNRESOLVED

    def _is_due(self, group: ConsumerGroup, regex_count: int, *, requested: bool) -> bool:
        if self._queue.is_waiting(group.group_id) or self._timer.is_scheduled(regex_key(group.group_id)):
            return False
        last = group.last_regex_refresh
        if last is None:
            return True
        now_ms = self._clock.now_ms()
        if last.timestamp_ms <= now_ms <= last.timestamp_ms + MIN_INTERVAL_MS:
            return False  # a later timestamp means that the wall clock was set back since it was written
        return (
            requested
            or regex_count != len(group.resolved_regexes)
            or last.version < self._version
            or now_ms > last.timestamp_ms + self._config.group_consumer_regex_refresh_interval_ms
        )

    def refresh(self, group_id: str, resolved: Mapping[str, frozenset[str]], version: int) -> CoordinatorResult[None] | None:
        """Write the topics of the resolved expressions, and bump the group epoch if they changed."""
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return None
        now_ms = self._clock.now_ms()
        topics = group.subscribed_topics.copy()
        records: list[CoordinatorRecord] = []
        changed = False
        for regex, matches in resolved.items():
            if group.subscribed_regexes.get(regex, 0) == 0:
                continue  # the last member with this expression left meanwhile
            before = group.resolved_regexes.get(regex, NOTHING_RESOLVED).topics
            if before != matches:
                changed = True
                topics.remove_matches(before)
                topics.add_matches(matches)
            records.append(regex_record(group_id, regex, ResolvedRegex(matches, version, now_ms)))
        metadata_hash = self._hashes.group_hash(topics)
        if changed or metadata_hash != group.metadata_hash:
            epoch = group.group_epoch + 1
            records.append(group_epoch_record(group_id, epoch, metadata_hash))
            self._metrics.record(CONSUMER_GROUP_REBALANCES, 1)
            group.set_metadata_refresh(self._clock.monotonic_ms() + METADATA_REFRESH_INTERVAL_MS, epoch)
        return CoordinatorResult(records)


def _authorized(resolved: Mapping[str, frozenset[str]], describable: Describable) -> dict[str, frozenset[str]]:
    """The expressions with those of their topics that the member may describe. Each topic is decided once."""
    allowed = describable(frozenset().union(*resolved.values()))
    return {regex: topics & allowed for regex, topics in resolved.items()}


def regex_key(group_id: str) -> str:
    return f"{group_id}-regex"
