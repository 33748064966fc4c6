"""The table of Spark options, which the documentation site shows, is the list of options that the source and the sink take."""

from __future__ import annotations

import pytest

from pyspark_barnabas import values
from pyspark_barnabas.option_table import LOG_DIRS, READING, VALUES, WRITING, Option, options_for
from pyspark_barnabas.read.read_options import KNOWN as READ
from pyspark_barnabas.read.read_options import MAX_DELAY_MS_DEFAULT, POLL_TIMEOUT_MS_DEFAULT, ReadOptions
from pyspark_barnabas.segments.segment_options import BYTES_PER_TASK_DEFAULT
from pyspark_barnabas.segments.segment_options import KNOWN as SEGMENTS
from pyspark_barnabas.values.settings import CORRUPT, SAMPLE_RECORDS
from pyspark_barnabas.write.write_options import DECISION_TOPIC_DEFAULT, VERIFY_ROWS
from pyspark_barnabas.write.write_options import KNOWN as WRITE

ALL = [option for use in (READING, WRITING, LOG_DIRS, VALUES) for option in options_for(use)]


def names(use: str, *, kafka: bool = False) -> set[str]:
    return {option.name for option in options_for(use) if kafka or not option.name.startswith("kafka.")}


def test_every_option_of_reading_is_in_the_table() -> None:
    assert names(READING) == set(READ)


def test_every_option_of_writing_is_in_the_table() -> None:
    assert names(WRITING) == set(WRITE)


def test_every_option_of_log_directories_is_in_the_table() -> None:
    assert names(LOG_DIRS) | names(VALUES) == set(SEGMENTS)


def test_every_option_of_values_is_in_the_table() -> None:
    assert names(VALUES) == set(values.OPTIONS)


@pytest.mark.parametrize("option", ALL, ids=lambda option: f"{option.name}-{option.uses[0]}")
def test_an_option_says_its_type_and_what_it_does(option: Option) -> None:
    assert option.type
    assert option.doc.endswith(".")


def test_the_defaults_in_the_table_are_those_of_the_source() -> None:
    defaults = {option.name: option.default for option in ALL}
    options = ReadOptions.of({"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"})
    assert defaults["maxTriggerDelay"] == f"{MAX_DELAY_MS_DEFAULT // 60_000}m"
    assert defaults["kafkaConsumer.pollTimeoutMs"] == str(POLL_TIMEOUT_MS_DEFAULT)
    assert defaults["fetchOffset.numRetries"] == str(options.attempts)
    assert defaults["fetchOffset.retryIntervalMs"] == str(options.retry_interval_ms)
    assert defaults["failOnDataLoss"] == str(options.fail_on_data_loss).lower()
    assert defaults["maxBytesPerPartition"] == str(BYTES_PER_TASK_DEFAULT)
    assert defaults["decisionTopic"] == DECISION_TOPIC_DEFAULT
    assert defaults["verifyReplays"] == VERIFY_ROWS
    assert defaults["value.columnNameOfCorruptRecord"] == CORRUPT
    assert defaults["value.sampleRecords"] == str(SAMPLE_RECORDS)
