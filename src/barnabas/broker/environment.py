"""What a broker finds around it: clocks, chance, a disk with threads to wait for it, and the metadata tree.

A real broker has those of its machine. The simulator gives it others, and the same code runs in a world where nothing is left to chance.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Final

from barnabas.broker.clock import Clock
from barnabas.broker.descriptors import real_files
from barnabas.metadata.embedded import open_embedded
from barnabas.metadata.tree import Tree
from barnabas.storage.disk.files import AnyFiles

DISK_THREADS: Final = 4  # for what waits for the disk: fsync, cold reads, unlinking


# For batches that unfold into megabytes. One is opened at a time: each is held in memory, and the event loop needs a core of its own.
CODEC_THREADS: Final = 1


def _disk_threads() -> Executor:
    return ThreadPoolExecutor(DISK_THREADS, "disk")


def _codec_threads() -> Executor:
    return ThreadPoolExecutor(CODEC_THREADS, "codec")


@dataclass
class Environment:
    """`tree` opens the metadata tree that is kept at a path, or wherever its maker knows; `is_shared` where other brokers have it too."""

    clock: Clock = field(default_factory=Clock)
    random: Random = field(default_factory=SystemRandom)
    files: AnyFiles = field(default_factory=real_files)
    disk_threads: Callable[[], Executor] = _disk_threads
    codec_threads: Callable[[], Executor] = _codec_threads
    tree: Callable[[str], Awaitable[Tree]] | None = None
    is_shared: bool = False

    async def open_tree(self, path: str) -> Tree:
        """The embedded store, one process and one file, unless there is another."""
        return open_embedded(path, self.clock.now_ms) if self.tree is None else await self.tree(path)
