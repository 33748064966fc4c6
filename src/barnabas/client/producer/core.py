"""The parts of a producer, created from its settings; shared by the blocking and the asynchronous producer.

Applications append to the accumulator in their own threads (`send_path`). The sender, the network client and the waits for metadata run on
one event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

from barnabas.client.clock import Clock, SystemClock
from barnabas.client.cluster import PartitionInfo
from barnabas.client.config.config import ClientConfig
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.errors import IllegalArgument, IllegalState, SendFailed, Timeout
from barnabas.client.metrics.client_metrics import client_metrics
from barnabas.client.metrics.telemetry import LAST_PUSH_TIMEOUT_MS, ClientTelemetry, not_enabled
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.client.producer.accumulator import AccumulatorConfig, RecordAccumulator
from barnabas.client.producer.buffer_pool import BufferPool
from barnabas.client.producer.config import producer_config
from barnabas.client.producer.interceptors import ProducerInterceptors
from barnabas.client.producer.partitioners import RoundRobinPartitioner
from barnabas.client.producer.producer_metrics import ProducerMetrics
from barnabas.client.producer.send_path import SendPath
from barnabas.client.producer.sender import Sender, SenderConfig
from barnabas.client.producer.transactions.transaction_manager import TransactionManager
from barnabas.client.producer.unseen_failures import UnseenFailures
from barnabas.client.serialization import resolve_serializer
from barnabas.config_def import InvalidConfig
from barnabas.errors import InvalidTopic
from barnabas.records.codecs.compression import GZIP, LZ4, ZSTD, codec_id
from barnabas.uuid import Uuid

_PARTITIONERS = {"RoundRobinPartitioner": RoundRobinPartitioner}
# Of Kafka 2.4 to 3.9. Both use one partition until a batch is full or sent (KIP-480); the second also for records with a key.
_STICKY_PARTITIONERS = {"DefaultPartitioner", "UniformStickyPartitioner"}
_JAVA_PACKAGES = ("org.apache.kafka.clients.producer", "org.apache.kafka.clients.producer.internals")
_LEVELS = {GZIP: "compression.gzip.level", LZ4: "compression.lz4.level", ZSTD: "compression.zstd.level"}


class ProducerCore:
    def __init__(
        self,
        settings: Mapping[str, object] | None,
        keywords: Mapping[str, object],
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        config = self.config = producer_config(settings, keywords)
        self.clock = clock or SystemClock()
        self.max_block_ms: int = config["max.block.ms"]
        random = random or Random()
        sticky = _sticky_partitioner(config)
        lock = threading.RLock()
        self.metrics = client_metrics(config, self.clock)
        self.pool = BufferPool(config["buffer.memory"])
        self.transactions = _transactions(config, self.clock, lock)
        # A failure in a transaction is raised by its commit.
        self._unseen = UnseenFailures() if config["transactional.id"] is None else None
        self.metadata = Metadata(config, clock=self.clock, random=random, topic_idle_ms=config["metadata.max.idle.ms"])
        self.accumulator = RecordAccumulator(
            _accumulator_config(config),
            self.pool,
            ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"], random=random),
            self.transactions,
            lock,
            now_ms=self.clock.monotonic_ms,
            random=partial(random.getrandbits, 31),
            wakeup=self.wakeup,
            unseen=self._unseen,
            failures=self.metadata.failures,
        )
        self.client = NetworkClient(config, self.metadata, clock=self.clock, metrics=self.metrics, random=random, metric_group="producer")
        self.telemetry = ClientTelemetry.of(config, self.client, self.metrics, clock=self.clock, random=random)
        self.producer_metrics = ProducerMetrics(self.metrics, self.pool, self.client.in_flight_count, self._metadata_age_s)
        self.sender = Sender(
            _sender_config(config), self.accumulator, self.transactions, self.client, self.metadata, self.producer_metrics, self.clock
        )
        originals = config.originals()
        self.key_serializer = resolve_serializer(config["key.serializer"], originals, is_key=True)
        self.value_serializer = resolve_serializer(config["value.serializer"], originals, is_key=False)
        self.partitioner = _partitioner(config)
        if hasattr(self.partitioner, "configure"):
            self.partitioner.configure(originals)
        self.interceptors = ProducerInterceptors(config.instances("interceptor.classes"))
        self.interceptors.configure(config.originals(client_id=config["client.id"]))
        self.path = SendPath(
            self.accumulator,
            self.metadata,
            self.transactions,
            self.interceptors,
            self.key_serializer,
            self.value_serializer,
            self.partitioner,
            self.clock,
            ignore_keys=sticky == "UniformStickyPartitioner" if sticky else config["partitioner.ignore.keys"],
            request_size_max=config["max.request.size"],
        )
        self._updated_ms = self.clock.monotonic_ms()
        self.metadata.on_update.append(self._updated)
        try:
            config.report_unused()
        except InvalidConfig:
            self.close_parts()
            raise

    async def start(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        """Call it on the event loop on which everything will run."""
        await self.client.start()
        self.sender.start(asyncio.get_running_loop(), call_soon)
        if self.telemetry is not None:
            self.telemetry.start()

    def wakeup(self) -> None:
        self.sender.wakeup()

    async def wait_on_metadata(self, topic: str, partition: int | None, wait_max_ms: int) -> list[PartitionInfo]:
        """Waits until the topic is known, and the partition if one is given; raises Timeout, or the topic's error."""
        began_ms = self.clock.monotonic_ms()
        metadata = self.metadata
        if topic in metadata.cluster.invalid_topics:
            raise InvalidTopic(topic)
        metadata.add(topic)
        while True:
            count = metadata.cluster.partition_count(topic)
            waited_ms = self.clock.monotonic_ms() - began_ms
            if count is not None and (partition is None or partition < count):
                self.producer_metrics.waited("metadata-wait", waited_ms)
                return list(metadata.cluster.partitions_for_topic(topic))
            if waited_ms >= wait_max_ms:
                raise metadata.failures.timeout(_not_present(topic, partition, count, wait_max_ms))
            metadata.add(topic)
            version = metadata.update_version if metadata.update_requested else metadata.request_update(False)
            try:
                await metadata.wait_for_update(version, max(wait_max_ms - waited_ms, 1))
            except Timeout:
                late = metadata.failures.timeout(_not_present(topic, partition, count, wait_max_ms))
                raise late from late.__cause__
            metadata.raise_for_topic(topic)

    async def close(self, timeout_s: float | None) -> None:
        """Closes everything that runs on the event loop; `close_parts` closes the rest."""
        began_ms = self.clock.monotonic_ms()
        await self.sender.close(timeout_s)
        if self.telemetry is not None:
            left_ms = LAST_PUSH_TIMEOUT_MS if timeout_s is None else int(timeout_s * 1000) - (self.clock.monotonic_ms() - began_ms)
            await self.telemetry.close(max(left_ms, 0))
        await self.client.close(0)

    async def client_instance_id(self, timeout_ms: int) -> Uuid:
        """The id that the cluster assigned to this client for its metrics."""
        if self.telemetry is None:
            raise not_enabled()
        return await self.telemetry.client_instance_id(timeout_ms)

    def unseen_failure(self) -> SendFailed | None:
        """The error that reports, once, the failed records whose result the application has not read."""
        if self._unseen is None:
            return None
        with self.accumulator.lock:
            return self._unseen.take()

    def report_unseen(self) -> None:
        """Raises the error of `unseen_failure`, if there is one."""
        failure = self.unseen_failure()
        if failure is not None:
            raise failure

    def close_parts(self) -> None:
        self.interceptors.close()
        self.key_serializer.close()
        self.value_serializer.close()
        if hasattr(self.partitioner, "close"):
            self.partitioner.close()

    def transaction_manager(self) -> TransactionManager:
        if self.transactions is None:
            raise IllegalState(
                "Cannot use transactional methods without enabling transactions by setting the transactional.id configuration property"
            )
        if self.path.closed:
            raise IllegalState("Cannot perform operation after producer has been closed")
        return self.transactions

    def _metadata_age_s(self) -> float:
        return (self.clock.monotonic_ms() - self._updated_ms) / 1000

    def _updated(self, cluster: Any) -> None:
        self._updated_ms = self.clock.monotonic_ms()


def check_group(group: ConsumerGroupMetadata | str | None) -> ConsumerGroupMetadata:
    """The group of a transaction's offsets; with an id alone, offsets are committed without a membership check."""
    if isinstance(group, str):
        return ConsumerGroupMetadata(group)
    if not isinstance(group, ConsumerGroupMetadata):
        raise IllegalArgument(f"The group must be consumer.group_metadata() or a group id, not {group!r}")
    if group.generation_id > 0 and group.member_id == "":
        raise IllegalArgument(f"The group metadata {group} has a generation_id but no member_id: use consumer.group_metadata()")
    return group


def _not_present(topic: str, partition: int | None, count: int | None, wait_max_ms: int) -> str:
    if count is None:
        return f"Topic {topic} not present in metadata after {wait_max_ms} ms."
    return f"Partition {partition} of topic {topic} with partition count {count} is not present in metadata after {wait_max_ms} ms."


def _transactions(config: ClientConfig, clock: Clock, lock: threading.RLock) -> TransactionManager | None:
    if not config["enable.idempotence"]:
        return None
    return TransactionManager(
        config["transactional.id"],
        transaction_timeout_ms=config["transaction.timeout.ms"],
        two_phase_commit=config["transaction.two.phase.commit.enable"],
        retry_backoff_ms=config["retry.backoff.ms"],
        lock=lock,
        now_ms=clock.monotonic_ms,
    )


def _accumulator_config(config: ClientConfig) -> AccumulatorConfig:
    codec = codec_id(config["compression.type"])
    return AccumulatorConfig(
        batch_size=config["batch.size"],
        codec=codec,
        level=config[_LEVELS[codec]] if codec in _LEVELS else None,
        linger_ms=config["linger.ms"],
        delivery_timeout_ms=config["delivery.timeout.ms"],
        adaptive_partitioning=config["partitioner.adaptive.partitioning.enable"] and config["partitioner.class"] is None,
        availability_timeout_ms=config["partitioner.availability.timeout.ms"],
        switches_at_new_batch=_sticky_partitioner(config) is not None,
    )


def _partitioner(config: ClientConfig) -> Any:
    return None if _sticky_partitioner(config) else config.instance("partitioner.class", _PARTITIONERS)


def _sticky_partitioner(config: ClientConfig) -> str | None:
    """The name in _STICKY_PARTITIONERS that partitioner.class has, with or without its package; None for others."""
    value = config["partitioner.class"]
    name = value.rpartition(".")[2] if isinstance(value, str) else ""
    return name if name in _STICKY_PARTITIONERS and value in (name, *(f"{package}.{name}" for package in _JAVA_PACKAGES)) else None


def _sender_config(config: ClientConfig) -> SenderConfig:
    return SenderConfig(
        acks=int(config["acks"]),
        retries=config["retries"],
        request_timeout_ms=config["request.timeout.ms"],
        request_size_max=config["max.request.size"],
        in_flight_max=config["max.in.flight.requests.per.connection"],
    )
