# Compiled by mypyc: src/compiled.toml lists this module.
"""The replica fetchers: for each leader that this broker follows, tasks that fetch from it continuously and append to the local logs.

`replica_states` starts and stops the fetching of partitions. `follower_fetch` decides what to fetch and handles the results. This module
sends the requests and retries. One fetcher at a time fetches a partition; it drops results for partitions that it no longer follows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, cast

from barnabas.broker.config.protocol_version import InterBrokerVersions
from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.broker.replication.follower_fetch import FollowerFetch
from barnabas.broker.replication.follower_session import FollowedPartitions, FollowerSession
from barnabas.broker.replication.replica_logs import LocalReplicaLogs
from barnabas.errors import KafkaError
from barnabas.java_hash import java_hash
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchRequest, ReplicaState
from barnabas.protocol.messages.fetch_response import FetchResponse
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsResponse
from barnabas.storage.log.offset_lookup import EARLIEST, LATEST
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.replication.replica_manager import ReplicaManager
    from barnabas.endpoint import EndPoint

TURN_BYTES: Final = 262_144  # appended in one turn of the loop
BROKER_EPOCH_SINCE: Final = 15  # the version of Fetch that has the epoch of the follower
LOOK_MS: Final = 500  # between checks of all partitions of a leader; in between only those with results are checked

_log = logging.getLogger(__name__)


class ReplicaFetchers:
    """`new_links` makes the connections for the fetchers with one number, of which each leader has one. `broker_epoch` returns the current
    epoch of this broker, `endpoint_of` the inter-broker endpoint of a broker."""

    def __init__(
        self,
        replicas: ReplicaManager,
        new_links: Callable[[int], BrokerLinks],
        endpoint_of: Callable[[int], EndPoint | None],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._new_links = new_links
        self._endpoint_of = endpoint_of
        self._broker_epoch = broker_epoch
        self._links: dict[int, BrokerLinks] = {}
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._closing: set[asyncio.Future[None]] = set()  # links of fetchers that a change of num.replica.fetchers removed
        self._is_leaving = False
        self._is_closed = False

    def leave(self) -> None:
        """Called before a controlled shutdown. From then on the broker does not start to follow partitions whose leadership it hands over:
        it could join their ISR, and their leaders would wait for it after it has stopped."""
        self._is_leaving = True

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Starts to fetch each partition from its current leader."""
        for partition in partitions:
            self.stop([partition.partition])
            topic_id = partition.topic_id
            if self._is_leaving or self._is_closed or partition.leader_id < 0 or topic_id is None:
                continue
            fetcher = self._fetcher(partition.leader_id, partition.partition)
            fetcher.follow(partition.partition, topic_id, partition.leader_epoch)

    def running(self) -> list[tuple[int, int, ReplicaFetcher]]:
        """Each fetcher with the id of its leader and its number."""
        return [(leader_id, number, fetcher) for (leader_id, number), fetcher in self._fetchers.items()]

    def followed(self) -> set[TopicPartition]:
        return {partition for fetcher in self._fetchers.values() for partition in fetcher.state.partitions}

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            for fetcher in self._fetchers.values():
                fetcher.stop(partition)

    def stop_idle(self) -> None:
        """Stops the fetchers without partitions."""
        for key, fetcher in list(self._fetchers.items()):
            if not fetcher.state.partitions:
                del self._fetchers[key]
                fetcher.close()

    def resize(self) -> None:
        """Called when num.replica.fetchers has changed. Every partition moves to the fetcher that now has its number, and is fetched on
        from the end of its log. The old fetcher drops the result of a fetch that is in flight."""
        count = self._count
        _log.info("Resizing the fetchers of each leader to %d", count)
        followed = [hosted for partition in self.followed() if (hosted := self._replicas.partition(partition)) is not None]
        for fetcher in self._fetchers.values():
            for partition in fetcher.state.partitions:
                fetcher.stop(partition)
        self.follow(followed)
        self.stop_idle()
        for number in [number for number in self._links if number >= count]:
            closing = asyncio.ensure_future(self._links.pop(number).close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        self._is_closed = True
        fetchers = list(self._fetchers.values())
        self._fetchers.clear()
        for fetcher in fetchers:
            fetcher.close()
        await asyncio.gather(*(fetcher.task for fetcher in fetchers), return_exceptions=True)
        for links in self._links.values():
            await links.close()
        await asyncio.gather(*self._closing, return_exceptions=True)

    @property
    def _count(self) -> int:
        return self._replicas.config.current.number("num.replica.fetchers")

    def _fetcher(self, leader_id: int, partition: TopicPartition) -> ReplicaFetcher:
        number = abs(31 * java_hash(partition.topic) + partition.partition) % self._count
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is None:
            links = self._links.get(number)
            if links is None:
                links = self._links[number] = self._new_links(number)
            fetcher = self._fetchers[leader_id, number] = ReplicaFetcher(
                leader_id, self._replicas, links, self._endpoint_of, self._broker_epoch
            )
        return fetcher


class ReplicaFetcher:
    """One task that fetches from one leader: it sends a fetch, waits for the response, and handles the results."""

    def __init__(
        self,
        leader_id: int,
        replicas: ReplicaManager,
        links: BrokerLinks,
        endpoint_of: Callable[[int], EndPoint | None],
        broker_epoch: Callable[[], int],
    ) -> None:
        self.leader_id = leader_id
        config = replicas.config.current
        self._backoff_ms = config.number("replica.fetch.backoff.ms")
        self.state = FollowerFetch(
            leader_id, LocalReplicaLogs(replicas), replicas.quotas.follower, self._backoff_ms, config.number("replica.fetch.max.bytes")
        )
        self._session = FollowerSession(leader_id)
        self._replicas = replicas
        self._clock = replicas.clock
        self._links = links
        self._endpoint_of = endpoint_of
        self._broker_epoch = broker_epoch
        self._wait_ms = config.number("replica.fetch.wait.max.ms")
        self._min_bytes = config.number("replica.fetch.min.bytes")
        self._max_bytes = config.number("replica.fetch.response.max.bytes")
        self._timeout_ms = max(config.number("replica.socket.timeout.ms"), self._wait_ms + 1)
        self._versions = InterBrokerVersions.of(config.text("inter.broker.protocol.version") or "")
        self.requests = 0  # fetches with a response, or an error instead of it
        self.bytes_in = 0  # of records
        self._look_at_all_ms = 0
        self._woken = asyncio.Event()
        self.task = asyncio.ensure_future(self._run())

    def follow(self, partition: TopicPartition, topic_id: Uuid, leader_epoch: int) -> None:
        try:
            self.state.add(partition, topic_id, leader_epoch)
        except KafkaError as error:
            _log.error("Cannot follow %s: %s", partition, error)
        self._woken.set()

    def stop(self, partition: TopicPartition) -> None:
        self.state.remove(partition)

    def close(self) -> None:
        self.task.cancel()

    @property
    def endpoint(self) -> EndPoint | None:
        """The address of the leader; None while it is not alive."""
        return self._endpoint_of(self.leader_id)

    async def _run(self) -> None:
        while True:
            try:
                await self._turn()
            except KafkaError as error:
                self._links.warnings.failed(logging.INFO, self.leader_id, "Fetch", error)
                self._session.failed()
                self.state.delay(self.state.partitions, self._clock.monotonic_ms())
            except Exception:
                _log.exception("Fetching from leader %d failed in a way it should not", self.leader_id)
                self._session.failed()
                self.state.delay(self.state.partitions, self._clock.monotonic_ms())

    async def _turn(self) -> None:
        if not self.state.is_settled:
            self.state.truncate()
            if self.state.lost():
                await self._find_offsets()
        request = FetchRequest(max_wait_ms=self._wait_ms, min_bytes=self._min_bytes, max_bytes=self._max_bytes)
        if self._versions.fetch >= BROKER_EPOCH_SINCE:
            request.replica_state = ReplicaState(self._replicas.broker_id, self._broker_epoch())
        else:
            request.replica_id = self._replicas.broker_id
        if not self._fill(request):
            await self._rest()
            return
        try:
            response = await self._links.ask(self.leader_id, request, self._versions.fetch, self._timeout_ms)
        finally:
            self.requests += 1
        await self._take(cast("FetchResponse", response))

    def _fill(self, request: FetchRequest) -> bool:
        """Writes the partitions into the request; False if there are none."""
        monotonic_ms = self._clock.monotonic_ms()
        if self.state.is_settled and self._session.is_begun and monotonic_ms < self._look_at_all_ms:
            self._session.fill_changes(request, self.state.changes())
            return True
        fetches = self._next_fetches()
        if fetches:
            self._look_at_all_ms = monotonic_ms + LOOK_MS
            self._update_endpoint()
            self._session.fill(request, fetches)
        return bool(fetches)

    def _next_fetches(self) -> FollowedPartitions:
        """Partitions whose disk has failed are removed first."""
        for partition in self.state.partitions:
            if self._replicas.log_manager.get(partition) is None:
                self.state.remove(partition)
        return self.state.next_fetches(self._clock.monotonic_ms())

    async def _take(self, response: FetchResponse) -> None:
        results = self._session.accept(response)
        if results is None:
            return
        appended = 0
        for partition, data in results:
            if data.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._links.warnings.refused(self.leader_id, "Fetch")
            self.state.handle(partition, self._session.requested(partition), data, self._clock.monotonic_ms())
            size = 0 if data.records is None else data.records.size
            self.bytes_in += size
            appended += size
            if appended >= TURN_BYTES:
                appended = 0
                await asyncio.sleep(0)

    async def _find_offsets(self) -> None:
        """Fetches the start and end offsets of the leader, for partitions whose fetch offset is out of range."""
        lost = self.state.lost()
        self._update_endpoint()
        end_offsets = await self._list_offsets(lost, LATEST)
        start_offsets = await self._list_offsets(lost, EARLIEST)
        unanswered: list[TopicPartition] = []
        for partition, epoch in lost:
            if partition in end_offsets and partition in start_offsets:
                self.state.resume(partition, epoch, start_offsets[partition], end_offsets[partition])
            else:
                unanswered.append(partition)
        if unanswered and len(unanswered) == len(self.state.partitions):
            await asyncio.sleep(self._backoff_ms / 1000)

    async def _list_offsets(self, lost: list[tuple[TopicPartition, int]], timestamp: int) -> dict[TopicPartition, int]:
        topics = [ListOffsetsTopic(topic, [ListOffsetsPartition(index, epoch, timestamp)]) for (topic, index), epoch in lost]
        request = ListOffsetsRequest(replica_id=self._replicas.broker_id, topics=topics)
        response = await self._links.ask(self.leader_id, request, self._versions.list_offsets, self._timeout_ms)
        return {
            TopicPartition(topic.name, partition.partition_index): partition.offset
            for topic in cast("ListOffsetsResponse", response).topics
            for partition in topic.partitions
            if partition.error_code == ErrorCode.NONE
        }

    async def _rest(self) -> None:
        """Waits until a delayed partition is ready, or a new one is followed."""
        self._woken.clear()
        monotonic_ms = self._clock.monotonic_ms()
        ready_ms = self.state.next_ready_ms(monotonic_ms)
        if ready_ms is None and self.state.lost():
            await asyncio.sleep(self._backoff_ms / 1000)
            return
        timeout_s = None if ready_ms is None else (ready_ms - monotonic_ms) / 1000
        try:
            await asyncio.wait_for(self._woken.wait(), timeout_s)
        except TimeoutError:
            pass

    def _update_endpoint(self) -> None:
        """The leader may have restarted at another address."""
        endpoint = self._endpoint_of(self.leader_id)
        if endpoint is not None:
            self._links.set_endpoint(self.leader_id, endpoint)
