"""Builds the config of the log manager and of the log cleaner from the broker's config."""

from __future__ import annotations

from barnabas.broker.config import BrokerConfig
from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.storage.producers.state import ProducerStateConfig


def log_manager_config(config: BrokerConfig) -> LogManagerConfig:
    return LogManagerConfig(
        num_recovery_threads_per_data_dir=config.number("num.recovery.threads.per.data.dir"),
        retention_check_interval_ms=config.number("log.retention.check.interval.ms"),
        flush_scheduler_interval_ms=config.number("log.flush.scheduler.interval.ms"),
        recovery_point_checkpoint_interval_ms=config.number("log.flush.offset.checkpoint.interval.ms"),
        log_start_offset_checkpoint_interval_ms=config.number("log.flush.start.offset.checkpoint.interval.ms"),
        high_watermark_checkpoint_interval_ms=config.number("replica.high.watermark.checkpoint.interval.ms"),
        producer_id_expiration_check_interval_ms=config.number("producer.id.expiration.check.interval.ms"),
        initial_task_delay_ms=config.number("log.initial.task.delay.ms"),
        cleaner=cleaner_config(config),
        producers=ProducerStateConfig(
            config.number("producer.id.expiration.ms"),
            config.flag("transaction.partition.verification.enable"),
            config.number("transaction.max.timeout.ms"),
            config.number("barnabas.partition.producers.max"),
        ),
    )


def cleaner_config(config: BrokerConfig) -> CleanerConfig:
    return CleanerConfig(
        threads=config.number("log.cleaner.threads"),
        dedupe_buffer_size=config.number("log.cleaner.dedupe.buffer.size"),
        io_buffer_load_factor=config.ratio("log.cleaner.io.buffer.load.factor"),
        io_buffer_size=config.number("log.cleaner.io.buffer.size"),
        io_max_bytes_per_second=config.ratio("log.cleaner.io.max.bytes.per.second"),
        backoff_ms=config.number("log.cleaner.backoff.ms"),
        enable=config.flag("log.cleaner.enable"),
    )
