# Compiled by mypyc: src/compiled.toml lists this module.
"""A produce that waits until its records are on the in-sync replicas (acks=all), on disk (flush.messages), or both.

It completes when the high watermark has passed its records, when they are flushed, when the leader changes or the disk fails, or after the
timeout of the request. The records stay in the log in all cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager

_NONE: Final = 0
_REQUEST_TIMED_OUT: Final = int(ErrorCode.REQUEST_TIMED_OUT)


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedProduce(DelayedOperation):
    """`results` without an error wait. Results with an error are final."""

    def __init__(
        self,
        delay_ms: int,
        results: list[PartitionAppend],
        replica_manager: ReplicaManager,
        on_done: Callable[[list[PartitionAppend]], None],
        by_all: bool = True,
    ) -> None:
        super().__init__(delay_ms)
        self._results = results
        self._replica_manager = replica_manager
        self._on_done = on_done
        self._by_all = by_all
        self._pending = [result for result in results if result.error == _NONE]
        for result in self._pending:
            result.error = _REQUEST_TIMED_OUT  # the result if nothing replaces it in time

    def try_complete(self) -> bool:
        waiting: list[PartitionAppend] = []
        for result in self._pending:
            status = self._replica_manager.check_replicated(result, self._by_all)
            if status.is_pending:
                waiting.append(result)
            else:
                result.error = status.error
        self._pending = waiting
        return not waiting and self.force_complete()

    def on_complete(self) -> None:
        self._on_done(self._results)

    def on_expiration(self) -> None:
        self._replica_manager.metrics.expired_produces += len(self._pending)
