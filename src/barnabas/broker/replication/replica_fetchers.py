# Compiled by mypyc: src/compiled.toml lists this module.
"""The replica fetchers: for each leader that this broker follows, tasks that fetch from it without pause and hand what comes to its logs.

`replica_states` says what to follow and what no more, `follower_fetch` decides what to ask and what to do with the answer; here it is sent,
waited for, and tried again. A partition is followed by one fetcher at a time, and whatever comes for one that is not followed any more is
dropped there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, cast

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

FETCH_VERSION: Final = 17  # Kafka 3.9's
LIST_OFFSETS_VERSION: Final = 9
TURN_BYTES: Final = 262_144  # after so much has been appended everybody else on the loop gets a turn
LOOK_MS: Final = 500  # so often all partitions of a leader are looked at; in between only those that it has sent something of

_log = logging.getLogger(__name__)


class ReplicaFetchers:
    """`new_links` makes the connections of one fetcher of each leader, by its number; `broker_epoch` is that of this broker as it is now,
    `endpoint_of` where a broker is reached by the others."""

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
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._is_leaving = False
        self._is_closed = False

    def leave(self) -> None:
        """This broker is about to stop: what it hands over to others it does not begin to follow. Caught up with one of them, it would be
        taken for in sync, and waited for when it is gone."""
        self._is_leaving = True

    def follow(self, partitions: Iterable[Partition]) -> None:
        """From now on, each from its leader in its epoch."""
        for each in partitions:
            self.stop([each.partition])
            topic_id = each.topic_id
            if self._is_leaving or self._is_closed or each.leader_id < 0 or topic_id is None:
                continue
            self._fetcher(each.leader_id, each.partition).follow(each.partition, topic_id, each.leader_epoch)

    def followed(self) -> set[TopicPartition]:
        return {partition for fetcher in self._fetchers.values() for partition in fetcher.state.partitions}

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            for fetcher in self._fetchers.values():
                fetcher.stop(partition)

    def stop_idle(self) -> None:
        """Fetchers that have nothing to follow any more."""
        for key, fetcher in list(self._fetchers.items()):
            if not fetcher.state.partitions:
                del self._fetchers[key]
                fetcher.close()

    async def close(self) -> None:
        self._is_closed = True
        fetchers = list(self._fetchers.values())
        self._fetchers.clear()
        for fetcher in fetchers:
            fetcher.close()
        await asyncio.gather(*(fetcher.task for fetcher in fetchers), return_exceptions=True)
        for links in self._links.values():
            await links.close()

    def _fetcher(self, leader_id: int, partition: TopicPartition) -> Fetcher:
        count = self._replicas.config.current.number("num.replica.fetchers")
        number = abs(31 * java_hash(partition.topic) + partition.partition) % count
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is None:
            links = self._links.get(number)
            if links is None:
                links = self._links[number] = self._new_links(number)
            fetcher = self._fetchers[leader_id, number] = Fetcher(leader_id, self._replicas, links, self._endpoint_of, self._broker_epoch)
        return fetcher


class Fetcher:
    """One task: ask, wait, take what came."""

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
        self.state = FollowerFetch(leader_id, LocalReplicaLogs(replicas), self._backoff_ms, config.number("replica.fetch.max.bytes"))
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

    async def _run(self) -> None:
        while True:
            try:
                await self._turn()
            except KafkaError as error:
                _log.info("Leader %d cannot be fetched from: %s", self.leader_id, error)
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
        request = FetchRequest(
            replica_state=ReplicaState(self._replicas.broker_id, self._broker_epoch()),
            max_wait_ms=self._wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
        )
        if not self._fill(request):
            await self._rest()
            return
        response = await self._links.ask(self.leader_id, request, FETCH_VERSION, self._timeout_ms)
        await self._take(cast("FetchResponse", response))

    def _fill(self, request: FetchRequest) -> bool:
        """Says what is wanted; False where that is nothing."""
        monotonic_ms = self._clock.monotonic_ms()
        if self.state.is_settled and self._session.is_begun and monotonic_ms < self._look_at_all_ms:
            self._session.fill_changes(request, self.state.changes())
            return True
        wanted = self._wanted()
        if wanted:
            self._look_at_all_ms = monotonic_ms + LOOK_MS
            self._know_leader()
            self._session.fill(request, wanted)
        return bool(wanted)

    def _wanted(self) -> FollowedPartitions:
        """Those whose disk has failed meanwhile are not asked for."""
        for partition in self.state.partitions:
            if self._replicas.log_manager.get(partition) is None:
                self.state.remove(partition)
        return self.state.wanted(self._clock.monotonic_ms())

    async def _take(self, response: FetchResponse) -> None:
        answers = self._session.accept(response)
        if answers is None:
            return
        appended = 0
        for partition, data in answers:
            self.state.handle(partition, self._session.asked(partition), data, self._clock.monotonic_ms())
            appended += 0 if data.records is None else data.records.size
            if appended >= TURN_BYTES:
                appended = 0
                await asyncio.sleep(0)

    async def _find_offsets(self) -> None:
        """Where the leader begins and ends, for those that asked for what it does not have."""
        lost = self.state.lost()
        self._know_leader()
        ends = await self._list_offsets(lost, LATEST)
        starts = await self._list_offsets(lost, EARLIEST)
        late: list[TopicPartition] = []
        for partition, epoch in lost:
            if partition in ends and partition in starts:
                self.state.found(partition, epoch, starts[partition], ends[partition])
            else:
                late.append(partition)
        if late and len(late) == len(self.state.partitions):
            await asyncio.sleep(self._backoff_ms / 1000)

    async def _list_offsets(self, lost: list[tuple[TopicPartition, int]], timestamp: int) -> dict[TopicPartition, int]:
        topics = [ListOffsetsTopic(each.topic, [ListOffsetsPartition(each.partition, epoch, timestamp)]) for each, epoch in lost]
        request = ListOffsetsRequest(replica_id=self._replicas.broker_id, topics=topics)
        response = await self._links.ask(self.leader_id, request, LIST_OFFSETS_VERSION, self._timeout_ms)
        return {
            TopicPartition(topic.name, answer.partition_index): answer.offset
            for topic in cast("ListOffsetsResponse", response).topics
            for answer in topic.partitions
            if answer.error_code == ErrorCode.NONE
        }

    async def _rest(self) -> None:
        """Until one of those that were made to wait is ready, or there is another."""
        self._woken.clear()
        ready_ms = self.state.next_ready_ms()
        if ready_ms is None and self.state.lost():
            await asyncio.sleep(self._backoff_ms / 1000)
            return
        timeout_s = None if ready_ms is None else max(1, ready_ms - self._clock.monotonic_ms()) / 1000
        try:
            await asyncio.wait_for(self._woken.wait(), timeout_s)
        except TimeoutError:
            pass

    def _know_leader(self) -> None:
        """It may have come back at another address."""
        endpoint = self._endpoint_of(self.leader_id)
        if endpoint is not None:
            self._links.know(self.leader_id, endpoint)
