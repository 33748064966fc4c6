"""The end offsets of partitions that other brokers lead, for the lag of the groups that this broker coordinates.

Every INTERVAL_S the leaders of these partitions are asked, by ListOffsets, and then by Fetch for the timestamps of the first unread records
(`lag/remote_times.py`). A leader that does not answer leaves its partitions without an offset, and so their lag is not shown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.broker.exposition.lag.unread_times import Key
from barnabas.broker.exposition.observed import Observed
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsResponse
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.cluster.cluster_member import ClusterMember

INTERVAL_S: Final = 10.0
PARTITIONS_AT_ONCE: Final = 100  # of one request, and of one slice of this broker's work
LIST_OFFSETS_VERSION: Final = 5
_TIMEOUT_MS: Final = 5_000
_LATEST: Final = -1
_CONSUMER: Final = -1

_log = logging.getLogger(__name__)


class RemoteOffsets:
    """`observed.remote_offsets` are those of the last round."""

    def __init__(self, observed: Observed, cluster: ClusterMember) -> None:
        self._observed = observed
        self._broker = broker = observed.broker
        self._cluster = cluster
        self._links = cluster.new_links(f"broker-{broker.broker_id}-offsets", timeout_ms=_TIMEOUT_MS)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._links.close()

    async def refresh(self) -> None:
        """One round."""
        offsets: dict[TopicPartition, int] = {}
        by_leader = await self._committed_elsewhere()
        await asyncio.gather(*(self._ask(leader, list(partitions), offsets) for leader, partitions in by_leader.items()))
        self._observed.remote_offsets = offsets
        await self._read_times({leader: unread_of(partitions, offsets) for leader, partitions in by_leader.items()})

    async def _run(self) -> None:
        while True:
            try:
                await self.refresh()
            except Exception:
                _log.exception("Reading the end offsets of other brokers failed")
            await asyncio.sleep(INTERVAL_S)

    async def _committed_elsewhere(self) -> dict[int, dict[TopicPartition, set[int]]]:
        """The partitions with committed offsets that other brokers lead, by leader, and these offsets."""
        cache, own_id = self._broker.metadata_cache, self._broker.broker_id
        seen: dict[TopicPartition, set[int]] = {}
        by_leader: dict[int, dict[TopicPartition, set[int]]] = {}
        for shard in self._broker.groups.shards():
            for group_id in list(shard.offsets.committed.by_group):
                await self._broker.turns.next(self)
                for topic, index, committed in list(shard.offsets.committed.of_group(group_id)):
                    partition = TopicPartition(topic, index)
                    if partition in seen:
                        seen[partition].add(committed.offset)
                        continue
                    offsets = seen[partition] = {committed.offset}
                    state = cache.partition_info(topic, index)
                    if state is not None and state.leader >= 0 and state.leader != own_id:
                        by_leader.setdefault(state.leader, {})[partition] = offsets
        return by_leader

    async def _ask(self, leader: int, partitions: list[TopicPartition], offsets: dict[TopicPartition, int]) -> None:
        endpoint = self._cluster.endpoint_of(leader)
        if endpoint is None:
            return
        self._links.set_endpoint(leader, endpoint)
        for start in range(0, len(partitions), PARTITIONS_AT_ONCE):
            request = request_of(partitions[start : start + PARTITIONS_AT_ONCE])
            try:
                response = await self._links.ask(leader, request, LIST_OFFSETS_VERSION, _TIMEOUT_MS)
            except KafkaError as error:
                _log.info("Broker %d did not answer with end offsets: %s", leader, error)
                return
            assert isinstance(response, ListOffsetsResponse)
            offsets.update(offsets_of(response))

    async def _read_times(self, by_leader: dict[int, list[Key]]) -> None:
        times = self._observed.remote_times
        times.begin(key for unread in by_leader.values() for key in unread)

        async def read(leader: int, unread: list[Key]) -> None:
            async def ask(request: Message, version: int) -> Message:
                return await self._links.ask(leader, request, version, _TIMEOUT_MS)

            try:
                await times.read(unread, ask)
            except KafkaError as error:
                _log.info("Broker %d did not answer with the first unread records: %s", leader, error)

        await asyncio.gather(*(read(leader, unread) for leader, unread in by_leader.items() if unread))

    def __repr__(self) -> str:
        return "end offsets of other brokers"


def unread_of(partitions: dict[TopicPartition, set[int]], ends: dict[TopicPartition, int]) -> list[Key]:
    """The committed offsets with records after them, of the partitions whose end offset is known."""
    return [(partition, offset) for partition, offsets in partitions.items() for offset in offsets if offset < ends.get(partition, 0)]


def request_of(partitions: Iterable[TopicPartition]) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for topic, index in partitions:
        topics.setdefault(topic, ListOffsetsTopic(topic)).partitions.append(ListOffsetsPartition(index, timestamp=_LATEST))
    return ListOffsetsRequest(replica_id=_CONSUMER, topics=list(topics.values()))


def offsets_of(response: ListOffsetsResponse) -> dict[TopicPartition, int]:
    """The offsets of the partitions without an error."""
    return {
        TopicPartition(topic.name, partition.partition_index): partition.offset
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE
    }
