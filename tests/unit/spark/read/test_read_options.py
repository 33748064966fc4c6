"""The options of reading as a whole: what goes together, what does not, and what the schema follows."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.errors import OptionError, SchemaError, UnknownTopicError
from pyspark_barnabas.offsets import EARLIEST, LATEST
from pyspark_barnabas.read.read_options import KNOWN, ReadOptions
from pyspark_barnabas.schema import record_schema, wanted_columns
from pyspark_barnabas.subscription import Subscription, Topic, parse_subscription

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a, b,"}


def of(streaming: bool | None = None, /, **options: str) -> ReadOptions:
    return ReadOptions.of({**BASE, **options}, streaming=streaming)


def test_little_is_needed() -> None:
    options = of()
    assert options.subscription == Subscription(topics=frozenset({"a", "b"}))
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.group_id is None


def test_aborted_records_are_left_out_unless_wanted() -> None:
    assert of().settings["isolation.level"] == "read_committed"
    assert of(**{"kafka.isolation.level": "READ_UNCOMMITTED"}).settings["isolation.level"] == "read_uncommitted"


def test_batches_begin_at_the_earliest_and_streams_at_the_latest_offset() -> None:
    assert of(False).starting.everywhere == EARLIEST
    assert of(False).ending.everywhere == LATEST
    assert of(True).starting.everywhere == LATEST


@pytest.mark.parametrize("value", ["latest", '{"a":{"0":-1}}'])
def test_a_batch_cannot_begin_at_the_end(value: str) -> None:
    with pytest.raises(OptionError, match="Option 'startingOffsets': a batch cannot start at the latest offset"):
        of(False, startingOffsets=value)
    of(True, startingOffsets=value)


@pytest.mark.parametrize("value", ["earliest", '{"a":{"0":-2}}'])
def test_a_batch_cannot_end_at_the_beginning(value: str) -> None:
    with pytest.raises(OptionError, match="Option 'endingOffsets': a batch cannot end at the earliest offset"):
        of(False, endingOffsets=value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionError, match=f"Option '{name}': is for batches"):
        of(True, **{name: "latest"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("startingOffsets", "first"),
        ("startingOffsets", '{"a":{"0":"5"}}'),
        ("startingOffsets", '{"a":{"0":-3}}'),
        ("startingOffsets", '{"a":[0]}'),
        ("startingOffsets", '{"a":{"x":1}}'),
        ("startingOffsets", "{}"),
        ("startingTimestamp", "yesterday"),
        ("startingTimestamp", "9" * 19),
        ("startingOffsetsByTimestamp", '{"a":{"0":-1}}'),
        ("startingOffsetsByTimestampStrategy", "guess"),
        ("minPartitions", "0"),
        ("maxRecordsPerPartition", "-5"),
        ("maxOffsetsPerTrigger", "many"),
        ("maxTriggerDelay", "later"),
        ("failOnDataLoss", "maybe"),
        ("includeHeaders", "yes"),
        ("filter", "value = 5"),
        ("kafka.isolation.level", "read_everything"),
        ("path", "topic"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_option(name: str, value: str) -> None:
    with pytest.raises(OptionError) as caught:
        of(**{name: value})
    assert caught.value.option == name.removeprefix("kafka.") or caught.value.option == name


def test_the_least_of_a_trigger_is_not_more_than_the_most() -> None:
    with pytest.raises(OptionError, match="Option 'minOffsetsPerTrigger'"):
        of(minOffsetsPerTrigger="10", maxOffsetsPerTrigger="9")


def test_times_come_before_offsets_as_in_spark() -> None:
    bound = of(startingOffsets="earliest", startingTimestamp="5", startingOffsetsByTimestamp='{"a":{"0":1}}').starting
    assert (bound.option, bound.timestamp) == ("startingTimestamp", 5)


def test_offsets_of_start_and_end_are_compared_before_anything_is_asked() -> None:
    with pytest.raises(OptionError, match="3 of a-0 is before 5 of 'startingOffsets'"):
        of(False, startingOffsets='{"a":{"0":5}}', endingOffsets='{"a":{"0":3}}')
    with pytest.raises(OptionError, match="must name the same partitions"):
        of(False, startingOffsets='{"a":{"0":5}}', endingOffsets='{"a":{"1":7}}')


def test_progress_goes_to_the_group_that_is_named_or_to_one_of_the_prefix() -> None:
    assert of(**{"kafka.group.id": "g", "groupIdPrefix": "p"}).group_id == "g"
    first, again = of(groupIdPrefix="p").group_id, of(groupIdPrefix="p").group_id
    assert first == again
    assert first is not None
    assert first.startswith("p-")
    assert of(groupIdPrefix="p", subscribe="other").group_id != first
    assert of(commitOffsets="false", **{"kafka.group.id": "g"}).group_id is None


def test_every_option_is_documented() -> None:
    page = (Path(__file__).parents[4] / "docs" / "spark" / "reading.md").read_text()
    assert [option for option in KNOWN if f"`{option}`" not in page] == []


def test_options_can_be_pickled() -> None:
    options = of(startingOffsets='{"a":{"0":5}}', filter="partition = 1")
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of the options subscribe, subscribePattern, assign must be set"),
        ({"subscribe": "a", "subscribePattern": "b"}, "only one of the options subscribe, subscribePattern can be set"),
        ({"subscribe": " , "}, "names no topic"),
        ({"subscribePattern": ""}, "is empty"),
        ({"subscribePattern": "a("}, "is no regular expression"),
        ({"assign": "a"}, "must be JSON such as"),
        ({"assign": "{}"}, "names no partition"),
        ({"assign": '{"a":[-1]}'}, "must be JSON such as"),
        ({"assign": '{"a":0}'}, "must be JSON such as"),
    ],
)
def test_what_to_read_must_be_said_once_and_right(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_subscription(options)


def test_a_pattern_matches_anywhere_in_a_name() -> None:
    subscription = parse_subscription({"subscribePattern": "ord"})
    assert subscription.chosen(["orders", "reorder", "other"]) == ["orders", "reorder"]
    assert not parse_subscription({"subscribePattern": "^ord"}).includes(TopicPartition("reorder", 0))


def test_named_topics_and_partitions_must_be_there() -> None:
    topics = {"a": Topic("a", None, frozenset({0, 1}))}
    with pytest.raises(UnknownTopicError) as missing:
        parse_subscription({"subscribe": "a,b"}).check(topics, "h:1")
    assert str(missing.value) == (
        "Option 'subscribe': there is no topic b on the cluster at h:1. Create it (barnabas topics --bootstrap-server h:1 --create "
        "--topic b), or correct the name; topics that come later are found by 'subscribePattern'."
    )
    with pytest.raises(UnknownTopicError, match="Option 'assign': there is no partition a-2; topic a has 2 partitions"):
        parse_subscription({"assign": '{"a":[1,2]}'}).check(topics, "h:1")
    assert parse_subscription({"assign": '{"a":[1]}'}).partitions(topics.values()) == [TopicPartition("a", 1)]


def test_some_columns_may_be_chosen_but_not_changed() -> None:
    full = record_schema(include_headers=False)
    assert wanted_columns(StructType([full["offset"], full["key"]]), full) == ["offset", "key"]
    with pytest.raises(SchemaError, match=r"There is no column 'headers'.*includeHeaders"):
        wanted_columns(StructType([StructField("headers", BinaryType())]), full)
    with pytest.raises(SchemaError, match="The column 'key' is of type binary, not string"):
        wanted_columns(StructType([StructField("key", StringType())]), full)


def test_decoded_columns_stand_for_the_value_and_clash_with_nothing() -> None:
    decoded = StructType([StructField("id", LongType()), StructField("name", StringType())])
    assert record_schema(True, decoded).names == [
        "key",
        "id",
        "name",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "headers",
    ]
    with pytest.raises(SchemaError, match=r"same name as the record: offset.*value\.flatten"):
        record_schema(False, StructType([StructField("Offset", LongType())]))
