# Compiled by mypyc: src/compiled.toml lists this module.
"""The cache of fetch sessions (KIP-227): the partitions that each fetcher requests, and the state that it was last sent.

A fetcher with a session sends only the changes to its partitions, and receives only partitions with news. The number of sessions is
bounded: a full cache makes room for a new session only by evicting one of lower rank. Callers pass the time in.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable
from random import Random
from typing import Final

from barnabas.broker.partitions.fetch_params import PartitionFetch, RequestedPartition, TopicIdPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_response import PartitionData
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0  # a full fetch that asks for a session
FINAL_EPOCH: Final = -1  # a full fetch without a session, or the end of a session
FIRST_EPOCH: Final = 1
EVICTION_MS: Final = 120_000
PARTITIONS_MAX: Final = 500_000  # in all sessions together. Kafka bounds only the sessions, of which each may have any number of partitions
_INT32_MAX: Final = 0x7FFFFFFF

Key = tuple[str | bytes, int]
_Rank = tuple[bool, int, int]  # of a session: whether a follower owns it, its number of partitions, its id


def next_epoch(epoch: int) -> int:
    if epoch < 0:
        return FINAL_EPOCH
    return FIRST_EPOCH if epoch == _INT32_MAX else epoch + 1


def partition_key(partition: TopicIdPartition, uses_topic_ids: bool) -> Key:
    """The identity of a partition: by topic id if the fetcher uses ids, even if the name is unknown; else by topic name."""
    return (partition.topic_id.value, partition.partition.partition) if uses_topic_ids else partition.partition


class CachedPartition:
    """A partition of a session: what the fetcher requests, and the state that it was last sent."""

    __slots__ = ("high_watermark", "log_start_offset", "partition", "request")

    def __init__(self, partition: TopicIdPartition, request: PartitionFetch, high_watermark: int = -1, log_start_offset: int = -1) -> None:
        self.partition = partition
        self.request = request
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset

    def take_news(self, answer: PartitionData) -> bool:
        """Remembers the state that is about to be sent. False if the answer has no news for the fetcher."""
        has_news = (
            answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
            or answer.error_code != ErrorCode.NONE
            or _has_records(answer)
            or answer.preferred_read_replica != -1
            or answer.diverging_epoch is not None
        )
        self.log_start_offset = answer.log_start_offset
        # After an error the next answer without an error is always news.
        self.high_watermark = answer.high_watermark if answer.error_code == ErrorCode.NONE else -1
        return has_news


class FetchSession:
    __slots__ = ("cached_size", "created_ms", "epoch", "id", "is_privileged", "last_used_ms", "partitions", "rank_lists", "uses_topic_ids")

    def __init__(
        self, session_id: int, is_privileged: bool, uses_topic_ids: bool, partitions: dict[Key, CachedPartition], monotonic_ms: int
    ) -> None:
        self.id = session_id
        self.is_privileged = is_privileged  # a follower owns it
        self.uses_topic_ids = uses_topic_ids
        self.partitions = partitions  # in the order in which they are read
        self.created_ms = monotonic_ms
        self.last_used_ms = monotonic_ms
        self.epoch = FIRST_EPOCH  # of the next request
        self.cached_size = 0  # the number of partitions that the cache has counted
        self.rank_lists = 0  # the lists of the cache that it is in

    @property
    def rank(self) -> _Rank:
        return (self.is_privileged, self.cached_size, self.id)

    def update(self, requested: list[RequestedPartition], forgotten: list[TopicIdPartition]) -> None:
        """Applies what a request adds, changes and removes. A partition that is both added and forgotten is removed."""
        partitions = self.partitions
        for partition, request in requested:
            key = partition_key(partition, self.uses_topic_ids)
            cached = partitions.get(key)
            if cached is None:
                partitions[key] = CachedPartition(partition, request)
            else:
                cached.request = request
        for partition in forgotten:
            partitions.pop(partition_key(partition, self.uses_topic_ids), None)

    def resolve_names(self, topic_name: Callable[[Uuid], str | None]) -> None:
        """Looks up the topics whose ids were unknown before."""
        for cached in self.partitions.values():
            partition = cached.partition
            if not partition.partition.topic:
                name = topic_name(partition.topic_id)
                if name is not None:
                    cached.partition = TopicIdPartition(partition.topic_id, TopicPartition(name, partition.partition.partition))

    def take_news(self, answers: list[tuple[TopicIdPartition, PartitionData]]) -> list[tuple[TopicIdPartition, PartitionData]]:
        """The answers with news. A partition that had records moves to the end of the session, so that the others are read first next."""
        news = []
        for answer in answers:
            key = partition_key(answer[0], self.uses_topic_ids)
            cached = self.partitions.get(key)
            if cached is None or not cached.take_news(answer[1]):
                continue
            news.append(answer)
            if _has_records(answer[1]) and len(self.partitions) > 1:
                del self.partitions[key]
                self.partitions[key] = cached
        return news


_BY_PRIVILEGED: Final = 1
_BY_ALL: Final = 2


class FetchSessionCache:
    """Up to `max_slots` sessions. A new session may replace

    - a session that was not used for `eviction_ms`, or else
    - a session of a consumer, if the new one is of a follower, or else
    - a session older than `eviction_ms` of no higher rank. A follower ranks above a consumer, and many partitions above few.
    """

    def __init__(self, max_slots: int, eviction_ms: int = EVICTION_MS, *, random: Random, max_partitions: int = PARTITIONS_MAX) -> None:
        self.max_slots = max_slots
        self.eviction_ms = eviction_ms
        self.max_partitions = max_partitions
        self.partition_count = 0
        self.eviction_count = 0
        self._random = random
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # the least recently used first
        # The ranks of sessions that may be evicted, lowest first: for a session of a follower, and for any session.
        self._evictable_by_privileged: list[_Rank] = []
        self._evictable_by_all: list[_Rank] = []

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def create(
        self, is_privileged: bool, uses_topic_ids: bool, size: int, partitions: Callable[[], dict[Key, CachedPartition]], monotonic_ms: int
    ) -> int:
        """The id of a new session of `size` partitions; NO_SESSION if there is no room. Calls `partitions` only if there is."""
        if size > self.max_partitions - self.partition_count:
            return NO_SESSION
        if len(self._sessions) >= self.max_slots and not self._evict_for((is_privileged, size, 0), monotonic_ms):
            return NO_SESSION
        session = FetchSession(self._new_id(), is_privileged, uses_topic_ids, partitions(), monotonic_ms)
        self._sessions[session.id] = session
        self.touch(session, monotonic_ms)
        return session.id

    def touch(self, session: FetchSession, monotonic_ms: int) -> None:
        """The session was used, and may have grown or shrunk."""
        session.last_used_ms = monotonic_ms
        self._sessions.move_to_end(session.id)
        lists = self._rank_lists(session, monotonic_ms)
        size = len(session.partitions)
        if lists != session.rank_lists or size != session.cached_size:
            self._unrank(session)
            self.partition_count += size - session.cached_size
            session.cached_size = size
            self._rank(session, lists)

    def has_room(self, more: int) -> bool:
        return self.partition_count + more <= self.max_partitions

    def remove(self, session_id: int) -> bool:
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        self._unrank(session)
        self.partition_count -= session.cached_size
        return True

    def _evict_for(self, newcomer: _Rank, monotonic_ms: int) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:  # no slots at all
            return False
        if monotonic_ms - oldest.last_used_ms <= self.eviction_ms:
            ranks = self._evictable_by_privileged if newcomer[0] else self._evictable_by_all
            if not ranks or newcomer < ranks[0]:
                return False
            oldest = self._sessions[ranks[0][2]]
        self.remove(oldest.id)
        self.eviction_count += 1
        return True

    def _rank_lists(self, session: FetchSession, monotonic_ms: int) -> int:
        if monotonic_ms - session.created_ms > self.eviction_ms:
            return _BY_PRIVILEGED | _BY_ALL
        return 0 if session.is_privileged else _BY_PRIVILEGED

    def _rank(self, session: FetchSession, lists: int) -> None:
        session.rank_lists = lists
        if lists & _BY_PRIVILEGED:
            insort(self._evictable_by_privileged, session.rank)
        if lists & _BY_ALL:
            insort(self._evictable_by_all, session.rank)

    def _unrank(self, session: FetchSession) -> None:
        rank = session.rank
        if session.rank_lists & _BY_PRIVILEGED:
            del self._evictable_by_privileged[bisect_left(self._evictable_by_privileged, rank)]
        if session.rank_lists & _BY_ALL:
            del self._evictable_by_all[bisect_left(self._evictable_by_all, rank)]
        session.rank_lists = 0

    def _new_id(self) -> int:
        while True:
            session_id = self._random.randrange(1, _INT32_MAX)
            if session_id not in self._sessions:
                return session_id


def _has_records(answer: PartitionData) -> bool:
    return answer.records is not None and answer.records.size > 0
