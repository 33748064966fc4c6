"""A replica manager on real logs, with the controller's part played by the test and clocks that stand until they are moved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.partitions.fetch_params import FetchParams, FetchResult, PartitionFetch, TopicIdPartition
from barnabas.broker.partitions.isr import IsrResult
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.replication.replica_manager import ReplicaManager
from barnabas.broker.replication.replica_parts import ReplicaParts
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.broker.waiting.purgatory import DelayedOperationPurgatory
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest, LeaderAndIsrTopicState
from barnabas.protocol.messages.leader_and_isr_response import LeaderAndIsrResponse
from barnabas.protocol.messages.stop_replica_request import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from barnabas.protocol.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.storage.disk.files import AnyFiles, Files
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management.log_manager_hooks import LogManagerHooks
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

BROKER = 1
TP = TopicPartition("orders", 0)
TOPIC_ID = Uuid(b"orders".ljust(16, b"."))
NOW = 1_700_000_000_000
LAG_MS_MAX = 30_000


class StandingClock(Clock):
    def __init__(self) -> None:
        self.wall_ms = NOW
        self.steady_ms = 0

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.steady_ms


class Decider:
    """Keeps proposals of in-sync replicas until the test decides them."""

    def __init__(self) -> None:
        self.proposals: list[tuple[list[int], int, int, Callable[[IsrResult], None]]] = []

    def submit(
        self, partition: TopicPartition, isr: list[int], leader_epoch: int, partition_epoch: int, on_done: Callable[[IsrResult], None]
    ) -> None:
        self.proposals.append((isr, leader_epoch, partition_epoch, on_done))

    def accept(self) -> None:
        isr, leader_epoch, partition_epoch, on_done = self.proposals.pop(0)
        on_done(IsrResult(0, isr, leader_epoch, partition_epoch + 1))

    def refuse(self, error: int) -> None:
        self.proposals.pop(0)[3](IsrResult(error))


class Replicas:
    """Broker 1 with `dirs` log directories, reopened from what is there."""

    def __init__(
        self,
        root: Path,
        dirs: int = 1,
        files: AnyFiles | None = None,
        config: LogConfig | None = None,
        settings: dict[str, str] | None = None,
        later: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        self.paths = [str(root / f"disk{number}") for number in range(dirs)]
        self.clock = StandingClock()
        self.decider = Decider()
        self.failed_dirs: list[str] = []
        self.log_manager = LogManager(
            files or Files(),
            self.paths,
            config or LogConfig(),
            hooks=LogManagerHooks(
                dir_failed=lambda path: self.manager.log_dir_failed(path), flushed=lambda log: self.manager.log_flushed(log)
            ),
        )
        self.cache = MetadataCache(BROKER)
        self.config = DynamicBrokerConfig(BrokerConfig({"broker.id": str(BROKER), "log.dirs": ",".join(self.paths), **(settings or {})}))
        self.purgatories = [DelayedOperationPurgatory[Any](name, 0) for name in ("Produce", "Fetch", "DeleteRecords")]
        self.manager = ReplicaManager(
            self.config,
            self.log_manager,
            self.cache,
            self.clock,
            produce_purgatory=self.purgatories[0],
            fetch_purgatory=self.purgatories[1],
            delete_records_purgatory=self.purgatories[2],
            on_log_dir_failure=self.failed_dirs.append,
            later=later,
            make_parts=lambda replicas: ReplicaParts(isr_updates=self.decider),
        )
        self.log_manager.load(NOW)

    def close(self) -> None:
        self.log_manager.shutdown(self.clock.monotonic_ms())

    def pass_time(self, ms: int) -> None:
        self.clock.wall_ms += ms
        self.clock.steady_ms += ms
        for purgatory in self.purgatories:
            purgatory.advance(self.clock.steady_ms)

    # -- what a controller says

    def lead(
        self,
        partition: TopicPartition = TP,
        *,
        leader: int = BROKER,
        epoch: int = 0,
        partition_epoch: int | None = None,
        replicas: tuple[int, ...] = (BROKER,),
        isr: tuple[int, ...] | None = None,
        topic_id: Uuid = TOPIC_ID,
        controller_epoch: int = 1,
        is_new: bool = True,
        tell: bool = True,
    ) -> int:
        """One partition, and what the cluster knows of it unless told not to; gives the error code of the partition."""
        in_sync = list(isr or replicas)
        state = LeaderAndIsrPartitionState(
            partition.topic,
            partition.partition,
            controller_epoch,
            leader,
            epoch,
            in_sync,
            epoch if partition_epoch is None else partition_epoch,
            list(replicas),
            is_new=is_new,
        )
        topics = [LeaderAndIsrTopicState(partition.topic, topic_id, [state])]
        response = self.manager.become_leader_or_follower(
            LeaderAndIsrRequest(BROKER, controller_epoch=controller_epoch, topic_states=topics)
        )
        if tell:
            self.tell(partition, leader, epoch, replicas, topic_id)
        return error_of(response)

    def tell(
        self,
        partition: TopicPartition = TP,
        leader: int = BROKER,
        epoch: int = 0,
        replicas: tuple[int, ...] = (BROKER,),
        topic_id: Uuid = TOPIC_ID,
        controller_epoch: int = 1,
    ) -> int:
        state = UpdateMetadataPartitionState(
            partition.topic, partition.partition, controller_epoch, leader, epoch, list(replicas), 0, list(replicas)
        )
        brokers = [
            UpdateMetadataBroker(
                broker_id, endpoints=[UpdateMetadataEndpoint(9092 + broker_id, f"host{broker_id}", "PLAINTEXT")], rack=f"rack{broker_id}"
            )
            for broker_id in sorted({BROKER, *replicas})
        ]
        topics = [UpdateMetadataTopicState(partition.topic, topic_id, [state])]
        return self.manager.update_metadata(
            UpdateMetadataRequest(BROKER, controller_epoch=controller_epoch, topic_states=topics, live_brokers=brokers)
        ).error_code

    def stop(self, partition: TopicPartition = TP, *, epoch: int = -2, delete: bool = True, controller_epoch: int = 1) -> int:
        states = [StopReplicaTopicState(partition.topic, [StopReplicaPartitionState(partition.partition, epoch, delete)])]
        response = self.manager.stop_replicas(StopReplicaRequest(BROKER, controller_epoch=controller_epoch, topic_states=states))
        return response.partition_errors[0].error_code if response.partition_errors else response.error_code

    # -- what clients do

    def partition(self, partition: TopicPartition = TP) -> Partition:
        return self.manager.partition_or_raise(partition)

    def log(self, partition: TopicPartition = TP) -> Log:
        log = self.log_manager.get(partition)
        assert log is not None
        return log

    def append(self, count: int = 1, *, acks: int = -1, partition: TopicPartition = TP, timeout_ms: int = 1000, **how: Any) -> Appended:
        appended = Appended()
        self.manager.append_records(AppendCall([(partition, records(count, **how))], appended, timeout_ms=timeout_ms, required_acks=acks))
        return appended

    def fetch(
        self,
        offset: int = 0,
        *,
        partition: TopicPartition = TP,
        topic_id: Uuid = Uuid.ZERO,
        wanted: dict[str, Any] | None = None,
        **how: Any,
    ) -> Fetched:
        fetched = Fetched()
        entry = (TopicIdPartition(topic_id, partition), PartitionFetch(offset, **{"max_bytes": 1 << 20, **(wanted or {})}))
        self.manager.fetch_messages(FetchParams(**how), [entry], fetched)
        return fetched

    def follow(self, broker_id: int, offset: int, *, log_start_offset: int = 0, **wanted: Any) -> Fetched:
        """A fetch of another replica."""
        settings = {"log_start_offset": log_start_offset, **wanted}
        return self.fetch(offset, wanted=settings, replica_id=broker_id, isolation=FetchIsolation.LOG_END)


class Appended:
    """Takes the results of an append when they come."""

    def __init__(self) -> None:
        self.results: list[PartitionAppend] | None = None

    def __call__(self, results: list[PartitionAppend]) -> None:
        assert self.results is None, "it is answered once"
        self.results = results

    @property
    def is_done(self) -> bool:
        return self.results is not None

    @property
    def result(self) -> PartitionAppend:
        assert self.results is not None
        return self.results[0]

    @property
    def error(self) -> int:
        return self.result.error


class Fetched:
    """Takes the results of a fetch when they come."""

    def __init__(self) -> None:
        self.results: list[tuple[TopicIdPartition, FetchResult]] | None = None

    def __call__(self, results: list[tuple[TopicIdPartition, FetchResult]]) -> None:
        assert self.results is None, "it is answered once"
        self.results = results

    @property
    def is_done(self) -> bool:
        return self.results is not None

    @property
    def result(self) -> FetchResult:
        assert self.results is not None
        return self.results[0][1]


def records(count: int = 1, size: int = 10, timestamp: int = NOW, **how: Any) -> Records:
    return Records(build([(timestamp + index, b"key", b"v" * size, ()) for index in range(count)], **how))


def error_of(response: LeaderAndIsrResponse) -> int:
    return response.topics[0].partition_errors[0].error_code
