"""How far the copies of a reassignment are: bytes, and the time that is left. Plain values; this module sends nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.topic_partition import TopicPartition

_WINDOW_S: Final = 30.0  # the rate is that of the last seconds: an average since the start reacts too slowly to another throttle

Copy = tuple[TopicPartition, int]  # a partition, and the broker that gets a replica of it


@dataclass(frozen=True)
class CopiedBytes:
    done_bytes: int
    total_bytes: int
    done_copies: int
    total_copies: int
    left_s: float | None  # None while nothing is known

    @property
    def share(self) -> float:
        if self.total_bytes:
            return self.done_bytes / self.total_bytes
        return self.done_copies / self.total_copies if self.total_copies else 1.0

    @property
    def bytes_per_s(self) -> float | None:
        """The rate that `left_s` follows from; None while it is unknown, and at the end."""
        return (self.total_bytes - self.done_bytes) / self.left_s if self.left_s else None


class CopyProgress:
    """`sizes` has the bytes that each copy will have."""

    def __init__(self, sizes: Mapping[Copy, int]) -> None:
        self._sizes = dict(sizes)
        self._samples: deque[tuple[float, int]] = deque()

    @property
    def receivers(self) -> set[int]:
        return {broker for _, broker in self._sizes}

    def at(self, monotonic_s: float, pending: Collection[Copy], present: Mapping[Copy, int]) -> CopiedBytes:
        """`pending` are the copies that are not complete, `present` the bytes that replicas have now."""
        done = sum(min(present.get(copy, 0), size) if copy in pending else size for copy, size in self._sizes.items())
        complete = sum(copy not in pending for copy in self._sizes)
        self._samples.append((monotonic_s, done))
        while len(self._samples) > 2 and self._samples[0][0] < monotonic_s - _WINDOW_S:
            self._samples.popleft()
        total = sum(self._sizes.values())
        return CopiedBytes(done, total, complete, len(self._sizes), self._left_s(total - done))

    def _left_s(self, left: int) -> float | None:
        (since, first), (now, last) = self._samples[0], self._samples[-1]
        return left * (now - since) / (last - first) if last > first else 0.0 if not left else None


def pending_copies(reassignments: Iterable[tuple[TopicPartition, Collection[int]]]) -> set[Copy]:
    """The copies of reassignments in progress, given as partitions with the brokers they are added to."""
    return {(partition, broker) for partition, adding in reassignments for broker in adding}
