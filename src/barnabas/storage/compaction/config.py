"""The broker's settings of log compaction: Kafka's `log.cleaner.*`, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from barnabas.storage.compaction.offset_map import BYTES_PER_ENTRY
from barnabas.storage.log_config import INT_MAX

_IO_BUFFER_BYTES_MIN: Final = 4096


@dataclass(frozen=True)
class CleanerConfig:
    threads: int = 1  # how many logs may be cleaned at once; they share the buffers below
    dedupe_buffer_size: int = 128 * 1024 * 1024
    io_buffer_load_factor: float = 0.9  # how full the offset map may become
    io_buffer_size: int = 512 * 1024
    io_max_bytes_per_second: float = inf
    backoff_ms: int = 15_000  # how long to wait when no log is dirty enough
    enable: bool = True

    def __post_init__(self) -> None:
        if self.keys_max < 1:
            raise ValueError(
                "offset map is too small to fit in even a single message, so log cleaning will never make progress. "
                "You can increase log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads"
            )

    @property
    def slots(self) -> int:
        """The number of slots of the offset map of one cleaning."""
        return min(self.dedupe_buffer_size // max(1, self.threads), INT_MAX) // BYTES_PER_ENTRY

    @property
    def keys_max(self) -> int:
        """How many different keys one cleaning can handle."""
        return int(self.slots * self.io_buffer_load_factor)

    def slots_for(self, keys: int) -> int:
        """The number of slots for a number of keys: a short log does not need the whole buffer."""
        return min(self.slots, int(keys / self.io_buffer_load_factor) + 1)

    @property
    def read_bytes(self) -> int:
        """How many bytes of a segment are read at once: half of the buffer, the other half is for writing."""
        return max(_IO_BUFFER_BYTES_MIN, self.io_buffer_size // max(1, self.threads) // 2)
