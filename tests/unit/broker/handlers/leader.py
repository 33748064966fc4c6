"""A broker that serves reads: real logs on a real disk, a replica manager that leads them, and handlers that get frames.

Requests and responses are the bytes that a client would send and get; only the socket between is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.replication.long_appends import LongAppends
from barnabas.broker.replication.long_reads import LongReads
from barnabas.broker.replication.replica_manager import ReplicaManager
from barnabas.broker.replication.replica_parts import ReplicaParts
from barnabas.broker.requests.fetch_session import FetchManager, FetchSessionCache
from barnabas.broker.scheduling.loop_lag import LoopLag
from barnabas.broker.scheduling.turns import Turns
from barnabas.broker.security.access import Access
from barnabas.broker.topics.metadata_cache import LEADER_DURING_DELETE, MetadataCache
from barnabas.broker.waiting.purgatory import DelayedOperationPurgatory
from barnabas.network.exchange import Exchange
from barnabas.protocol import api_keys
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest, LeaderAndIsrTopicState
from barnabas.protocol.messages.stop_replica_request import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from barnabas.protocol.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas.protocol.registry import APIS
from barnabas.protocol.slices import Records, Streamed
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs.compression import NONE
from barnabas.records.validation.validation import CLIENT
from barnabas.storage.disk.files import AnyFiles, Files
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.storage.management.log_manager_hooks import LogManagerHooks
from barnabas.storage.producers.state import ProducerStateConfig
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

BROKER = 1
OTHER_BROKER = 2
LISTENER = "PLAINTEXT"
NOW = 1_700_000_000_000
DEADLINE_S = 60
UNVERIFIED = ProducerStateConfig(transaction_verification_enabled=False)  # transactions need no coordinator to vouch for them
DURING_DELETE = -2  # the leader epoch of StopReplica for a topic that is deleted


class StandingClock(Clock):
    """Both clocks stand until they are moved."""

    def __init__(self) -> None:
        self.wall_ms = NOW
        self.steady_ms = 0
        self.perf = 0
        self.ns_per_reading = 0  # how long a step takes that is measured

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.steady_ms

    def perf_ns(self) -> int:
        self.perf += self.ns_per_reading
        return self.perf


class Peer:
    """The end of a connection that a handler sees."""

    def __init__(self, remote_ip: str = "127.0.0.1") -> None:
        self.id = "peer"
        self.session: object = None
        self.remote_ip = remote_ip
        self.listener_name = LISTENER
        self.has_left_queue = False
        self.throttled_until_ms = 0
        self.answer: asyncio.Event = asyncio.Event()

    def throttle(self, until_ms: int) -> None:
        self.throttled_until_ms = max(self.throttled_until_ms, until_ms)

    def request_left_queue(self, size: int) -> None:
        self.has_left_queue = True

    def answered(self) -> None:
        self.answer.set()

    def pipelining_resumed(self) -> None: ...


def _sent(part: bytes | bytearray | memoryview | Streamed) -> bytes | bytearray | memoryview:
    """What a connection would send of a part, which is to be asked for once."""
    if not isinstance(part, Streamed):
        return part
    piece = part.source.read_nowait(0, part.size)
    assert piece is not None
    part.source.close()
    return piece


class Asked:
    """A request that was handed over, and its answer when it has come."""

    def __init__(self, key: int, version: int, remote_ip: str = "127.0.0.1") -> None:
        self.api = APIS[key]
        self.version = version
        self.peer = Peer(remote_ip)
        connection: Any = self.peer
        self.exchange = Exchange(connection, 0, False, 0)

    @property
    def is_answered(self) -> bool:
        return self.exchange.response is not None

    @property
    def is_waiting(self) -> bool:
        return self.peer.has_left_queue and not self.is_answered

    @property
    def is_refused(self) -> bool:
        """The connection is closed instead of an answer."""
        return self.is_answered and self.exchange.closes

    def response(self) -> Any:
        assert self.exchange.response, "there is no answer"
        frame = b"".join(map(_sent, self.exchange.response))
        correlation_id, reader = parse_response_header(frame[4:], self.api.response_header_version(self.version))
        assert correlation_id == 7
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        response = self.api.response.read(reader, self.version)
        reader.finish()
        return response

    async def answer(self) -> Any:
        async with asyncio.timeout(DEADLINE_S):
            await self.peer.answer.wait()
        return self.response()


class Leader:
    """The broker. To be made, used and closed on a running loop."""

    def __init__(self, directory: Path, properties: Mapping[str, str] | None = None, files: AnyFiles | None = None) -> None:
        self.cluster = None
        self.tree = SimpleNamespace(trouble=None)
        self.access = Access(None)
        self.clock = StandingClock()
        self.config = DynamicBrokerConfig(
            BrokerConfig({"broker.id": str(BROKER), "zookeeper.connect": "none:2181", "log.dirs": str(directory), **(properties or {})})
        )
        self.log_manager = LogManager(
            files or Files(),
            [str(directory)],
            self.config.current.log_config(),
            LogManagerConfig(producers=UNVERIFIED),
            hooks=LogManagerHooks(
                dir_failed=lambda path: self.replica_manager.log_dir_failed(path),
                flushed=lambda log: self.replica_manager.log_flushed(log),
            ),
        )
        self.log_manager.load(NOW)
        self.metadata_cache = MetadataCache(BROKER)
        self.purgatories = [DelayedOperationPurgatory[Any](name, 0) for name in ("Produce", "Fetch", "DeleteRecords")]
        self.disk_threads: Executor = ThreadPoolExecutor(1)
        self.turns = Turns()
        self.replica_manager = ReplicaManager(
            self.config,
            self.log_manager,
            self.metadata_cache,
            self.clock,
            produce_purgatory=self.purgatories[0],
            fetch_purgatory=self.purgatories[1],
            delete_records_purgatory=self.purgatories[2],
            make_parts=lambda replicas: ReplicaParts(
                LongAppends(replicas, self.turns, self.disk_threads, 1), LongReads(replicas, self.turns)
            ),
        )
        self.loop_lag = LoopLag()
        self.quotas = ClientQuotas(self.config.static.number)
        self.fetch_sessions = FetchManager(FetchSessionCache(10, random=Random(1)), self.clock)
        broker: Any = self
        self.dispatcher = RequestDispatcher(broker)

    def close(self) -> None:
        self.disk_threads.shutdown()
        self.log_manager.shutdown(NOW)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        config: LogConfig | None = None,
        topic_id: Uuid = Uuid.ZERO,
        leader: int = BROKER,
        leader_epoch: int = 0,
        replicas: tuple[int, ...] = (BROKER,),
        hosted: bool = True,
    ) -> None:
        """As the controller would; again for a topic that is there, it says what has changed."""
        if config is not None:
            self.log_manager.update_topic_config(name, config)
        isr = list(replicas)
        led = [
            LeaderAndIsrPartitionState(name, index, 1, leader, leader_epoch, isr, leader_epoch, isr, is_new=True)
            for index in range(partitions)
        ]
        known = [UpdateMetadataPartitionState(name, index, 1, leader, leader_epoch, isr, 0, isr) for index in range(partitions)]
        if hosted:
            states = [LeaderAndIsrTopicState(name, topic_id, led)]
            self.replica_manager.become_leader_or_follower(LeaderAndIsrRequest(1, False, 1, topic_states=states))
        brokers = [_broker(BROKER, 9092), _broker(OTHER_BROKER, 9093)]
        states_known = [UpdateMetadataTopicState(name, topic_id, known)]
        self.replica_manager.update_metadata(UpdateMetadataRequest(1, False, 0, 1, topic_states=states_known, live_brokers=brokers))

    def delete_topic(self, name: str, partitions: int = 1) -> None:
        stopped = [StopReplicaPartitionState(index, DURING_DELETE, True) for index in range(partitions)]
        self.replica_manager.stop_replicas(StopReplicaRequest(1, False, 1, topic_states=[StopReplicaTopicState(name, stopped)]))
        gone = [UpdateMetadataPartitionState(name, index, 1, LEADER_DURING_DELETE) for index in range(partitions)]
        states = [UpdateMetadataTopicState(name, self.metadata_cache.topic_id(name) or Uuid.ZERO, gone)]
        self.replica_manager.update_metadata(UpdateMetadataRequest(1, False, 0, 1, topic_states=states))

    def log(self, topic: str, partition: int = 0) -> Log:
        log = self.log_manager.get(TopicPartition(topic, partition))
        assert log is not None
        return log

    def produce(self, topic: str, partition: int = 0, data: bytes | None = None, *, count: int = 1, origin: int = CLIENT) -> int:
        """Appends a batch, and gives its first offset."""
        bases: list[int] = []

        def done(results: list[Any]) -> None:
            assert [result.error for result in results] == [0]
            bases.append(results[0].base_offset)

        entry = (TopicPartition(topic, partition), Records(data if data is not None else batch(count)))
        self.replica_manager.append_records(AppendCall([entry], done, timeout_ms=1000, required_acks=1, origin=origin))
        return bases[0]

    def pass_time(self, ms: int) -> None:
        self.clock.wall_ms += ms
        self.clock.steady_ms += ms
        for purgatory in self.purgatories:
            purgatory.advance(self.clock.steady_ms)

    def ask(self, key: int, message: Message, version: int, remote_ip: str = "127.0.0.1", client_id: str = "client") -> Asked:
        pending = Asked(key, version, remote_ip)
        frame = b"".join(request_frame(message, pending.api, version, 7, client_id))
        pending.exchange.size = len(frame) - 4
        self.dispatcher.dispatch(pending.exchange, frame[4:])
        return pending

    def fetch(self, topic: str, offset: int = 0, version: int = 12, **settings: Any) -> Asked:
        return self.ask(api_keys.FETCH, fetch_request(topic, offset, **settings), version)


def with_leader(
    directory: Path, test: Callable[[Leader], Awaitable[None]], properties: Mapping[str, str] | None = None, files: AnyFiles | None = None
) -> None:
    """Runs a test on a loop of its own."""

    async def run() -> None:
        leader = Leader(directory, properties, files)
        try:
            await test(leader)
        finally:
            leader.close()

    asyncio.run(run())


def _broker(broker_id: int, port: int) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(broker_id, endpoints=[UpdateMetadataEndpoint(port, f"host{broker_id}", LISTENER)], rack=f"rack{broker_id}")


def fetch_request(
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    partition_max_bytes: int = 1_048_576,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    topic_id: Uuid = Uuid.ZERO,
    **settings: Any,
) -> FetchRequest:
    fetch_partition = FetchPartition(
        partition,
        current_leader_epoch,
        offset,
        last_fetched_epoch=last_fetched_epoch,
        partition_max_bytes=partition_max_bytes,
    )
    return FetchRequest(**{"topics": [FetchTopic(topic, topic_id, [fetch_partition])], **settings})


def batch(count: int = 1, *, codec: int = NONE, size: int = 10, timestamp: int = NOW, magic: int = 2, **settings: Any) -> bytes:
    builder = BatchBuilder(magic, codec, 0, **settings)
    for index in range(count):
        builder.append(timestamp + index, b"key", bytes([65 + index % 26]) * size)
    return builder.build()
