# Compiled by mypyc: src/compiled.toml lists this module.
"""The context of a fetch: which partitions are read and which results are sent, with a session or without one (KIP-227).

The Fetch handler gets a context from `FetchManager`, reads its partitions, and lets it make the response. No partition may be lost: if a
session cannot be kept or found, the response has an error and the fetcher starts again with a full request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

from barnabas.broker.partitions.fetch_params import PartitionFetch, RequestedPartition, TopicIdPartition
from barnabas.broker.requests.fetch_session_cache import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    CachedPartition,
    FetchSession,
    FetchSessionCache,
    Key,
    next_epoch,
    partition_key,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.uuid import Uuid

__all__ = ["FetchContext", "FetchManager", "FetchSessionCache", "fetch_response"]

TOPIC_IDS_VERSION: Final = 13  # from which Fetch names topics by their ids

Answers = list[tuple[TopicIdPartition, PartitionData]]

_log = logging.getLogger(__name__)


class SteadyClock(Protocol):
    def monotonic_ms(self) -> int: ...


class FetchContext:
    """A fetch without a session, and the base of all contexts. `requested` are the partitions to read, each once, in this order. A topic
    with an unknown id has the name ""."""

    __slots__ = ("requested",)

    def __init__(self, requested: list[RequestedPartition]) -> None:
        self.requested = requested

    def response(self, answers: Answers) -> FetchResponse:
        """Called once, with an answer for each requested partition."""
        return fetch_response(answers)

    def throttled_response(self) -> FetchResponse:
        """The response without records to a client above its quota, instead of `response`. No session is made."""
        return FetchResponse()


class FetchManager:
    def __init__(self, cache: FetchSessionCache, clock: SteadyClock) -> None:
        self.cache = cache
        self._clock = clock

    def new_context(
        self,
        version: int,
        session_id: int,
        epoch: int,
        is_follower: bool,
        requested: list[RequestedPartition],
        forgotten: list[TopicIdPartition],
        topic_name: Callable[[Uuid], str | None],
    ) -> FetchContext:
        """The context of a request. If a partition is named twice, the last entry counts."""
        uses_topic_ids = version >= TOPIC_IDS_VERSION
        if len(requested) > 1:
            requested = _distinct(requested, uses_topic_ids)
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION and self.cache.remove(session_id):
                _log.debug("Removed fetch session %d", session_id)
            if epoch == FINAL_EPOCH:
                return FetchContext(requested)
            return _FullContext(requested, self.cache, self._clock, uses_topic_ids, is_follower)
        return self._incremental(session_id, epoch, uses_topic_ids, requested, forgotten, topic_name)

    def _incremental(
        self,
        session_id: int,
        epoch: int,
        uses_topic_ids: bool,
        requested: list[RequestedPartition],
        forgotten: list[TopicIdPartition],
        topic_name: Callable[[Uuid], str | None],
    ) -> FetchContext:
        session = self.cache.get(session_id)
        if session is None:
            return _error(session_id, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return _error(session_id, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return _error(session_id, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if not self.cache.has_room(len(requested)):
            self.cache.remove(session_id)
            return _error(session_id, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if requested or forgotten:
            session.update(requested, forgotten)
            if not session.partitions:
                self.cache.remove(session_id)
                return FetchContext(requested)
        if uses_topic_ids:
            session.resolve_names(topic_name)
        self.cache.touch(session, self._clock.monotonic_ms())
        session.epoch = next_epoch(session.epoch)
        return _IncrementalContext(session)


class _FullContext(FetchContext):
    """A request that names all its partitions and asks for a session."""

    __slots__ = ("_cache", "_clock", "_is_follower", "_uses_topic_ids")

    def __init__(
        self, requested: list[RequestedPartition], cache: FetchSessionCache, clock: SteadyClock, uses_topic_ids: bool, is_follower: bool
    ) -> None:
        super().__init__(requested)
        self._cache = cache
        self._clock = clock
        self._uses_topic_ids = uses_topic_ids
        self._is_follower = is_follower

    def response(self, answers: Answers) -> FetchResponse:
        def partitions() -> dict[Key, CachedPartition]:
            return self._cached_partitions(answers)

        monotonic_ms = self._clock.monotonic_ms()
        session_id = self._cache.create(self._is_follower, self._uses_topic_ids, len(answers), partitions, monotonic_ms)
        return fetch_response(answers, session_id)

    def _cached_partitions(self, answers: Answers) -> dict[Key, CachedPartition]:
        requests: dict[Key, PartitionFetch] = {
            partition_key(partition, self._uses_topic_ids): request for partition, request in self.requested
        }
        cached = {}
        for partition, answer in answers:
            key = partition_key(partition, self._uses_topic_ids)
            cached[key] = CachedPartition(partition, requests[key], answer.high_watermark, answer.log_start_offset)
        return cached


class _IncrementalContext(FetchContext):
    """A request that names the changes to its session, and gets the partitions with news."""

    __slots__ = ("_epoch", "_session")

    def __init__(self, session: FetchSession) -> None:
        super().__init__([(cached.partition, cached.request) for cached in session.partitions.values()])
        self._session = session
        self._epoch = session.epoch

    def response(self, answers: Answers) -> FetchResponse:
        session = self._session
        if session.epoch != self._epoch:  # another request has used the session since
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.id)
        return fetch_response(session.take_news(answers), session.id)

    def throttled_response(self) -> FetchResponse:
        session = self._session
        error = ErrorCode.NONE if session.epoch == self._epoch else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return FetchResponse(error_code=error, session_id=session.id)


class _ErrorContext(FetchContext):
    """A request whose session cannot be used. Its partitions are unknown."""

    __slots__ = ("_error",)

    def __init__(self, error: ErrorCode) -> None:
        super().__init__([])
        self._error = error

    def response(self, answers: Answers) -> FetchResponse:
        return FetchResponse(error_code=self._error)


def fetch_response(answers: Answers, session_id: int = NO_SESSION) -> FetchResponse:
    """The answers in their order. Adjacent answers of the same topic are grouped."""
    topics: list[FetchableTopicResponse] = []
    topic: FetchableTopicResponse | None = None
    for partition, answer in answers:
        name = partition.partition.topic
        if topic is None or topic.topic != name or topic.topic_id != partition.topic_id:
            topic = FetchableTopicResponse(name, partition.topic_id, [])
            topics.append(topic)
        topic.partitions.append(answer)
    return FetchResponse(session_id=session_id, responses=topics)


def _distinct(requested: list[RequestedPartition], uses_topic_ids: bool) -> list[RequestedPartition]:
    distinct: dict[Key, RequestedPartition] = {}
    for partition in requested:
        distinct[partition_key(partition[0], uses_topic_ids)] = partition
    return list(distinct.values())


def _error(session_id: int, error: ErrorCode) -> FetchContext:
    _log.debug("Session error for %d: %s", session_id, error.name)
    return _ErrorContext(error)
