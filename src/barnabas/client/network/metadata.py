"""The metadata of the cluster: which topics are needed, what is known, and when to request an update.

Producers add topics when they send to them, and drop topics that are unused for a while. Consumers set their topics, or request all topics
and keep those that match a pattern. Admin clients need no topics. `NetworkClient` sends a request whenever `time_to_next_update` is 0, and
passes the response to `update`. Leader epochs never decrease, so that a response of a stale broker does not send the client to an old
leader.

The class only decides, in the event loop's thread. From other threads, `cluster` may be read and `add` called.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Final

from barnabas.client.clock import Clock
from barnabas.client.cluster import NO_LEADER_EPOCH, Cluster, LeaderAndEpoch, Node, PartitionInfo
from barnabas.client.config.common_config import bootstrap_addresses
from barnabas.client.config.config import ClientConfig
from barnabas.client.errors import IllegalState, InvalidTopic, KafkaError, TopicAuthorization, error_for, refreshes_metadata
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.connection_failures import ConnectionFailures
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log = logging.getLogger(__name__)

_LONG_AGO: Final = -(10**15)
RELIABLE_EPOCHS_VERSION: Final = 9  # in earlier versions brokers could report the changes of a controller in any order

Listener = Callable[[Cluster], None]


class MetadataQuestion:
    """A Metadata request, and the values that are needed to apply its response."""

    __slots__ = ("is_partial", "request", "request_version")

    def __init__(self, request: MetadataRequest, request_version: int, is_partial: bool) -> None:
        self.request = request
        self.request_version = request_version
        self.is_partial = is_partial


class _Partition:
    """A partition with broker ids, as in the response: addresses may arrive later, or change."""

    __slots__ = ("epoch", "isr", "leader_id", "offline", "replicas")

    def __init__(self, leader_id: int, epoch: int, replicas: list[int], isr: list[int], offline: list[int]) -> None:
        self.leader_id = leader_id
        self.epoch = epoch
        self.replicas = replicas
        self.isr = isr
        self.offline = offline

    def info(self, partition: TopicPartition, nodes: Mapping[int, Node]) -> PartitionInfo:
        return PartitionInfo(
            partition.topic,
            partition.partition,
            nodes.get(self.leader_id),
            _nodes(self.replicas, nodes),
            _nodes(self.isr, nodes),
            _nodes(self.offline, nodes),
            self.epoch,
        )


class Metadata:
    """`topic_idle_ms` (a producer's metadata.max.idle.ms): topics that were added and unused for this long are dropped."""

    def __init__(
        self,
        config: ClientConfig,
        *,
        clock: Clock,
        random: Random | None = None,
        topic_idle_ms: int | None = None,
        allow_auto_topic_creation: bool = True,
        include_internal_topics: bool = True,
    ) -> None:
        self.clock = clock
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_internal_topics = include_internal_topics
        self.on_update: list[Listener] = []  # called with each new snapshot, in the event loop's thread
        self.wake: Callable[[], None] = lambda: None  # set by the network client; called when an update is needed now, from any thread
        self.update_version = 0  # counts responses
        self.failures = ConnectionFailures(clock.monotonic_ms)
        self._max_age_ms: int = config["metadata.max.age.ms"]
        self._topic_idle_ms = topic_idle_ms
        self._refresh_backoff = ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"], random=random)
        self.bootstrap_addresses = bootstrap_addresses(config)
        # The topics that are needed.
        self._topics: dict[str, int] = {}  # with the time until which each is kept, if they expire
        self._new_topics: set[str] = set()
        self._transient_topics: set[str] = set()
        self._matches: Callable[[str], bool] | None = None
        self._all_topics = False
        # The known metadata.
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self.cluster = Cluster.bootstrap(self.bootstrap_addresses)
        # When to request an update.
        self._request_version = 0  # counts additions of topics, so that a response to an older request is known to lack them
        self._need_full = True
        self._need_partial = False
        self._last_refresh_ms = _LONG_AGO
        self._last_success_ms = _LONG_AGO
        self._attempts = 0
        self._equivalent_responses = 0
        self._fatal: KafkaError | None = None
        self._unauthorized: frozenset[str] = frozenset()  # of the last response, until the error is raised
        self._invalid: frozenset[str] = frozenset()
        self._closed = False
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    # Topics that are needed

    def add(self, topic: str) -> bool:
        """Called when a producer uses a topic: keeps the topic from expiring, and requests it if it is new (then True). May be called
        from any thread."""
        now_ms = self.clock.monotonic_ms()
        is_new = topic not in self._topics
        self._topics[topic] = now_ms + (self._topic_idle_ms or 0)
        if is_new:
            self._new_topics.add(topic)
            self.request_update_for_new_topics()
        return is_new

    def set_topics(self, topics: Iterable[str]) -> bool:
        """Sets the topics of a consumer; returns whether there are new topics among them, which are then requested."""
        topic_names = set(topics)
        was_pattern, self._matches, self._all_topics = self._matches is not None, None, False
        new = topic_names - self._topics.keys()
        self._topics = dict.fromkeys(topic_names, 0)
        self._new_topics = (self._new_topics & topic_names) | new
        if new or was_pattern:
            self.request_update_for_new_topics()
        return bool(new)

    def set_pattern(self, matches: Callable[[str], bool]) -> None:
        """Sets the pattern of a consumer: all topics are requested, and those that match are kept."""
        self._matches = matches
        self._topics = {}
        self.request_update_for_new_topics()

    def want_all_topics(self) -> None:
        """Requests and keeps all topics."""
        self._all_topics = True
        self.request_update_for_new_topics()

    def set_transient_topics(self, topics: Iterable[str]) -> None:
        """Sets topics that are needed only for a lookup in progress; the empty set ends it."""
        self._transient_topics = set(topics)
        if not self._transient_topics <= self.cluster.topics:
            self.request_update_for_new_topics()

    def topics_wanted(self) -> frozenset[str]:
        return frozenset(self._topics) | self._transient_topics

    def contains_topic(self, topic: str) -> bool:
        return topic in self._topics

    def retains(self, topic: str, is_internal: bool, now_ms: int) -> bool:
        """Whether a topic of a response is kept."""
        if self._all_topics or topic in self._transient_topics:
            return True
        if self._matches is not None:
            return (self.include_internal_topics or not is_internal) and self._matches(topic)
        kept_until_ms = self._topics.get(topic)
        if kept_until_ms is None:
            return False
        if self._topic_idle_ms is None or topic in self._new_topics:
            return True
        if kept_until_ms <= now_ms:
            _log.debug("Removing unused topic %s from the metadata", topic)
            self._topics.pop(topic, None)
            return False
        return True

    # When to request an update

    def request_update(self, reset_backoff: bool = True) -> int:
        """Requests a full update soon; `reset_backoff` requests it at once, for callers that know of a change.

        Returns the version for `wait_for_update`.
        """
        self._need_full = True
        if reset_backoff:
            self._equivalent_responses = 0
        self.wake()
        return self.update_version

    def request_update_for_new_topics(self) -> int:
        """Requests the new topics at once."""
        self._last_refresh_ms = _LONG_AGO
        self._need_partial = True
        self._equivalent_responses = 0
        self._request_version += 1
        self.wake()
        return self.update_version

    @property
    def update_requested(self) -> bool:
        return self._need_full or self._need_partial

    def time_to_next_update(self, now_ms: int) -> int:
        """Milliseconds until an update should be requested; 0 is now."""
        expires_in_ms = 0 if self.update_requested else max(self._last_success_ms + self._max_age_ms - now_ms, 0)
        return max(expires_in_ms, self.time_to_allow_update(now_ms))

    def time_to_allow_update(self, now_ms: int) -> int:
        """Milliseconds until another request is allowed: after failures, and after responses without changes."""
        after_failure_ms = self._last_refresh_ms + self._refresh_backoff.backoff_ms(max(self._attempts - 1, 0)) - now_ms
        if now_ms >= self._last_success_ms + self._max_age_ms:
            self._equivalent_responses = 0
        repeated = self._equivalent_responses
        after_repetition_ms = self._last_refresh_ms + (self._refresh_backoff.backoff_ms(repeated - 1) if repeated else 0) - now_ms
        return max(after_failure_ms, after_repetition_ms, 0)

    def next_question(self) -> MetadataQuestion:
        """The request to send now; only for the new topics if nothing else must be updated."""
        is_partial = self._need_partial and not self._need_full and not self._asks_for_all and bool(self._new_topics)
        topics: list[MetadataRequestTopic] | None = None
        if not self._asks_for_all:
            names = set(self._new_topics) if is_partial else self.topics_wanted()
            topics = [MetadataRequestTopic(name=name) for name in sorted(names)]
        # Listing all topics must not create any.
        allow = self.allow_auto_topic_creation and topics is not None
        return MetadataQuestion(MetadataRequest(topics, allow), self._request_version, is_partial)

    @property
    def _asks_for_all(self) -> bool:
        return self._all_topics or self._matches is not None

    # Responses

    def update(self, response: MetadataResponse, version: int, question: MetadataQuestion, now_ms: int) -> None:
        """Applies a response, which has the given version."""
        if self._closed:
            raise IllegalState("Update requested after metadata close")
        self._need_partial = question.request_version < self._request_version
        self._last_refresh_ms = now_ms
        self._attempts = 0
        self.update_version += 1
        if not question.is_partial:
            self._need_full = False
            self._last_success_ms = now_ms
        self._equivalent_responses += 1
        # Also the failed topics: they are requested again with all others.
        self._new_topics -= {topic.name for topic in response.topics if topic.name is not None}
        if not question.is_partial and not self._asks_for_all:
            self._new_topics &= self._topics.keys()
        self.cluster = self._take(response, version, question.is_partial, now_ms)
        self._epochs = {partition: epoch for partition, epoch in self._epochs.items() if self.retains(partition.topic, False, now_ms)}
        self._notify()

    def failed_update(self, now_ms: int) -> None:
        """Records a failed request: the next one waits for the back-off."""
        self._last_refresh_ms = now_ms
        self._attempts += 1

    def fatal_error(self, error: KafkaError) -> None:
        """Records a permanent error. Callers that wait for an update receive it; without any, the next caller does."""
        self._fatal = error
        for _, waiter in self._take_waiters():
            if not waiter.done():
                waiter.set_exception(error)
                self._fatal = None
        self.wake()

    def set_bootstrap(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Sets the bootstrap addresses after their names are resolved."""
        if list(addresses) != list(self.bootstrap_addresses):
            self.bootstrap_addresses = list(addresses)
            self.rebootstrap()

    def rebootstrap(self) -> None:
        """Drops the metadata and starts again with bootstrap.servers."""
        self._need_full = True
        self.update_version += 1
        self._partitions = {}
        self.cluster = Cluster.bootstrap(self.bootstrap_addresses)

    def close(self) -> None:
        self._closed = True
        for _, waiter in self._take_waiters():
            if not waiter.done():
                waiter.set_exception(IllegalState("Requested metadata update after close"))

    # Known metadata

    def current_leader(self, partition: TopicPartition) -> LeaderAndEpoch:
        """The leader, unless a newer epoch was seen than the epoch of the known leader."""
        info = self.cluster.partition(partition)
        epoch = self._epochs.get(partition)
        if info is None or (epoch is not None and info.leader_epoch != epoch):
            return LeaderAndEpoch(None, NO_LEADER_EPOCH if epoch is None else epoch)
        return LeaderAndEpoch(info.leader, info.leader_epoch)

    def last_seen_leader_epoch(self, partition: TopicPartition) -> int | None:
        return self._epochs.get(partition)

    def update_last_seen_epoch_if_newer(self, partition: TopicPartition, epoch: int) -> bool:
        """Records an epoch of a response; an epoch newer than the known one requests an update."""
        last_epoch = self._epochs.get(partition)
        if last_epoch is None or epoch <= last_epoch:
            return False
        self._epochs[partition] = epoch
        self._need_full = True
        self.wake()
        return True

    def update_partition_leadership(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], leader_nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        """Applies new leaders as (id, epoch) of a Produce or Fetch response (KIP-951); returns the partitions whose leader is newer than
        known."""
        nodes = {node.id: node for node in self.cluster.nodes} | {node.id: node for node in leader_nodes}
        changed: set[TopicPartition] = set()
        for partition, (leader_id, epoch) in leaders.items():
            partition_state = self._partitions.get(partition)
            if partition_state is None or leader_id < 0 or epoch < 0 or epoch <= self._epochs.get(partition, -1) or leader_id not in nodes:
                continue
            self._partitions[partition] = _Partition(
                leader_id, epoch, partition_state.replicas, partition_state.isr, partition_state.offline
            )
            self._epochs[partition] = epoch
            changed.add(partition)
        if changed:
            old = self.cluster
            self.cluster = self._snapshot(
                nodes, old.cluster_id, old.controller, old.topic_ids, old.unauthorized_topics, old.invalid_topics, old.internal_topics
            )
            for listener in self.on_update:
                listener(self.cluster)
        return changed

    def raise_fatal(self) -> None:
        """Raises the permanent error, once."""
        if self._fatal is not None:
            error, self._fatal = self._fatal, None
            raise error

    def raise_any(self) -> None:
        """Raises an error of any topic in the last response, once, or the permanent error."""
        self.raise_fatal()
        unauthorized, self._unauthorized = self._unauthorized, frozenset()
        invalid, self._invalid = self._invalid, frozenset()
        if unauthorized:
            raise TopicAuthorization(unauthorized_topics=unauthorized)
        if invalid:
            raise InvalidTopic(f"Invalid topics: [{', '.join(sorted(invalid))}]")

    def raise_for_topic(self, topic: str) -> None:
        """Raises the error of this topic, or the permanent error."""
        self.raise_fatal()
        if topic in self.cluster.unauthorized_topics:
            raise TopicAuthorization(unauthorized_topics=[topic])
        if topic in self.cluster.invalid_topics:
            raise InvalidTopic(f"Invalid topics: [{topic}]")

    async def wait_for_update(self, version: int, timeout_ms: int) -> None:
        """Waits for a response newer than `version`, which `request_update` returned; raises Timeout, or a permanent error."""
        if self._closed:
            raise IllegalState("Requested metadata update after close")
        self.raise_fatal()
        if self.update_version > version:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (version, waiter)
        self._waiters.append(entry)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await waiter
        except TimeoutError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is not None:
                raise
            late = self.failures.timeout(f"Failed to update metadata after {timeout_ms} ms.")
            raise late from late.__cause__
        finally:
            if entry in self._waiters:
                self._waiters.remove(entry)

    # Inside

    def _take(self, response: MetadataResponse, version: int, is_partial: bool, now_ms: int) -> Cluster:
        topics, topic_ids = set[str](), dict[str, Uuid]()
        unauthorized, invalid, internal = set[str](), set[str](), set[str]()
        partitions: dict[TopicPartition, _Partition] = {}
        for topic in response.topics:
            name = topic.name
            if name is None:
                continue
            topics.add(name)
            if not self.retains(name, topic.is_internal, now_ms):
                continue
            if topic.topic_id != Uuid.ZERO:
                topic_ids[name] = topic.topic_id
            if topic.is_internal:
                internal.add(name)
            if topic.error_code == 0:
                self._take_partitions(topic, name, version, partitions)
            elif refreshes_metadata(error_for(topic.error_code)):
                self.request_update(False)
            elif topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                invalid.add(name)
            elif topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.add(name)
        nodes = {broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers}
        if is_partial:
            old = self.cluster

            def stays(topic: str) -> bool:
                return topic not in topics and self.retains(topic, topic in old.internal_topics, now_ms)

            partitions = {key: state for key, state in self._partitions.items() if stays(key.topic)} | partitions
            topic_ids = {name: topic_id for name, topic_id in old.topic_ids.items() if stays(name)} | topic_ids
            unauthorized |= set(filter(stays, old.unauthorized_topics))
            invalid |= set(filter(stays, old.invalid_topics))
            internal |= set(filter(stays, old.internal_topics))
        self._partitions = partitions
        if unauthorized:
            _log.error("Topic authorization failed for topics %s", sorted(unauthorized))
        if invalid:
            _log.error("Metadata response reported invalid topics %s", sorted(invalid))
        self._unauthorized, self._invalid = frozenset(unauthorized), frozenset(invalid)
        controller = nodes.get(response.controller_id)
        return self._snapshot(nodes, response.cluster_id, controller, topic_ids, unauthorized, invalid, internal)

    def _take_partitions(self, topic: MetadataResponseTopic, name: str, version: int, into: dict[TopicPartition, _Partition]) -> None:
        old_id = self.cluster.topic_ids.get(name) if topic.topic_id != Uuid.ZERO else None
        recreated = old_id is not None and old_id != topic.topic_id
        for row in topic.partitions:
            partition = TopicPartition(name, row.partition_index)
            latest = self._latest(partition, row, version >= RELIABLE_EPOCHS_VERSION, recreated)
            if latest is not None:
                into[partition] = latest
            if row.error_code != 0 and refreshes_metadata(error_for(row.error_code)):
                self.request_update(False)

    def _latest(self, partition: TopicPartition, row: MetadataResponsePartition, reliable: bool, recreated: bool) -> _Partition | None:
        """The newer of the known state and the response."""
        epoch = row.leader_epoch if reliable else NO_LEADER_EPOCH
        reported = _Partition(row.leader_id, epoch, row.replica_nodes, row.isr_nodes, row.offline_replicas)
        if epoch < 0:
            self._epochs.pop(partition, None)
            self._equivalent_responses = 0
            return reported
        last_epoch = self._epochs.get(partition)
        if last_epoch is None or recreated or epoch > last_epoch:
            self._epochs[partition] = epoch
            self._equivalent_responses = 0
            return reported
        if epoch == last_epoch:
            return reported
        _log.debug("Got metadata for an older epoch %d (current is %d) for partition %s, not updating", epoch, last_epoch, partition)
        previous = self._partitions.get(partition)
        if previous is None or previous.epoch < last_epoch:
            self.request_update(False)  # the leader of the known epoch has not been reported yet
        return previous

    def _snapshot(
        self,
        nodes: Mapping[int, Node],
        cluster_id: str | None,
        controller: Node | None,
        topic_ids: Mapping[str, Uuid],
        unauthorized: Iterable[str],
        invalid: Iterable[str],
        internal: Iterable[str],
    ) -> Cluster:
        return Cluster(
            nodes.values(),
            [state.info(partition, nodes) for partition, state in self._partitions.items()],
            cluster_id=cluster_id,
            controller_id=None if controller is None else controller.id,
            topic_ids=topic_ids,
            unauthorized_topics=unauthorized,
            invalid_topics=invalid,
            internal_topics=internal,
        )

    def _notify(self) -> None:
        for listener in self.on_update:
            listener(self.cluster)
        waiting = self._waiters
        self._waiters = [entry for entry in waiting if entry[0] >= self.update_version]
        for version, waiter in waiting:
            if version < self.update_version and not waiter.done():
                waiter.set_result(None)

    def _take_waiters(self) -> list[tuple[int, asyncio.Future[None]]]:
        waiters, self._waiters = self._waiters, []
        return waiters


def _nodes(ids: Iterable[int], nodes: Mapping[int, Node]) -> tuple[Node, ...]:
    """The nodes of ids. A broker that is down has no address in the response, but it is still a replica."""
    return tuple(nodes.get(node_id) or Node(node_id, "", -1) for node_id in ids)
