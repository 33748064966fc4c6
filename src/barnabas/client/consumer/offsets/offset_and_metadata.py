"""A committed offset: the next offset to read, the leader epoch of the last record, and a text of the application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.client.errors import IllegalArgument
from barnabas.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """An offset to commit, the next one to be read, with a text and the leader epoch of the record before it.

        consumer.commit_sync({TopicPartition("orders", 0): OffsetAndMetadata(18, "nightly run")})

    The text is empty by default and at most offset.metadata.max.bytes long (4096 characters, a setting of the broker).
    """

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise IllegalArgument("Invalid negative offset")


GivenOffsets = Mapping[TopicPartition, OffsetAndMetadata | int]


def whole_offsets(offsets: GivenOffsets) -> dict[TopicPartition, OffsetAndMetadata]:
    """Converts a plain number to an offset without metadata; raises IllegalArgument for other values."""
    whole: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, offset in offsets.items():
        if isinstance(offset, int):
            offset = OffsetAndMetadata(offset)
        if not isinstance(offset, OffsetAndMetadata):
            raise IllegalArgument(f"The offset of {partition} must be a number or an OffsetAndMetadata, not {offset!r}")
        whole[partition] = offset
    return whole
