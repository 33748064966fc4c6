"""Log managers on a simulated disk, and what is on it."""

from __future__ import annotations

import random
from collections.abc import Callable

from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.storage.logs import NOW, config

A, B = "/a", "/b"
ORDERS, BILLS, RETURNS = TopicPartition("orders", 0), TopicPartition("bills", 3), TopicPartition("returns", 1)
ID, OTHER_ID = Uuid.random(random.Random(1)), Uuid.random(random.Random(2))
MARKER = "/.kafka_cleanshutdown"
RECOVERY, STARTS, WATERMARKS = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"


def manage(
    disk: SimulatedFiles,
    *paths: str,
    default: LogConfig | None = None,
    settings: LogManagerConfig | None = None,
    now_ms: int = NOW,
    is_stray: Callable[[Log], bool] = lambda _: False,
    **options: object,
) -> LogManager:
    """A manager that has loaded its logs; unique ids are counted."""
    numbers = iter(range(1, 1000))
    manager = LogManager(
        disk,
        paths or (A, B),
        default or config(),
        settings or LogManagerConfig(num_recovery_threads_per_data_dir=1),
        random_source=random.Random(1),
        unique_id=lambda: f"{next(numbers):032x}",
        **options,  # type: ignore[arg-type]
    )
    manager.load(now_ms, is_stray)
    manager.start_schedule(now_ms)
    return manager


def tick(manager: LogManager, at_ms: int) -> None:
    """Where both clocks say the same."""
    manager.tick(at_ms, at_ms)


def restart(disk: SimulatedFiles, *paths: str, **options: object) -> LogManager:
    """After the process died."""
    return manage(disk.process_crash(), *paths, **options)  # type: ignore[arg-type]


def dirs_of(disk: SimulatedFiles, log_dir: str) -> list[str]:
    return [entry.name for entry in disk.list_dir(log_dir) if entry.is_dir]


def files_of(manager: LogManager) -> SimulatedFiles:
    assert isinstance(manager.files, SimulatedFiles)
    return manager.files


def checkpoint(disk: SimulatedFiles, log_dir: str, name: str) -> str:
    return disk.read_bytes(f"{log_dir}/{name}").decode()
