"""The errors of reading; their texts name the records and the option that decides.

The readers of topics and of log directories raise them; Spark shows the text as the reason of a failed task. Each has one text as its only
argument, so that it can be pickled from a worker to the driver.
"""

from __future__ import annotations

from pyspark_barnabas.errors import DataLossError, DataSourceError, TopicRecreatedError


class TopicDeletedError(DataLossError):
    """The topic or the partition was deleted during the read."""


class FetchTimeoutError(DataSourceError):
    """No record arrived in time."""


class CorruptLogError(DataSourceError):
    """The bytes are not records, or their checksum is wrong."""


def offsets_lost(topic: str, partition: int, offset: int, end: int, earliest: int, latest: int) -> DataLossError:
    return DataLossError(
        f"Some data may have been lost: offsets {offset} to {end} of {topic}-{partition} were to be read, but the log has "
        f"{earliest} to {latest} only. They were deleted by retention, or the log was cut. To read what is left, set the option "
        "'failOnDataLoss' to 'false'."
    )


def topic_recreated(topic: str, planned_id: str, found_id: str) -> TopicRecreatedError:
    return TopicRecreatedError(
        f"Topic {topic} was deleted and created again while it was read: the query began with topic id {planned_id}, and it has "
        f"{found_id} now. Start a query with a new checkpoint to read the new topic."
    )


def topic_deleted(topic: str, partition: int) -> TopicDeletedError:
    return TopicDeletedError(
        f"Partition {partition} of topic {topic} was deleted while it was read. To go on without it, set the option 'failOnDataLoss' to "
        "'false'."
    )


def fetch_timeout(topic: str, partition: int, offset: int, timeout_ms: int, reason: Exception | None) -> FetchTimeoutError:
    because = f": {reason}" if reason is not None else "; there was no error, but the log shows nothing at that offset"
    return FetchTimeoutError(
        f"Cannot fetch offset {offset} of {topic}-{partition} within {timeout_ms} ms{because}. If brokers may be away for longer, raise "
        "the option 'kafkaConsumer.pollTimeoutMs'."
    )
