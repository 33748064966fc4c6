"""What can stop an exactly-once query. None of these loses or doubles a row: the batch is run again, or a person has to look."""

from __future__ import annotations

from pyspark_barnabas.errors import DataSourceError


class ExactlyOnceError(DataSourceError):
    """Any error of the exactly-once writer."""


class SupersededError(ExactlyOnceError):
    """Another run of the query has taken over: a second driver, or Spark has given up this run."""


class NotDecidedError(ExactlyOnceError):
    """The batch was written but could not be committed; nothing of it is visible, and it can be run again."""


class ReplayMismatchError(ExactlyOnceError):
    """A batch that was committed before comes again with other rows: the checkpoint was rolled back, or the query is not repeatable."""


class LostTransactionError(ExactlyOnceError):
    """A transaction that was decided cannot be committed any more: somebody outside aborted it, or it timed out while brokers were away."""
