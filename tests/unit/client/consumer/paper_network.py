"""A network of paper for what decides above it: requests are written down, and answered by the test.

A cluster of several brokers that change their leaders at a given moment cannot be had otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from barnabas.client.cluster import Node
from barnabas.client.consumer.config import FetchConfig, consumer_config
from barnabas.client.consumer.fetching.completed_fetch import Decoding
from barnabas.client.consumer.fetching.fetch_buffer import FetchBuffer
from barnabas.client.consumer.fetching.fetch_collector import FetchCollector
from barnabas.client.consumer.fetching.fetch_metrics import FetchMetrics
from barnabas.client.consumer.fetching.fetcher import Fetcher
from barnabas.client.consumer.offsets.offset_reset import EARLIEST, AutoOffsetResetStrategy
from barnabas.client.consumer.offsets.offsets import OffsetFinder
from barnabas.client.consumer.offsets.partition_state import FetchPosition
from barnabas.client.consumer.offsets.subscription_state import SubscriptionState
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.metadata import Metadata
from barnabas.errors import KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from barnabas.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

TOPIC = "t"
TOPIC_ID = Uuid.random(Random(5))
Done = Callable[[Message | None, KafkaError | None], None]


class PaperClock:
    def __init__(self) -> None:
        self.ms = 1_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class Sent:
    """A request on its way: `answer` or `fail` it."""

    def __init__(self, node_id: int, request: Any, done: Done) -> None:
        self.node_id = node_id
        self.request = request
        self._done = done

    def answer(self, response: Message) -> None:
        self._done(response, None)

    def fail(self, error: KafkaError) -> None:
        self._done(None, error)


class PaperNetwork:
    request_timeout_ms = 30_000

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.unready: set[int] = set()
        self.on_ready: list[Callable[[int], None]] = []
        self.version = 17
        self.authentication_errors: dict[int, KafkaError] = {}

    def ready(self, node_id: int) -> bool:
        return node_id not in self.unready

    is_ready = ready

    def version_of(self, node_id: int, api_key: int) -> int | None:
        return self.version if api_key == 1 else 4

    def authentication_error(self, node_id: int) -> KafkaError | None:
        return self.authentication_errors.get(node_id)

    def send_nowait(self, node_id: int, request: Message, done: Done, **_: Any) -> bool:
        self.sent.append(Sent(node_id, request, done))
        return True

    async def send(self, node_id: int, request: Message, **_: Any) -> Message:
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def done(response: Message | None, error: KafkaError | None) -> None:
            if error is not None:
                future.set_exception(error)
            else:
                assert response is not None
                future.set_result(response)

        self.sent.append(Sent(node_id, request, done))
        return await future

    def take(self) -> list[Sent]:
        taken, self.sent = self.sent, []
        return taken


class Scene:
    """A fetcher, a collector and an offset finder over a paper network, with partitions of the topic assigned."""

    def __init__(self, leaders: Mapping[int, int], reset: AutoOffsetResetStrategy = EARLIEST, **settings: object) -> None:
        config = consumer_config({"bootstrap.servers": "nowhere:1"}, settings)
        self.clock = PaperClock()
        self.network = PaperNetwork()
        self.metadata = Metadata(config, clock=self.clock)
        self.metadata.set_topics([TOPIC])
        self.subscriptions = SubscriptionState(reset)
        self.fetch_config = FetchConfig.of(config)
        self.buffer = FetchBuffer()
        self.progress = 0
        metrics = FetchMetrics(Metrics(self.clock), *(lambda _: None,) * 3)
        self.fetcher = Fetcher(
            self.fetch_config,
            self.network,  # type: ignore[arg-type]
            self.metadata,
            self.subscriptions,
            self.buffer,
            metrics,
            clock=self.clock,
            retry_backoff_ms=100,
            on_progress=self._progress,
        )
        self.collector = FetchCollector(
            self.subscriptions,
            self.buffer,
            Decoding(read_committed=self.fetch_config.read_committed),
            metrics,
            max_poll_records=self.fetch_config.max_poll_records,
        )
        self.offsets = OffsetFinder(
            self.network,  # type: ignore[arg-type]
            self.metadata,
            self.subscriptions,
            clock=self.clock,
            read_committed=self.fetch_config.read_committed,
            request_timeout_ms=30_000,
            retry_backoff_ms=100,
            on_progress=self._progress,
        )
        self.lead(leaders)
        self.subscriptions.assign_from_user([partition(number) for number in leaders])

    def _progress(self) -> None:
        self.progress += 1

    def lead(self, leaders: Mapping[int, int], epoch: int = 0, nodes: Sequence[int] = (1, 2, 3)) -> None:
        """Metadata comes in: who leads which partition, in which epoch; all nodes have replicas."""
        rows = [
            MetadataResponsePartition(
                partition_index=number, leader_id=leader, leader_epoch=epoch, replica_nodes=list(nodes), isr_nodes=list(nodes)
            )
            for number, leader in leaders.items()
        ]
        response = MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=node, host=f"node{node}", port=9092) for node in nodes],
            topics=[MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=rows)],
        )
        self.metadata.update(response, 13, self.metadata.next_question(), self.clock.ms)

    def seek(self, number: int, offset: int, epoch: int = -1) -> None:
        leader_id, leader_epoch = self.offsets.leader_of(partition(number))
        self.subscriptions.seek_validated(partition(number), FetchPosition(offset, epoch, leader_id, leader_epoch))

    def send(self) -> list[Sent]:
        self.fetcher.send_fetches()
        return self.network.take()

    def poll(self) -> dict[int, list[int]]:
        """The offsets of what is returned, by partition."""
        collected = self.collector.collect()
        return {where.partition: [record.offset for record in records] for where, records in collected.by_partition.items()}

    def position(self, number: int = 0) -> int:
        position = self.subscriptions.position(partition(number))
        assert position is not None
        return position.offset


def partition(number: int) -> TopicPartition:
    return TopicPartition(TOPIC, number)


def asked(request: FetchRequest) -> dict[int, int]:
    """The offsets that a fetch asks for, by partition."""
    return {row.partition: row.fetch_offset for topic in request.topics for row in topic.partitions}


def data(
    number: int,
    offset: int = 0,
    count: int = 0,
    *,
    error: int = 0,
    high_watermark: int = 1000,
    aborted: Sequence[tuple[int, int]] = (),
    preferred: int = -1,
    leader: tuple[int, int] | None = None,
) -> PartitionData:
    batch = build([(1, None, b"x", ())] * count, base_offset=offset, leader_epoch=0) if count else b""
    return PartitionData(
        partition_index=number,
        error_code=error,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start_offset=0,
        aborted_transactions=[AbortedTransaction(producer, first) for producer, first in aborted],
        preferred_read_replica=preferred,
        records=Records(batch),
        current_leader=LeaderIdAndEpoch(*(leader or (-1, -1))),
    )


def fetched(*rows: PartitionData, session_id: int = 9, error: int = 0, nodes: Sequence[Node] = ()) -> FetchResponse:
    topics = [FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=list(rows))] if rows else []
    endpoints = [NodeEndpoint(node.id, node.host, node.port, node.rack) for node in nodes]
    return FetchResponse(session_id=session_id, error_code=error, responses=topics, node_endpoints=endpoints)
