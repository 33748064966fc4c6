"""The errors of an exactly-once query. None of them loses or doubles a row: the batch is run again, or an operator must act."""

from __future__ import annotations

from pyspark_barnabas.errors import DataSourceError


class ExactlyOnceError(DataSourceError):
    """Any error of the exactly-once writer."""


class SupersededError(ExactlyOnceError):
    """Another run of the query has taken over: a second driver, or a retry after Spark gave up this run."""


class NotDecidedError(ExactlyOnceError):
    """The batch was written but could not be committed; nothing of it is visible, and it can be run again."""


class ReplayMismatchError(ExactlyOnceError):
    """Spark replays a committed batch with other rows: the checkpoint was rolled back, or the query is not deterministic."""


class LostTransactionError(ExactlyOnceError):
    """A decided transaction cannot be committed any more: another client aborted it, or it timed out while brokers were down."""
