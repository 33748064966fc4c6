"""What goes wrong in the data source, in words that name the option and the fix.

Spark shows a Python error by its class and its message, so both are made for the one who wrote the query. Errors of the broker stay what
the client raises (`barnabas.client.errors`), unless something better can be said.
"""

from __future__ import annotations


class DataSourceError(Exception):
    """Any error of this data source."""


class OptionError(DataSourceError, ValueError):
    """An option is wrong, missing, unknown, or does not go with another: `option` is its name."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(option, message)
        self.option = option
        self.message = message

    def __str__(self) -> str:
        return f"Option '{self.option}': {self.message}"


class SchemaError(DataSourceError, ValueError):
    """Columns that were asked for, or are to be written, do not fit."""


class UnknownTopicError(DataSourceError):
    """A topic or a partition that was named is not there."""


class DataLossError(DataSourceError):
    """Records that were to be read are gone, or may be; raised unless failOnDataLoss is false."""


class TopicRecreatedError(DataLossError):
    """The topic that a query has read from was deleted, and another one has its name now."""


class ClusterError(DataSourceError):
    """The cluster does not answer, or not in time."""


class CheckpointError(DataSourceError):
    """The checkpoint holds no offsets of this source, or those of another query."""
