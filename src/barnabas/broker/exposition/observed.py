"""The parts of a broker that its metrics and its health are read from, and the state of its life."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from barnabas.broker.exposition.lag.remote_times import RemoteTimes
from barnabas.broker.exposition.lag.unread_times import UnreadTimes
from barnabas.broker.metrics.request_kinds import RequestKinds
from barnabas.metrics.histogram import Histogram
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.cluster.channel_queues import ChannelQueue
    from barnabas.broker.security.sasl.listener import SaslListener
    from barnabas.broker.server.housekeeping import Housekeeping
    from barnabas.broker.waiting.expirations import Expirations
    from barnabas.network.server import SocketServer


class BrokerState(IntEnum):
    """The states of a broker, with Kafka's numbers."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


@dataclass
class Observed:
    """`sockets` is None until the ports are bound. `coordinator_metrics` returns the values of the coordinators, by Kafka's names."""

    broker: Broker
    kinds: RequestKinds
    expirations: Expirations
    coordinator_metrics: Callable[[], Mapping[str, int]]
    state: BrokerState = BrokerState.STARTING
    sockets: SocketServer | None = None
    channel_queues: Callable[[], Mapping[int, ChannelQueue]] = dict  # the requests of the controller to each broker
    sasl: Mapping[str, SaslListener] = field(default_factory=dict)  # by listener
    housekeeping: Housekeeping | None = None
    flush_us: Histogram = field(default_factory=Histogram)  # the times of flushes of logs, in microseconds
    remote_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)  # the end offsets of partitions that other brokers lead
    remote_times: RemoteTimes = field(default_factory=RemoteTimes)  # the timestamps of the first unread records there
    unread_times: UnreadTimes = field(default_factory=UnreadTimes)  # and of those in partitions that this broker leads

    def dead_cleaners(self) -> int:
        return 0 if self.housekeeping is None else self.housekeeping.dead_cleaners

    def dead_movers(self) -> int:
        return 0 if self.housekeeping is None else self.housekeeping.dead_movers

    def end_offset(self, partition: TopicPartition) -> int | None:
        """The high watermark of a partition; None if this broker does not know it."""
        hosted = self.broker.replica_manager.partition(partition)
        if hosted is None or hosted.leader_log is None:
            return self.remote_offsets.get(partition)
        return hosted.leader_log.high_watermark

    def lag_seconds(self, partition: TopicPartition, committed: int, now_ms: int) -> float | None:
        """The age of the first record at or after a committed offset, and 0 if there is none. None if this broker does not know it, or if
        the record has no timestamp."""
        hosted = self.broker.replica_manager.partition(partition)
        log = None if hosted is None else hosted.leader_log
        if log is not None:
            timestamp = self.unread_times.of_log(log, committed)
            if timestamp is None:
                return 0.0
        else:
            end = self.remote_offsets.get(partition)
            if end is None or committed >= end:
                return None if end is None else 0.0
            timestamp = self.remote_times.of(partition, committed)
        return None if timestamp is None or timestamp < 0 else max(0, now_ms - timestamp) / 1000
