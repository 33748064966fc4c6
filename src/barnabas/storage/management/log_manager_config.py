"""The broker settings of log management."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.log_config import LONG_MAX
from barnabas.storage.producers.state import ProducerStateConfig


@dataclass(frozen=True)
class LogManagerConfig:
    """With Kafka's defaults."""

    num_recovery_threads_per_data_dir: int = 2
    retention_check_interval_ms: int = 300_000
    flush_scheduler_interval_ms: int = LONG_MAX
    recovery_point_checkpoint_interval_ms: int = 60_000
    log_start_offset_checkpoint_interval_ms: int = 60_000
    high_watermark_checkpoint_interval_ms: int = 5_000
    producer_id_expiration_check_interval_ms: int = 600_000
    initial_task_delay_ms: int = 30_000
    cleaner: CleanerConfig = field(default_factory=CleanerConfig)
    producers: ProducerStateConfig = field(default_factory=ProducerStateConfig)
