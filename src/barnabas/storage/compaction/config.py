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
    threads: int = 1  # how many logs may be cleaned at once; the buffers below are shared out among them
    dedupe_buffer_size: int = 128 * 1024 * 1024
    io_buffer_load_factor: float = 0.9  # how full the offset map may become
    io_buffer_size: int = 512 * 1024
    io_max_bytes_per_second: float = inf
    backoff_ms: int = 15_000  # to wait where no log is dirty enough
    enable: bool = True

    def __post_init__(self) -> None:
        if self.keys_max < 1:
            raise ValueError(
                "offset map is too small to fit in even a single message, so log cleaning will never make progress. "
                "You can increase log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads"
            )

    @property
    def slots(self) -> int:
        """Of the offset map of one cleaning."""
        return min(self.dedupe_buffer_size // max(1, self.threads), INT_MAX) // BYTES_PER_ENTRY

    @property
    def keys_max(self) -> int:
        """How many different keys one cleaning can take in."""
        return int(self.slots * self.io_buffer_load_factor)

    def slots_for(self, keys: int) -> int:
        """As many slots as so many keys need: a short log is not worth the whole buffer."""
        return min(self.slots, int(keys / self.io_buffer_load_factor) + 1)

    @property
    def read_bytes(self) -> int:
        """How much of a segment is read at once; the other half of the buffer is for what is written."""
        return max(_IO_BUFFER_BYTES_MIN, self.io_buffer_size // max(1, self.threads) // 2)
