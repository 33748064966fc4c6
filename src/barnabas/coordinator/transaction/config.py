"""The settings of the transaction coordinator, with Kafka's names and defaults; names that begin with `barnabas` are our own.

The broker makes one from its configuration, which has already checked the bounds. The coordinator never changes it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from barnabas.coordinator.parsed_config import ParsedConfig


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    transaction_max_timeout_ms: int = 900_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_state_log_load_buffer_size: int = 5_242_880
    transaction_state_log_min_isr: int = 2
    transaction_state_log_num_partitions: int = 50
    transaction_state_log_replication_factor: int = 3
    transaction_state_log_segment_bytes: int = 104_857_600
    transaction_two_phase_commit_enable: bool = False
    transactional_id_expiration_ms: int = 604_800_000
    barnabas_transactional_ids_max_bytes: int = 134_217_728
    add_partitions_to_txn_retry_backoff_max_ms: int = 100  # how long EndTxn waits for the markers before it responds
    request_timeout_ms: int = 30_000  # how long a write may wait for its replicas

    @classmethod
    def of(cls, config: ParsedConfig) -> TransactionConfig:
        """From a broker's parsed configuration; a setting that it lacks keeps its default."""
        values: dict[str, Any] = {}
        for name in cls.__dataclass_fields__:
            with suppress(KeyError):
                values[name] = config[name.replace("_", ".")]
        return cls(**values)
