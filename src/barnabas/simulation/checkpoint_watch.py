"""Checks the high watermark checkpoints of brokers: rules that hold at any moment of a history, whatever faults happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.simulation.loop import THREAD_S_MAX
from barnabas.storage.directory.checkpoints import REPLICATION_OFFSET_CHECKPOINT, OffsetCheckpoint
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.simulation.cluster import SimulatedBroker, SimulatedCluster
    from barnabas.simulation.loop import ProcessLoop

WRITTEN_WITHIN_S: Final = 10.0  # several times replica.high.watermark.checkpoint.interval.ms of a history


class CheckpointWatch:
    """A broker with partitions checkpoints their high watermarks periodically, whatever its wall clock shows. The checkpointed high
    watermark of a partition keeps the loaded value until the broker has become its leader or follower. `look` has to be called again and
    again while a history runs."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.wrong: list[str] = []
        self._world = cluster.world
        self._lives = [_Life(broker) for broker in cluster.brokers.values()]

    def look(self) -> None:
        for life in self._lives:
            life.look(self._world.now, self._world.is_paused)
            for partition, before, now in life.overwritten():
                self._complain(f"{life.broker.host} overwrote the high watermark {before} of {partition} with {now} before it had a role")
            if self._world.now - life.written_at > WRITTEN_WITHIN_S:
                self._complain(f"{life.broker.host} has written no checkpoint since {life.written_at:.3f}")

    def _complain(self, what: str) -> None:
        if what not in self.wrong:
            self.wrong.append(what)


class _Life:
    """A broker during the life of one process."""

    def __init__(self, broker: SimulatedBroker) -> None:
        self.broker = broker
        self.written_at = 0.0  # when it last wrote a checkpoint, or had a reason not to
        self._process: ProcessLoop | None = None
        self._loaded: dict[TopicPartition, int] = {}
        self._had_role: set[TopicPartition] = set()
        self._last_written = 0

    def look(self, now: float, is_paused: Callable[[ProcessLoop], bool]) -> None:
        process = self.broker.process
        if process is None or process is not self._process:
            # The next process loads what is on the disk while no process runs.
            self._had_role.clear()
            self._loaded = self._written()
        self._process = process
        if self.broker.broker is not None:
            self._had_role.update(self.broker.broker.replica_manager.online)
        written = self._writes()
        is_slow = process is None or is_paused(process) or process.thread_s_max > THREAD_S_MAX
        if is_slow or not self.broker.is_serving or not self._had_role or written != self._last_written:
            self.written_at = now
        self._last_written = written

    def overwritten(self) -> list[tuple[TopicPartition, int, int | None]]:
        """Each partition whose checkpointed high watermark changed before the broker had a role, with the old and the new value."""
        if self.broker.broker is None:
            return []
        log_manager, written = self.broker.broker.replica_manager.log_manager, self._written()
        return [
            (partition, before, written.get(partition))
            for partition, before in self._loaded.items()
            if partition not in self._had_role
            and log_manager.get(partition) is not None  # neither a log without a topic nor a log on a failed disk
            and written.get(partition) != before
        ]

    def _written(self) -> dict[TopicPartition, int]:
        with self.broker.files.without_faults():
            written: dict[TopicPartition, int] = {}
            for path in self.broker.log_dirs:
                written |= OffsetCheckpoint(self.broker.files, f"{path}/{REPLICATION_OFFSET_CHECKPOINT}").read()
            return written

    def _writes(self) -> int:
        """The number of the last checkpoint write."""
        log_dirs = {} if self.broker.broker is None else self.broker.broker.replica_manager.log_manager.dirs
        return sum(log_dirs[path].high_watermarks.last_written for path in self.broker.log_dirs if path in log_dirs)
