"""The offsets of a query: start and end from its options, and the progress of a stream from its checkpoint.

The JSON of a stream's offset is that of Spark's own connector, `{"topic":{"0":23}}`, plus the ids of the topics under a name that no topic
can have: they show that a topic was deleted and created again. This module sends no request.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.errors import CheckpointError, DataLossError, OptionError
from pyspark_barnabas.options import choice, given, json_object

_log = logging.getLogger(__name__)

LATEST: Final = -1
EARLIEST: Final = -2
PartitionOffsets = dict[TopicPartition, int]

TOPIC_IDS: Final = "#topicIds"
METRICS: Final = "#metrics"
SOURCE: Final = "#source"
STRATEGY: Final = "startingOffsetsByTimestampStrategy"
_LONG_MAX: Final = 2**63 - 1
_OFFSETS_EXAMPLE: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMES_EXAMPLE: Final = '{"topicA":{"0":1700000000000,"1":1700000000000}}'


@dataclass(frozen=True, slots=True)
class Bound:
    """The start or end of a query. One of three: the same special offset for all partitions (`everywhere`), an offset for each partition
    (`offsets`, with -1 and -2 for latest and earliest), a time for all or for each (`timestamp`, `timestamps`)."""

    option: str
    everywhere: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None
    timestamp: int | None = None
    timestamps: Mapping[TopicPartition, int] | None = None
    latest_without_match: bool = True  # for a time after the last record: the end of the partition, or an error

    def specs(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The ListOffsets timestamps to request: a time, LATEST or EARLIEST. Partitions with an explicit offset are left out."""
        specs: dict[TopicPartition, int] = {}
        for partition in partitions:
            if self.everywhere is not None:
                specs[partition] = self.everywhere
            elif self.offsets is not None:
                if self.offsets[partition] < 0:
                    specs[partition] = self.offsets[partition]
            else:
                specs[partition] = self.timestamp if self.timestamps is None else self.timestamps[partition]  # type: ignore[assignment]
        return specs

    def check(self, partitions: Iterable[TopicPartition]) -> None:
        """Raises an error unless the partitions of the option are exactly those that are read."""
        named = self.offsets if self.offsets is not None else self.timestamps
        if named is None:
            return
        expected = set(partitions)
        if missing := sorted(expected - named.keys()):
            hint = "" if self.offsets is None else " Use -1 for latest, -2 for earliest."
            raise OptionError(self.option, f"must name all partitions that are read, but {_listed(missing)} is missing.{hint}")
        if extra := sorted(named.keys() - expected):
            raise OptionError(self.option, f"names partitions that are not read, or do not exist: {_listed(extra)}.")

    def resolved(
        self,
        partitions: Iterable[TopicPartition],
        answers: Mapping[TopicPartition, int],
        latest: Mapping[TopicPartition, int],
    ) -> PartitionOffsets:
        """The offsets, from the response to `specs`; -1 there means that no record is as late as the time."""
        resolved: PartitionOffsets = {}
        for partition in partitions:
            offset = answers[partition] if partition in answers else self.offsets[partition]  # type: ignore[index]
            if offset < 0 and not self.latest_without_match:
                time = self.timestamp if self.timestamps is None else self.timestamps[partition]
                raise OptionError(
                    self.option,
                    f"{partition} has no record at or after {time}. To begin at its end, set the option '{STRATEGY}' to 'latest'.",
                )
            resolved[partition] = latest[partition] if offset < 0 else offset
        return resolved

    def kept(
        self, offsets: PartitionOffsets, earliest: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], *, fails: bool
    ) -> PartitionOffsets:
        """The offsets if the log has them; otherwise an error, or the nearest offsets of the log."""
        kept: PartitionOffsets = {}
        for partition, offset in offsets.items():
            kept[partition] = min(max(offset, earliest[partition]), latest[partition])
            if kept[partition] == offset:
                continue
            has = f"the log has {earliest[partition]} to {latest[partition]}"
            message = f"Option '{self.option}': offset {offset} of {partition} is out of range, {has}."
            if fails:
                raise DataLossError(f"{message} To read what there is, set the option 'failOnDataLoss' to 'false'.")
            _log.warning("%s Offset %d is taken instead.", message, kept[partition])
        return kept


def starting_bound(options: Mapping[str, str], *, streaming: bool) -> Bound:
    """The default start is the latest offset for streams and the earliest for batches; a batch cannot start at the latest."""
    strategy = choice(options, STRATEGY, "error", ("error", "latest"))
    bound = _bound(options, "starting", LATEST if streaming else EARLIEST, latest_without_match=strategy == "latest")
    if not streaming and (bound.everywhere == LATEST or LATEST in (bound.offsets or {}).values()):
        raise OptionError(bound.option, "a batch cannot start at the latest offset: it would always be empty.")
    return bound


def ending_bound(options: Mapping[str, str]) -> Bound:
    """The end of a batch; the default is the latest offset."""
    bound = _bound(options, "ending", LATEST, latest_without_match=True)
    if bound.everywhere == EARLIEST or EARLIEST in (bound.offsets or {}).values():
        raise OptionError(bound.option, "a batch cannot end at the earliest offset: it would always be empty.")
    return bound


def check_order(start: Bound, end: Bound) -> None:
    """Validates start and end against each other, as far as possible without the cluster."""
    for from_, to in ((start.offsets, end.offsets), (start.timestamps, end.timestamps)):
        if from_ is None or to is None:
            continue
        if from_.keys() != to.keys():
            only = _listed(sorted(from_.keys() ^ to.keys()))
            raise OptionError(end.option, f"must name the same partitions as '{start.option}'; only in one of them: {only}.")
        for partition, first in from_.items():
            if first > to[partition] >= 0:
                raise OptionError(end.option, f"{to[partition]} of {partition} is before {first} of '{start.option}'.")


def ending_options() -> tuple[str, ...]:
    return ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")


def _bound(options: Mapping[str, str], side: str, default: int, *, latest_without_match: bool) -> Bound:
    """If several options are set, the time for all has precedence over times per partition, and those over offsets, as in Spark."""
    name = f"{side}Timestamp"
    if (value := given(options, name)) is not None:
        if not value.isdecimal() or int(value) > _LONG_MAX:
            raise OptionError(name, f"must be a time in milliseconds since 1970, but it is '{value}'.")
        return Bound(name, timestamp=int(value), latest_without_match=latest_without_match)
    name = f"{side}OffsetsByTimestamp"
    if (value := given(options, name)) is not None:
        times = _per_partition(name, value, _TIMES_EXAMPLE, least=0)
        return Bound(name, timestamps=times, latest_without_match=latest_without_match)
    name = f"{side}Offsets"
    value = given(options, name)
    if value is None:
        return Bound(name, everywhere=default)
    if value.lower() in ("earliest", "latest"):
        return Bound(name, everywhere=EARLIEST if value.lower() == "earliest" else LATEST)
    if not value.startswith("{"):
        raise OptionError(name, f"must be 'earliest', 'latest' or JSON such as {_OFFSETS_EXAMPLE}, but it is '{value}'.")
    return Bound(name, offsets=_per_partition(name, value, _OFFSETS_EXAMPLE, least=EARLIEST))


def _per_partition(option: str, value: str, example: str, *, least: int) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for topic, numbers in json_object(option, value, example).items():
        if not isinstance(numbers, dict) or not numbers:
            raise OptionError(option, f"must be JSON such as {example}, but it is '{value}'.")
        for number, offset in numbers.items():
            if not number.isdecimal() or type(offset) is not int or not least <= offset <= _LONG_MAX:
                raise OptionError(option, f"must be JSON such as {example}, but it has {offset!r} for partition {number!r} of {topic}.")
            offsets[TopicPartition(topic, int(number))] = offset
    if not offsets:
        raise OptionError(option, f"names no partition; it is JSON such as {example}.")
    return offsets


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The progress of a stream: the next offset of each partition, and the ids of the topics."""

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The JSON that Spark writes to the checkpoint and shows in the query's progress."""
        document: dict[str, Any] = {}
        for partition in sorted(self.offsets):
            document.setdefault(partition.topic, {})[str(partition.partition)] = self.offsets[partition]
        if ids := {topic: self.topic_ids[topic] for topic in document if topic in self.topic_ids}:
            document[TOPIC_IDS] = ids
        return document

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> StreamOffset:
        """The offset from a checkpoint of ours or of Spark's own connector; otherwise raises CheckpointError."""
        ids = document.get(TOPIC_IDS, {})
        topics = {name: value for name, value in document.items() if not name.startswith("#")}
        if not _is_map(ids, str) or not all(_is_map(value, int) and all(map(str.isdecimal, value)) for value in topics.values()):
            raise CheckpointError(
                f"The checkpoint does not hold offsets of topics, but {dict(document)!r}: it belongs to another query. Set the option "
                "'checkpointLocation' of this one to a directory of its own."
            )
        offsets = {TopicPartition(topic, int(number)): offset for topic, value in topics.items() for number, offset in value.items()}
        return cls(offsets, dict(ids))

    def same_topic(self, other: StreamOffset, topic: str) -> bool:
        """Whether both have the same topic id for this name; True if one of them has none."""
        mine, its = self.topic_ids.get(topic), other.topic_ids.get(topic)
        return mine is None or its is None or mine == its


def _is_map(value: object, kind: type) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) and type(one) is kind for name, one in value.items())


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
