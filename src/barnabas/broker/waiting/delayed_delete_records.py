# Compiled by mypyc: src/compiled.toml lists this module.
"""A DeleteRecords that waits until every live replica has raised its log start offset.

The leader has raised its own already. Followers raise theirs with the next fetch response, and report it with the fetch after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager

INVALID_LOW_WATERMARK: Final = -1


class DeleteRecordsResult:
    """The result of DeleteRecords for one partition. The low watermark is -1 after an error."""

    def __init__(self, partition: TopicPartition, offset: int, low_watermark: int = INVALID_LOW_WATERMARK, error: int = 0) -> None:
        self.partition = partition
        self.offset = offset
        self.low_watermark = low_watermark
        self.error = error

    @property
    def is_done(self) -> bool:
        return self.error != ErrorCode.NONE or self.low_watermark >= self.offset

    def __repr__(self) -> str:
        return f"DeleteRecordsResult({self.partition}, below {self.offset}, low_watermark={self.low_watermark}, error={self.error})"


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedDeleteRecords(DelayedOperation):
    def __init__(
        self,
        delay_ms: int,
        results: list[DeleteRecordsResult],
        replica_manager: ReplicaManager,
        on_done: Callable[[list[DeleteRecordsResult]], None],
    ) -> None:
        super().__init__(delay_ms)
        self._results = results
        self._replica_manager = replica_manager
        self._on_done = on_done
        self._pending = [result for result in results if not result.is_done]
        for result in self._pending:
            result.error = int(ErrorCode.REQUEST_TIMED_OUT)  # the result if nothing replaces it in time

    def try_complete(self) -> bool:
        self._pending = [result for result in self._pending if not self._is_done(result)]
        return not self._pending and self.force_complete()

    def _is_done(self, result: DeleteRecordsResult) -> bool:
        try:
            low_watermark = self._replica_manager.partition_or_raise(result.partition).low_watermark
        except KafkaError as error:
            result.error = error.code
            result.low_watermark = INVALID_LOW_WATERMARK
            return True
        if low_watermark < result.offset:
            return False
        result.low_watermark = low_watermark
        result.error = int(ErrorCode.NONE)
        return True

    def on_complete(self) -> None:
        self._on_done(self._results)
