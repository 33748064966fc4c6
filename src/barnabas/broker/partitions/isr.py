# Compiled by mypyc: src/compiled.toml lists this module.
"""The in-sync replicas (ISR) of a partition: the replicas that a leader waits for before it acknowledges, and changes to that set.

A leader proposes a change to the controller. Until the controller has decided, it waits for the larger of the two sets, so that no
acknowledgement relies on an undecided change. There is one proposal at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.replica import Replica

_log = logging.getLogger(__name__)

# The proposal was not applied: the committed ISR stays.
_REJECTED: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
# The controller has a newer state and will send it. Until then it is unknown which set is committed.
_AWAIT_CONTROLLER: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class IsrResult:
    """The result of a proposal. Without an error it has the committed ISR and its epochs."""

    def __init__(self, error: int, isr: Iterable[int] = (), leader_epoch: int = -1, partition_epoch: int = -1) -> None:
        self.error = error
        self.isr = list(isr)
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch


class IsrUpdates(Protocol):
    """Sends proposals to the controller (`isr_proposals`). It delays retries."""

    def submit(
        self, partition: TopicPartition, isr: list[int], leader_epoch: int, partition_epoch: int, on_done: Callable[[IsrResult], None]
    ) -> None: ...


class InSyncReplicas:
    """`committed` is the decided ISR. `maximal` also has replicas that a proposal adds: the leader waits for them already."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._order: list[int] = []  # the committed ISR, new replicas last
        self.committed: frozenset[int] = frozenset()
        self.maximal: frozenset[int] = frozenset()
        self.proposed: frozenset[int] | None = None

    def commit(self, isr: Iterable[int]) -> None:
        self._order = list(isr)
        self.committed = self.maximal = frozenset(self._order)
        self.proposed = None

    def maybe_expand(self, replica: Replica) -> None:
        """Proposes to add a replica that has reached the high watermark and the start of the current leader epoch."""
        partition = self._partition
        if self.proposed is not None or replica.broker_id in self.committed or partition.host.isr_updates is None:
            return
        log, epoch_start = partition.leader_log, partition.leader_epoch_start_offset
        if log is None or epoch_start is None or not partition.host.metadata_cache.has_alive_broker(replica.broker_id):
            return
        if replica.log_end_offset >= log.high_watermark and replica.log_end_offset >= epoch_start:
            _log.info("Expanding ISR of %s from %s by %d", partition.partition, sorted(self.committed), replica.broker_id)
            self.maximal = self.committed | {replica.broker_id}
            self._propose(self.maximal)

    def maybe_shrink(self, monotonic_ms: int) -> None:
        """Proposes to remove replicas that were not caught up for replica.lag.time.max.ms. They count until that is decided."""
        partition = self._partition
        if self.proposed is not None or partition.leader_log is None or partition.host.isr_updates is None:
            return
        leader_end, lag_ms_max = partition.leader_log.log_end_offset, partition.host.replica_lag_time_max_ms
        lagging = {
            replica.broker_id
            for replica in partition.remote_replicas.values()
            if replica.broker_id in self.committed and not replica.is_caught_up(leader_end, monotonic_ms, lag_ms_max)
        }
        if lagging:
            _log.info("Shrinking ISR of %s from %s by %s", partition.partition, sorted(self.committed), sorted(lagging))
            self._propose(self.committed - lagging)

    def _propose(self, isr: frozenset[int]) -> None:
        partition, updates = self._partition, self._partition.host.isr_updates
        assert updates is not None
        self.proposed = isr
        leader_epoch, size_before = partition.leader_epoch, len(self.committed)
        updates.submit(
            partition.partition,
            [broker_id for broker_id in self._order if broker_id in isr] + sorted(isr - self.committed),
            leader_epoch,
            partition.partition_epoch,
            lambda result: self._decided(isr, leader_epoch, size_before, result),
        )

    def _decided(self, proposed: frozenset[int], leader_epoch: int, size_before: int, result: IsrResult) -> None:
        partition = self._partition
        if result.error == ErrorCode.NONE:  # counts also if the state that follows from it, as at the end of a reassignment, was faster
            if len(result.isr) < size_before:
                partition.host.isr_shrinks += 1
            elif len(result.isr) > size_before:
                partition.host.isr_expands += 1
        if self.proposed is not proposed or partition.leader_epoch != leader_epoch:
            return  # the controller has sent a newer state since
        host = partition.host
        if result.error != ErrorCode.NONE:
            host.failed_isr_updates += 1
        if result.error in _REJECTED:
            self.commit(self._order)
            partition.isr_changed()  # the leader no longer waits for the replica that was not added
        elif result.error in _AWAIT_CONTROLLER:
            _log.debug("The ISR of %s is undecided after error %d until the controller sends a state", partition.partition, result.error)
        elif result.error != ErrorCode.NONE:
            _log.warning("Failed to update ISR of %s due to error %d. Retrying.", partition.partition, result.error)
            self._propose(proposed)
        elif result.leader_epoch == partition.leader_epoch and result.partition_epoch >= partition.partition_epoch:
            self.commit(result.isr)
            partition.partition_epoch = result.partition_epoch
            partition.isr_changed()
