"""The environment of a broker: clock, random source, disk, threads, and metadata store.

A real broker uses those of its machine. The simulator supplies deterministic ones, so that the same broker code runs in both.
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

DISK_THREADS: Final = 4  # for blocking calls: fsync, cold reads, unlink

# Decompresses batches of megabytes. One at a time, because each is held in memory and the event loop needs a core of its own.
CODEC_THREADS: Final = 1

# Authenticates clients by callback handlers and by Kerberos, which may wait for a server: clients that nobody knows yet must not hold up
# the disk.
SASL_THREADS: Final = 4


def _disk_threads() -> Executor:
    return ThreadPoolExecutor(DISK_THREADS, "disk")


def _codec_threads() -> Executor:
    return ThreadPoolExecutor(CODEC_THREADS, "codec")


def _sasl_threads() -> Executor:
    return ThreadPoolExecutor(SASL_THREADS, "sasl")


@dataclass
class Environment:
    """`tree` opens the metadata store at a path; None means the embedded store. `is_shared`: other brokers use the same store."""

    clock: Clock = field(default_factory=Clock)
    random: Random = field(default_factory=SystemRandom)
    files: AnyFiles = field(default_factory=real_files)
    disk_threads: Callable[[], Executor] = _disk_threads
    codec_threads: Callable[[], Executor] = _codec_threads
    sasl_threads: Callable[[], Executor] = _sasl_threads
    tree: Callable[[str], Awaitable[Tree]] | None = None
    is_shared: bool = False

    async def open_tree(self, path: str) -> Tree:
        """Opens `tree`, or the embedded store (one process, one file) where it is None."""
        return open_embedded(path, self.clock.now_ms) if self.tree is None else await self.tree(path)
