# Compiled by mypyc: src/compiled.toml lists this module.
"""The result of an append that was refused: its error as the producer receives it, in the counters, and in the log."""

from __future__ import annotations

import logging
from typing import Final

from barnabas.broker.metrics.topic_metrics import TopicMetrics
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.errors import (
    CorruptRecord,
    InvalidMagic,
    InvalidOffsetOrSequence,
    InvalidProducerEpoch,
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    RecordBatchTooLarge,
    RecordTooLarge,
    RejectedRecords,
    UnknownTopicOrPartition,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

_log: Final = logging.getLogger(__name__)

_UNKNOWN_SERVER_ERROR: Final = int(ErrorCode.UNKNOWN_SERVER_ERROR)

# Common errors of producers, which Kafka answers without a message and does not log.
_COMMON_ERRORS: Final = (
    UnknownTopicOrPartition,
    NotLeaderOrFollower,
    RecordTooLarge,
    RecordBatchTooLarge,
    CorruptRecord,
    KafkaStorageError,
)


def refused_append(partition: TopicPartition, error: Exception, size: int, metrics: TopicMetrics, log_start_offset: int) -> PartitionAppend:
    """The result of an entry of `size` bytes. `metrics` are those of its topic; `log_start_offset` is -1 if the replica is not here."""
    metrics.total_produces += 1
    _count_records(metrics, error, size)
    if isinstance(error, (*_COMMON_ERRORS, InvalidTopic)):
        assert isinstance(error, KafkaError)
        return PartitionAppend(partition, error.code)
    metrics.failed_produces += 1
    if not isinstance(error, KafkaError):
        _log.error("Error processing append operation on partition %s", partition, exc_info=error)
        return PartitionAppend(partition, _UNKNOWN_SERVER_ERROR, log_start_offset=log_start_offset)
    level = logging.INFO if isinstance(error, InvalidProducerEpoch) else logging.ERROR
    _log.log(level, "Error processing append operation on partition %s: %s", partition, error)
    refused = PartitionAppend(partition, error.code, log_start_offset=log_start_offset)
    if isinstance(error, RejectedRecords) and error.record_errors:
        refused.record_errors = error.record_errors
        refused.error_message = str(error)
    return refused


def _count_records(metrics: TopicMetrics, error: Exception, size: int) -> None:
    """Counts the entry by what was wrong with its records."""
    if isinstance(error, RecordTooLarge):
        metrics.bytes_rejected += size
    elif isinstance(error, CorruptRecord):
        metrics.invalid_crc_records += 1
    elif isinstance(error, RejectedRecords):
        metrics.no_key_records += error.without_key
        if isinstance(error, InvalidOffsetOrSequence):
            metrics.invalid_sequence_records += 1
        elif isinstance(error, InvalidMagic):
            metrics.invalid_magic_records += 1
