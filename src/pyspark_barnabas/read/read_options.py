"""The options of reading, validated together as far as possible without the cluster.

They are built from Spark's options in the driver and in the workers that plan; plain data, so that they can be pickled to the tasks.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.offsets import Bound, check_order, ending_bound, ending_options, starting_bound
from pyspark_barnabas.options import (
    FIRST_ANSWER_MS,
    PUBLISH,
    boolean,
    choice,
    client_settings,
    duration_ms,
    given,
    integer,
    refuse_unknown,
    text,
)
from pyspark_barnabas.read.filters import FILTER, RowFilter, parse_filter
from pyspark_barnabas.schema import record_schema
from pyspark_barnabas.subscription import STRATEGIES, Subscription, parse_subscription
from pyspark_barnabas.values import PREFIX as VALUE_PREFIX

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pyspark_barnabas.values.value_decoder import ValueDecoder

_log = logging.getLogger(__name__)

MIN_PARTITIONS: Final = "minPartitions"
MAX_RECORDS_PER_PARTITION: Final = "maxRecordsPerPartition"
MAX_OFFSETS: Final = "maxOffsetsPerTrigger"
MIN_OFFSETS: Final = "minOffsetsPerTrigger"
MAX_DELAY: Final = "maxTriggerDelay"
GROUP_ID: Final = "kafka.group.id"
GROUP_ID_PREFIX: Final = "groupIdPrefix"
COMMIT_OFFSETS: Final = "commitOffsets"
POLL_TIMEOUT: Final = "kafkaConsumer.pollTimeoutMs"
NUM_RETRIES: Final = "fetchOffset.numRetries"
POLL_TIMEOUT_MS_DEFAULT: Final = 120_000
MAX_DELAY_MS_DEFAULT: Final = 900_000

KNOWN: Final = (
    *STRATEGIES,
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    *ending_options(),
    MIN_PARTITIONS,
    MAX_RECORDS_PER_PARTITION,
    MAX_OFFSETS,
    MIN_OFFSETS,
    MAX_DELAY,
    "failOnDataLoss",
    "includeHeaders",
    GROUP_ID_PREFIX,
    COMMIT_OFFSETS,
    POLL_TIMEOUT,
    NUM_RETRIES,
    "fetchOffset.retryIntervalMs",
    FILTER,
    PUBLISH,
)
_OF_STREAMS: Final = (MAX_OFFSETS, MIN_OFFSETS, MAX_DELAY)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """`settings` are those of the clients, by Kafka's names; `source` has all options, for the decoders of values."""

    settings: Mapping[str, str]
    subscription: Subscription
    starting: Bound
    ending: Bound
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = MAX_DELAY_MS_DEFAULT
    fail_on_data_loss: bool = True
    include_headers: bool = False
    group_id: str | None = None
    poll_timeout_ms: int = POLL_TIMEOUT_MS_DEFAULT
    attempts: int = 3
    first_answer_ms: int | None = FIRST_ANSWER_MS
    retry_interval_ms: int = 1000
    record_filter: RowFilter = field(default_factory=RowFilter)
    publish: bool = False
    source: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, str], *, streaming: bool | None = None) -> ReadOptions:
        """The validated options; raises OptionError. `is_stream` is None when Spark only requests the schema."""
        refuse_unknown({name: "" for name in options if not name.lower().startswith(VALUE_PREFIX)}, KNOWN, "reading")
        if given(options, "path"):
            raise OptionError("path", f"has no meaning for topics; name them by one of the options {', '.join(STRATEGIES)}.")
        if streaming:
            _refuse_ends(options)
        settings = client_settings(options)
        settings["isolation.level"] = choice(settings, "isolation.level", "read_committed", ("read_committed", "read_uncommitted"))
        # Options that are invalid only in a stream or only in a batch are checked once it is known which of them it is.
        starting = starting_bound(options, streaming=streaming is not False)
        ending = ending_bound(options)
        if streaming is False:
            check_order(starting, ending)
            _warn_of_stream_options(options)
        least, most = integer(options, MIN_OFFSETS), integer(options, MAX_OFFSETS)
        if least is not None and most is not None and least > most:
            raise OptionError(MIN_OFFSETS, f"({least}) must not be higher than '{MAX_OFFSETS}' ({most}).")
        subscription = parse_subscription(options)
        publishes = boolean(options, PUBLISH, True)
        return cls(
            settings=settings,
            subscription=subscription,
            starting=starting,
            ending=ending,
            min_partitions=integer(options, MIN_PARTITIONS, most=2**31 - 1),
            max_records_per_partition=integer(options, MAX_RECORDS_PER_PARTITION),
            max_offsets_per_trigger=most,
            min_offsets_per_trigger=least,
            max_trigger_delay_ms=duration_ms(options, MAX_DELAY, MAX_DELAY_MS_DEFAULT),
            fail_on_data_loss=boolean(options, "failOnDataLoss", True),
            include_headers=boolean(options, "includeHeaders", False),
            group_id=_group_id(options, subscription),
            poll_timeout_ms=integer(options, POLL_TIMEOUT, POLL_TIMEOUT_MS_DEFAULT) or POLL_TIMEOUT_MS_DEFAULT,
            attempts=integer(options, NUM_RETRIES, 3) or 3,
            first_answer_ms=FIRST_ANSWER_MS if given(options, NUM_RETRIES) is None else None,
            retry_interval_ms=integer(options, "fetchOffset.retryIntervalMs", 1000, least=0) or 0,
            record_filter=parse_filter(given(options, FILTER)),
            publish=publishes and streaming is True and not subscription.reads_queries,
            source=options,
        )

    def decoder(self, schema: StructType | None = None) -> ValueDecoder | None:
        """The decoder of values, or None for raw values; `schema` is that of the query if it is known already."""
        from pyspark_barnabas import values

        return values.decoder(self.source, schema)

    @property
    def servers(self) -> str:
        return self.settings["bootstrap.servers"]

    def description(self) -> str:
        """The topics and the cluster, for a query's progress."""
        return f"barnabas: {self.subscription} at {self.servers}"

    def schema(self) -> StructType:
        """All columns of the source."""
        decoder = self.decoder()
        return record_schema(self.include_headers, None if decoder is None else decoder.schema())


def _refuse_ends(options: Mapping[str, str]) -> None:
    for name in ending_options():
        if given(options, name) is not None:
            raise OptionError(name, "is for batches: a stream has no end. Use spark.read, or Trigger.AvailableNow to read what is there.")


def _warn_of_stream_options(options: Mapping[str, str]) -> None:
    if names := [name for name in _OF_STREAMS if given(options, name) is not None]:
        _log.warning("Options of streams have no meaning in a batch: %s", ", ".join(names))


def _group_id(options: Mapping[str, str], subscription: Subscription) -> str | None:
    """The group to which progress is committed: kafka.group.id, or one with the prefix that is the same after a restart."""
    if not boolean(options, COMMIT_OFFSETS, True):
        return None
    if given(options, GROUP_ID) is not None:
        return text(options, GROUP_ID, "")
    if given(options, GROUP_ID_PREFIX) is None:
        return None
    digest = hashlib.sha256(str(subscription).encode()).hexdigest()[:12]
    return f"{text(options, GROUP_ID_PREFIX, '')}-{digest}"
