"""Where queries begin and end, how a stream's offsets are written down, and how much a trigger reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.errors import CheckpointError, OptionError
from pyspark_barnabas.offsets import EARLIEST, LATEST, Bound, StreamOffset, starting_bound
from pyspark_barnabas.read.admission import MinimumRows, limited

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
OFFSETS = st.dictionaries(st.sampled_from([A0, A1, B0]), st.integers(0, 2**40))


def test_special_offsets_are_asked_for_and_others_taken() -> None:
    bound = starting_bound({"startingOffsets": '{"a":{"0":7,"1":-2},"b":{"0":-1}}'}, streaming=True)
    assert bound.specs([A0, A1, B0]) == {A1: EARLIEST, B0: LATEST}
    assert bound.resolved([A0, A1, B0], {A1: 3, B0: 9}, {}) == {A0: 7, A1: 3, B0: 9}


def test_all_partitions_and_no_others_are_to_be_named() -> None:
    bound = starting_bound({"startingOffsets": '{"a":{"0":7}}'}, streaming=True)
    with pytest.raises(OptionError, match=r"must name all partitions that are read, but a-1, b-0 is missing\. Use -1 for latest"):
        bound.check([A0, A1, B0])
    with pytest.raises(OptionError, match="names partitions that are not read, or do not exist: a-0"):
        bound.check([])
    bound.check([A0])


def test_a_time_without_a_record_is_an_error_or_the_end() -> None:
    options = {"startingTimestamp": "1000"}
    bound = starting_bound(options, streaming=False)
    assert bound.specs([A0]) == {A0: 1000}
    with pytest.raises(OptionError, match=r"a-0 has no record at or after 1000.*startingOffsetsByTimestampStrategy"):
        bound.resolved([A0], {A0: -1}, {A0: 5})
    lenient = starting_bound({**options, "startingOffsetsByTimestampStrategy": "latest"}, streaming=False)
    assert lenient.resolved([A0], {A0: -1}, {A0: 5}) == {A0: 5}


def test_each_partition_may_have_a_time_of_its_own() -> None:
    bound = starting_bound({"startingOffsetsByTimestamp": '{"a":{"0":1,"1":2}}'}, streaming=True)
    assert bound.specs([A0, A1]) == {A0: 1, A1: 2}
    assert Bound("x", everywhere=EARLIEST).specs([B0]) == {B0: EARLIEST}


def test_a_streams_offset_reads_as_that_of_sparks_connector() -> None:
    offset = StreamOffset({A1: 5, A0: 23, B0: 0})
    assert json.dumps(offset.to_json()) == '{"a": {"0": 23, "1": 5}, "b": {"0": 0}}'
    assert StreamOffset.of({"a": {"0": 23}}) == StreamOffset({A0: 23})


@given(OFFSETS, st.dictionaries(st.sampled_from(["a", "b"]), st.text(min_size=1)))
def test_a_streams_offset_survives_the_checkpoint(offsets: dict[TopicPartition, int], ids: dict[str, str]) -> None:
    known = {topic: topic_id for topic, topic_id in ids.items() if any(partition.topic == topic for partition in offsets)}
    assert StreamOffset.of(json.loads(json.dumps(StreamOffset(offsets, ids).to_json()))) == StreamOffset(offsets, known)


@pytest.mark.parametrize("document", [{"logOffset": 5}, {"a": {"x": 1}}, {"a": {"0": "5"}}, {"a": {"0": 1}, "#topicIds": []}])
def test_another_sources_checkpoint_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(CheckpointError, match=r"belongs to another query.*'checkpointLocation'"):
        StreamOffset.of(document)


def test_topics_are_told_apart_by_their_ids_where_both_are_known() -> None:
    old, new, unknown = StreamOffset({A0: 1}, {"a": "x"}), StreamOffset({A0: 1}, {"a": "y"}), StreamOffset({A0: 1})
    assert old.same_topic(old, "a")
    assert not old.same_topic(new, "a")
    assert unknown.same_topic(new, "a")


def test_the_limit_is_shared_by_what_each_partition_has() -> None:
    assert limited({A0: 0, A1: 0}, {A0: 300, A1: 100}, 40) == {A0: 30, A1: 10}


def test_a_small_partition_is_not_starved() -> None:
    assert limited({A0: 0, A1: 0}, {A0: 10_000, A1: 1}, 10) == {A0: 9, A1: 1}


def test_what_went_back_stays_as_it_is() -> None:
    assert limited({A0: 50, A1: 0}, {A0: 40, A1: 10}, 5) == {A0: 40, A1: 5}


@given(
    st.dictionaries(st.sampled_from([A0, A1, B0]), st.tuples(st.integers(0, 2**50), st.integers(0, 2**50)), min_size=1),
    st.integers(1, 2**50),
)
def test_a_limited_trigger_gets_on_and_reads_no_more_than_allowed(both: dict[TopicPartition, tuple[int, int]], rows_max: int) -> None:
    begin = {partition: start for partition, (start, _) in both.items()}
    latest = {partition: start + size for partition, (start, size) in both.items()}
    end = limited(begin, latest, rows_max)
    assert all(begin[partition] <= end[partition] <= latest[partition] for partition in both)
    read = sum(end[partition] - begin[partition] for partition in both)
    assert read <= rows_max + len(both)
    assert read > 0 or begin == latest


def test_a_trigger_waits_for_enough_but_not_for_ever() -> None:
    minimum = MinimumRows(10, 1000)
    assert not minimum.holds_back({A0: 0}, {A0: 1}, 0)  # the first
    assert minimum.holds_back({A0: 1}, {A0: 5}, 500)
    assert not minimum.holds_back({A0: 1}, {A0: 11}, 600)
    assert minimum.holds_back({A0: 11}, {A0: 12}, 1599)
    assert not minimum.holds_back({A0: 11}, {A0: 12}, 1600)
