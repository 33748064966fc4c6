"""The errors of the data source; their texts name the option and the fix.

Spark shows the class and the message of a Python error, so both are written for the author of the query. Errors of the broker stay those of
the client (`barnabas.client.errors`), unless a better text is possible.
"""

from __future__ import annotations


class DataSourceError(Exception):
    """Any error of this data source."""


class OptionError(DataSourceError, ValueError):
    """An option is wrong, missing, unknown, or conflicts with another: `option` is its name."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(option, message)
        self.option = option
        self.message = message

    def __str__(self) -> str:
        return f"Option '{self.option}': {self.message}"


class SchemaError(DataSourceError, ValueError):
    """The requested or written columns do not match those of the source or sink."""


class UnknownTopicError(DataSourceError):
    """A topic or a partition of the options does not exist."""


class DataLossError(DataSourceError):
    """Records of the query are lost, or may be; raised unless failOnDataLoss is false."""


class TopicRecreatedError(DataLossError):
    """The topic of a query was deleted and created again."""


class ClusterError(DataSourceError):
    """The cluster does not answer in time."""


class CheckpointError(DataSourceError):
    """The checkpoint has no offsets of this source, or those of another query."""
