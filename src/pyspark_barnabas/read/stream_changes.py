"""Changes of topics during a stream: their texts, and whether they end the query.

With failOnDataLoss each change is an error, because records may have been missed; without it each is logged once as a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from pyspark_barnabas.errors import CheckpointError, DataLossError, DataSourceError, TopicRecreatedError, UnknownTopicError
from pyspark_barnabas.subscription import no_topic

if TYPE_CHECKING:
    from barnabas.topic_partition import TopicPartition
    from pyspark_barnabas.read.filters import RowFilter
    from pyspark_barnabas.subscription import Subscription

_log = logging.getLogger(__name__)
_REMEMBERED_MAX: Final = 1000
_GO_ON: Final = "To go on with what there is, set the option 'failOnDataLoss' to 'false'."


class Losses:
    """Raises an error for a loss, or logs a warning."""

    def __init__(self, fails: bool) -> None:
        self._fails = fails
        self._logged: set[str] = set()

    def report(self, losses: Iterable[DataSourceError]) -> None:
        for loss in losses:
            if self._fails:
                raise loss
            if str(loss) not in self._logged:
                if len(self._logged) == _REMEMBERED_MAX:
                    self._logged.clear()
                self._logged.add(str(loss))
                _log.warning("%s", loss)


def not_there(names: Sequence[str], option: str, servers: str) -> DataSourceError:
    return UnknownTopicError(f"{no_topic(option, names, servers)}. {_GO_ON}")


def recreated(topic: str) -> DataSourceError:
    return TopicRecreatedError(
        f"Topic {topic} was deleted and created again under the query: it has another id. The offsets of the old topic mean nothing in the "
        "new one. Start a query with a new 'checkpointLocation', or, to read the new topic from its beginning with this one, set the "
        "option 'failOnDataLoss' to 'false'."
    )


def gone(partitions: Sequence[TopicPartition], subscription: Subscription, record_filter: RowFilter) -> list[DataSourceError]:
    """Reports partitions that the stream has read and that are deleted, or no longer part of the subscription."""
    losses: list[DataSourceError] = []
    asked_for = [one for one in partitions if subscription.includes(one) and record_filter.wants(*one)]
    if others := [one for one in partitions if one not in asked_for]:
        losses.append(
            CheckpointError(
                f"The checkpoint has offsets of {_listed(others)}, which this query does not read ({subscription}): it is of another "
                f"query, or the options were changed. Use a 'checkpointLocation' of its own, or the options as they were. {_GO_ON}"
            )
        )
    if asked_for:
        losses.append(DataLossError(f"{_listed(asked_for)} is gone: the topic was deleted. Some data may have been missed. {_GO_ON}"))
    return losses


def receded(partition: TopicPartition, before: int, now: int) -> DataSourceError:
    return DataLossError(
        f"The end of {partition} went back from offset {before} to {now}: the log was cut, or replaced. Some data may have been missed, or "
        f"will come twice. {_GO_ON}"
    )


def added_too_late(partition: TopicPartition, first: int) -> DataSourceError:
    return DataLossError(f"The new partition {partition} starts at offset {first} and not at 0. Some data may have been missed. {_GO_ON}")


def replay_impossible(partition: TopicPartition, what: str) -> DataSourceError:
    return DataLossError(f"A batch was planned with {partition}, but that {what}. Some data may have been missed. {_GO_ON}")


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
