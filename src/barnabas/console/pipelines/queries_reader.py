"""Reads `__barnabas_queries` for one session: from the beginning the first time, then only what is new."""

from __future__ import annotations

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

from barnabas.client.clock import SystemClock
from barnabas.console.cluster.session import ClusterSession
from barnabas.console.pipelines.queries import Queries
from barnabas.topic_partition import TopicPartition

TOPIC: Final = "__barnabas_queries"
READ_TIMEOUT_MS: Final = 5_000
FRESH_MS: Final = 2_000  # what was read so recently is not read again
PARTITIONS_MAX: Final = 16  # the topic has one; somebody may have created it with more


class QueriesReader:
    """The queries that one session may see. It keeps what it has read, and no connection."""

    def __init__(self) -> None:
        self._queries = Queries()
        self._positions: dict[TopicPartition, int] = {}
        self._topic_id = ""
        self._read_ms: int | None = None
        self._lock = asyncio.Lock()

    async def read(self, session: ClusterSession) -> Queries | None:
        """The queries up to now; None if the topic does not exist. Raises KafkaError."""
        snapshot = await session.snapshots.current()
        topic = snapshot.topics.get(TOPIC)
        if topic is None:
            return None
        async with self._lock:
            if topic.topic_id != self._topic_id:  # the topic was created again
                self._queries, self._positions, self._topic_id, self._read_ms = Queries(), {}, topic.topic_id, None
            now_ms = SystemClock().monotonic_ms()
            if self._read_ms is not None and now_ms - self._read_ms < FRESH_MS:
                return self._queries
            await self._read_on(session, [TopicPartition(TOPIC, one.partition) for one in topic.partitions[:PARTITIONS_MAX]])
            self._read_ms = now_ms
            return self._queries

    async def _read_on(self, session: ClusterSession, partitions: list[TopicPartition]) -> None:
        clock = SystemClock()
        deadline_ms = clock.monotonic_ms() + READ_TIMEOUT_MS
        async with session.consumer(auto_offset_reset="earliest") as consumer:
            ends = await consumer.end_offsets(partitions)
            starts = await consumer.beginning_offsets(partitions)
            for partition in partitions:
                position = self._positions.get(partition, 0)
                self._positions[partition] = max(position, starts[partition]) if position <= ends[partition] else starts[partition]
            behind = [partition for partition in partitions if self._positions[partition] < ends[partition]]
            if not behind:
                return
            await consumer.assign(behind)
            for partition in behind:
                consumer.seek(partition, self._positions[partition])
            while any(self._positions[partition] < ends[partition] for partition in behind) and clock.monotonic_ms() < deadline_ms:
                records = await consumer.poll(max(deadline_ms - clock.monotonic_ms(), 1) / 1000)
                for record in records:
                    self._queries.take(record.key, record.value)
                for partition in behind:
                    self._positions[partition] = await consumer.position(partition)


_readers: Final[WeakKeyDictionary[ClusterSession, QueriesReader]] = WeakKeyDictionary()


async def queries_of(session: ClusterSession) -> Queries | None:
    """The queries of a session's cluster; None if nothing has published there."""
    return await _readers.setdefault(session, QueriesReader()).read(session)
