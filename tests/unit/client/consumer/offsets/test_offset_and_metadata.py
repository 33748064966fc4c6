from __future__ import annotations

import pytest

from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata, whole_offsets
from barnabas.client.errors import IllegalArgument
from barnabas.topic_partition import TopicPartition

TP = TopicPartition("t", 0)


def test_a_number_alone_is_an_offset() -> None:
    assert whole_offsets({TP: 5}) == whole_offsets({TP: OffsetAndMetadata(5)}) == {TP: OffsetAndMetadata(5)}


@pytest.mark.parametrize("offset", ["5", None, (5, "m")])
def test_what_is_no_offset_is_told_with_its_partition(offset: object) -> None:
    with pytest.raises(IllegalArgument, match="The offset of t-0 must be a number or an OffsetAndMetadata"):
        whole_offsets({TP: offset})  # type: ignore[dict-item]


def test_an_offset_below_zero_is_refused() -> None:
    with pytest.raises(IllegalArgument, match="Invalid negative offset"):
        whole_offsets({TP: -1})
