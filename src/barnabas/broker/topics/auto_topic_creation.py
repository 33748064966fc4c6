"""Automatic topic creation: topics of which a client requests metadata, and internal topics when a coordinator first needs them.

Metadata and FindCoordinator call it. The AdminManager creates the topic in the background, and the client repeats its request. As in
Kafka's ZooKeeper mode, Metadata meanwhile returns LEADER_NOT_AVAILABLE, after which clients retry, or the error of the last attempt.

At most one creation of a topic runs at a time, however many clients request it. The number of topics created this way is limited: at once,
by rate, and in total. Internal topics do not count. Beyond the limits a client gets UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.topics.admin_manager import TopicCreation
from barnabas.broker.topics.creation_rate import CreationRate
from barnabas.broker.topics.topic_plan import PARTITIONS_PER_REQUEST_MAX
from barnabas.errors import KafkaError
from barnabas.metadata.errors import TreeError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from barnabas.protocol.messages.metadata_response import MetadataResponseTopic
from barnabas.topic_name import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE, is_internal, is_valid

_log = logging.getLogger(__name__)

IN_FLIGHT_MAX: Final = 1_000  # topics that are being created at once
CREATED_TOGETHER_MAX: Final = 10  # topics per request to the controller
FAILURE_SHOWN_MS: Final = 5_000  # longer than clients wait between two requests for the metadata of a topic
_WARNING_INTERVAL_MS: Final = 60_000
_NAMES_LOGGED_MAX: Final = 10


class TopicCreator(Protocol):
    """The method of AdminManager that is used here."""

    async def create_topics(self, topics: Sequence[CreatableTopic], timeout_ms: int) -> list[TopicCreation]: ...


@dataclass(frozen=True)
class _Failure:
    """The failure of the last attempt to create a topic. `response_code` is the one for Metadata; 0 if the attempt had no definite
    result."""

    code: int
    response_code: int
    failed_ms: int


class AutoTopicCreation:
    """`topic_count` returns the number of topics in the cluster, `monotonic_ms` the time of a monotonic clock."""

    def __init__(
        self, config: DynamicBrokerConfig, admin: TopicCreator, topic_count: Callable[[], int], monotonic_ms: Callable[[], int]
    ) -> None:
        self._config = config
        self._admin = admin
        self._topic_count = topic_count
        self._monotonic_ms = monotonic_ms
        current = config.current
        self._rate = CreationRate(
            current.number("barnabas.auto.create.topics.burst"), current.number("barnabas.auto.create.topics.per.second"), monotonic_ms()
        )
        self._topics_max = current.number("barnabas.auto.create.topics.max")
        self._warned_ms: int | None = None
        self._in_flight: set[str] = set()
        self._failures: dict[str, _Failure] = {}  # by name, the oldest first
        self._tasks: set[asyncio.Task[None]] = set()

    def create_topics(self, names: Iterable[str]) -> list[MetadataResponseTopic]:
        """Starts the creation of the topics. Returns what Metadata responds for each of them now, the rejected topics first."""
        refused, creatable = [], []
        monotonic_ms = self._monotonic_ms()
        for name in names:
            if not is_valid(name):
                refused.append(_response(name, ErrorCode.INVALID_TOPIC_EXCEPTION))
            elif name in self._in_flight:
                refused.append(_response(name, self._pending_code(name, monotonic_ms)))
            elif not self._may_create(name, monotonic_ms):
                refused.append(_response(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            else:
                self._in_flight.add(name)
                creatable.append(name)
        if creatable:
            task = asyncio.get_running_loop().create_task(self._create_all(creatable))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return refused + [_response(name, self._pending_code(name, monotonic_ms)) for name in creatable]

    def _pending_code(self, name: str, monotonic_ms: int) -> int:
        """The error code of a topic that is being created: that of the last attempt if it failed, else LEADER_NOT_AVAILABLE."""
        failure = self._failure(name, monotonic_ms)
        return (failure.response_code if failure is not None else 0) or ErrorCode.LEADER_NOT_AVAILABLE

    def _failure(self, name: str, monotonic_ms: int) -> _Failure | None:
        """The failure of the last attempt. None if it succeeded or is older than FAILURE_SHOWN_MS."""
        failure = self._failures.get(name)
        return failure if failure is not None and monotonic_ms - failure.failed_ms < FAILURE_SHOWN_MS else None

    def _may_create(self, name: str, monotonic_ms: int) -> bool:
        if is_internal(name):
            return True
        if self._topic_count() + len(self._in_flight) >= self._topics_max:
            self._warn("barnabas.auto.create.topics.max", monotonic_ms)
            return False
        if len(self._in_flight) >= IN_FLIGHT_MAX:
            return False
        if not self._rate.take(monotonic_ms):
            self._warn("barnabas.auto.create.topics.burst and barnabas.auto.create.topics.per.second", monotonic_ms)
            return False
        return True

    def _warn(self, settings: str, monotonic_ms: int) -> None:
        if self._warned_ms is None or monotonic_ms - self._warned_ms >= _WARNING_INTERVAL_MS:
            self._warned_ms = monotonic_ms
            _log.warning("Clients request more new topics than %s allow; create them with CreateTopics, or raise the limit", settings)

    async def settled(self) -> None:
        """Waits until no creation runs."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Cancels the running creations. The controller still creates topics that are already in the metadata store."""
        for task in self._tasks:
            task.cancel()
        await self.settled()

    async def _create_all(self, names: list[str]) -> None:
        """Creates the topics in portions, so that no request exceeds the limits of CreateTopics, and other work runs in between."""
        partitions = max(1, self._config.current.number("num.partitions"))
        portion = max(1, min(CREATED_TOGETHER_MAX, PARTITIONS_PER_REQUEST_MAX // partitions))
        try:
            for start in range(0, len(names), portion):
                await self._create(names[start : start + portion])
        finally:
            self._in_flight.difference_update(names)

    async def _create(self, names: list[str]) -> None:
        config = self._config.current
        try:
            created = await self._admin.create_topics(
                [creatable_topic(name, config) for name in names], config.number("request.timeout.ms")
            )
        except (KafkaError, TreeError) as error:
            self._record(dict.fromkeys(names, error), is_definite=False)
        else:
            self._record({topic.name: topic.error for topic in created})
            made = [topic.name for topic in created if topic.error is None]
            if made:
                _log.info("Created %s, which clients requested", _some(made))
        finally:
            self._in_flight.difference_update(names)

    def _record(self, outcomes: Mapping[str, KafkaError | TreeError | None], *, is_definite: bool = True) -> None:
        """Records failures for the next Metadata request, and logs them: the same error of a topic only once, because a client repeats its
        request ten times a second. Keeps IN_FLIGHT_MAX failures at most."""
        monotonic_ms = self._monotonic_ms()
        failed: dict[str, KafkaError | TreeError] = {}
        for name, error in outcomes.items():
            before = self._failure(name, monotonic_ms)
            self._failures.pop(name, None)
            if error is None:
                continue
            if before is None or error.code != before.code:
                failed[name] = error
            response_code = error.code if is_definite and error.code not in _SOON_THERE else 0
            self._failures[name] = _Failure(error.code, response_code, monotonic_ms)
        while len(self._failures) > IN_FLIGHT_MAX:
            del self._failures[next(iter(self._failures))]
        if failed:
            _log.warning("Automatic creation of %s failed, the first with: %r", _some(list(failed)), next(iter(failed.values())))


_SOON_THERE: Final = frozenset({int(ErrorCode.TOPIC_ALREADY_EXISTS), int(ErrorCode.REQUEST_TIMED_OUT)})


def creatable_topic(name: str, config: BrokerConfig) -> CreatableTopic:
    """A topic with the defaults of the broker. Internal topics have their own settings."""
    if name == CONSUMER_OFFSETS:
        return _internal(
            config,
            name,
            "offsets.topic",
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.number("offsets.topic.segment.bytes")),
            },
        )
    if name == TRANSACTION_STATE:
        return _internal(
            config,
            name,
            "transaction.state.log",
            {
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(config.number("transaction.state.log.min.isr")),
                "segment.bytes": str(config.number("transaction.state.log.segment.bytes")),
            },
        )
    if name == SHARE_GROUP_STATE:
        return _internal(
            config,
            name,
            "share.coordinator.state.topic",
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "segment.bytes": str(config.number("share.coordinator.state.topic.segment.bytes")),
                "min.insync.replicas": str(config.number("share.coordinator.state.topic.min.isr")),
                "retention.ms": "-1",
            },
        )
    return CreatableTopic(name, config.number("num.partitions"), config.number("default.replication.factor"))


def _internal(config: BrokerConfig, name: str, prefix: str, settings: dict[str, str]) -> CreatableTopic:
    return CreatableTopic(
        name,
        config.number(f"{prefix}.num.partitions"),
        config.number(f"{prefix}.replication.factor"),
        configs=[CreatableTopicConfig(key, value) for key, value in settings.items()],
    )


def _some(names: Sequence[str]) -> str:
    """The first names, for the log: clients may request thousands of topics."""
    more = len(names) - _NAMES_LOGGED_MAX
    return ", ".join(names[:_NAMES_LOGGED_MAX]) + (f" and {more} more" if more > 0 else "")


def _response(name: str, error: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(error, name, is_internal=is_internal(name))
