# Compiled by mypyc: src/compiled.toml lists this module.
"""A produce that waits for the in-sync replicas to have its records (acks=all), or for the disk to have them (flush.messages), or both.

It is completed by the high watermark passing the last of them, by the flush, by a lost lead or a lost disk, or by the request's timeout;
the records stay in the log whatever it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from barnabas.broker.partitions.partition import NOT_YET
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager

_NONE: Final = 0
_REQUEST_TIMED_OUT: Final = int(ErrorCode.REQUEST_TIMED_OUT)


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedProduce(DelayedOperation):
    """Of `results` those without an error wait; the others are answered as they are."""

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
            result.error = _REQUEST_TIMED_OUT  # unless something better is known in time

    def try_complete(self) -> bool:
        waiting: list[PartitionAppend] = []
        for result in self._pending:
            error = self._replica_manager.check_replicated(result, self._by_all)
            if error == NOT_YET:
                waiting.append(result)
            else:
                result.error = error
        self._pending = waiting
        return not waiting and self.force_complete()

    def on_complete(self) -> None:
        self._on_done(self._results)

    def on_expiration(self) -> None:
        self._replica_manager.metrics.expired_produces += len(self._pending)
