"""How a stream goes on from trigger to trigger, whatever happens to its topics meanwhile: on both brokers, without a Spark.

The calls are those that Spark makes, in its order: initialOffset, then latestOffset, partitions and commit for each batch.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Generator
from typing import Any, ClassVar

import pytest
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from pyspark.sql.types import StructType

from barnabas.client import Admin, NewPartitions, NewTopic, TopicPartition
from barnabas.client.admin import RecordsToDelete
from barnabas.errors import KafkaError
from pyspark_barnabas import DefaultSource
from pyspark_barnabas.errors import CheckpointError, DataLossError, DataSourceError, OptionError, TopicRecreatedError, UnknownTopicError
from pyspark_barnabas.read.read_options import ReadOptions
from pyspark_barnabas.read.stream_reader import OlderStreamReader
from pyspark_barnabas.schema import record_schema
from tests.broker import TopicMaker
from tests.spark.reader_world import FIRST_MS, fill, offsets_read, places, stream_reader

ALL = ReadAllAvailable()
DEADLINE_S = 60


class Query:
    """Calls a reader as Spark does, and remembers the offsets as a checkpoint does."""

    readers: ClassVar[list[DataSourceStreamReader]] = []

    def __init__(self, bootstrap: str, options: dict[str, Any], checkpoint: dict[str, Any] | None = None) -> None:
        self.reader: DataSourceStreamReader = stream_reader(bootstrap, {"startingOffsets": "earliest", **options})
        Query.readers.append(self.reader)
        self.position = checkpoint if checkpoint is not None else self.reader.initialOffset()

    def batch(self, limit: Any = ALL) -> list[tuple[int, int, int]]:
        start, self.position = self.position, self.reader.latestOffset(self.position, limit)
        return places(part.value for part in self.reader.partitions(start, self.position))

    def offsets(self) -> list[int]:
        (topic,) = (name for name in self.position if not name.startswith("#"))
        return list(self.position[topic].values())


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Any:
    with Admin(bootstrap_servers=bootstrap) as made:
        yield made


@pytest.fixture(autouse=True)
def stopped() -> Generator[None, None, None]:
    """No reader of a test is left running."""
    yield
    while Query.readers:
        Query.readers.pop().stop()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_gone(admin: Admin, topic: str) -> bool:
    return topic not in admin.list_topics()


def delete(admin: Admin, topic: str) -> None:
    admin.delete_topics([topic]).all()
    until(lambda: is_gone(admin, topic))


def create(admin: Admin, topic: str, partitions: int) -> None:
    def made() -> bool:
        try:
            admin.create_topics([NewTopic(topic, partitions, 1)]).all()
        except KafkaError:  # the old one is still being deleted
            return False
        return True

    until(made)
    until(lambda: not is_gone(admin, topic))


def test_batches_follow_each_other(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("follow", partitions=2)
    fill(bootstrap, topic, (3, 1))
    query = Query(bootstrap, {"subscribe": topic})
    assert query.batch() == [(0, 0, 3), (1, 0, 1)]
    assert query.batch() == []
    fill(bootstrap, topic, (0, 2), first=1)
    assert query.batch() == [(1, 1, 3)]
    assert query.offsets() == [3, 3]


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"startingOffsets": "latest"}, [4, 0]),
        ({"startingOffsets": '{"TOPIC":{"0":2,"1":-1}}'}, [2, 0]),
        ({"startingTimestamp": FIRST_MS + 500, "startingOffsetsByTimestampStrategy": "latest"}, [1, 0]),
        ({"startingOffsetsByTimestamp": f'{{"TOPIC":{{"0":{FIRST_MS},"1":5}}}}', "startingOffsetsByTimestampStrategy": "latest"}, [0, 0]),
        ({"filter": "partition = 0"}, [0]),
    ],
)
def test_a_new_query_begins_where_it_is_told(bootstrap: str, new_topic: TopicMaker, options: dict[str, Any], first: list[int]) -> None:
    topic = new_topic("begin", partitions=2)
    fill(bootstrap, topic, (4, 0))
    whole = {name: str(value).replace("TOPIC", topic) for name, value in options.items()}
    assert Query(bootstrap, {"subscribe": topic, **whole}).offsets() == first


def test_a_trigger_reads_no_more_than_it_may(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("limit", partitions=2)
    fill(bootstrap, topic, (30, 10))
    query = Query(bootstrap, {"subscribe": topic, "maxOffsetsPerTrigger": 20, "minPartitions": 3})
    limit = query.reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(20)
    assert query.batch(limit) == [(0, 0, 7), (0, 7, 15), (1, 0, 5)]
    assert query.batch(limit) == [(0, 15, 22), (0, 22, 30), (1, 5, 10)]
    assert query.batch(limit) == []


def test_a_trigger_waits_for_enough_records(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("least", partitions=1)
    fill(bootstrap, topic, (1,))
    query = Query(bootstrap, {"subscribe": topic, "minOffsetsPerTrigger": 5, "maxTriggerDelay": "1h"})
    limit = query.reader.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    assert query.batch(limit) == [(0, 0, 1)]  # the first trigger never waits
    fill(bootstrap, topic, (3,))
    assert query.batch(limit) == []
    assert query.batch(ALL) == [(0, 1, 4)]
    fill(bootstrap, topic, (6,))
    assert query.batch(limit) == [(0, 4, 10)]


def test_both_limits_hold_together(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("both", partitions=1)
    fill(bootstrap, topic, (9,))
    query = Query(bootstrap, {"subscribe": topic, "minOffsetsPerTrigger": 4, "maxOffsetsPerTrigger": 6})
    limit = query.reader.getDefaultReadLimit()
    assert query.batch(limit) == [(0, 0, 6)]
    assert query.batch(limit) == []  # three are too few


def test_what_is_available_now_is_settled_once(bootstrap: str, new_topic: TopicMaker, admin: Admin) -> None:
    topic = new_topic("now", partitions=1)
    fill(bootstrap, topic, (5,))
    query = Query(bootstrap, {"subscribe": topic, "maxOffsetsPerTrigger": 4, "minOffsetsPerTrigger": 3})
    query.reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
    fill(bootstrap, topic, (5,))
    admin.create_partitions({topic: NewPartitions(2)}).all()
    limit = query.reader.getDefaultReadLimit()
    assert query.batch(limit) == [(0, 0, 4)]
    assert query.batch(limit) == [(0, 4, 5)]  # however few are left: else it would never end
    assert query.batch(limit) == []


def test_new_partitions_are_read_from_their_beginning(bootstrap: str, new_topic: TopicMaker, admin: Admin) -> None:
    topic = new_topic("grow", partitions=1)
    fill(bootstrap, topic, (2,))
    query = Query(bootstrap, {"subscribe": topic, "startingOffsets": "latest"})
    assert query.batch() == []
    admin.create_partitions({topic: NewPartitions(2)}).all()
    until(lambda: len(admin.describe_topics([topic])[topic].partitions) == 2)
    fill(bootstrap, topic, (0, 3))
    until(lambda: query.batch() == [(1, 0, 3)])


def test_new_topics_of_a_pattern_are_read_from_their_beginning(bootstrap: str, new_topic: TopicMaker) -> None:
    first = new_topic("family", partitions=1)
    query = Query(bootstrap, {"subscribePattern": f"^{first}", "startingOffsets": "latest"})
    assert query.batch() == []
    second = new_topic(f"{first}-child", partitions=1)
    fill(bootstrap, second, (2,))
    until(lambda: query.batch() == [(0, 0, 2)])
    assert set(query.position) == {first, second, "#topicIds"}


def test_a_deleted_topic_ends_the_query_or_is_left_out(bootstrap: str, new_topic: TopicMaker, admin: Admin) -> None:
    topic, stays = new_topic("delete", partitions=1), new_topic("stay", partitions=1)
    fill(bootstrap, topic, (2,))
    strict = Query(bootstrap, {"subscribe": f"{topic},{stays}"})
    assert strict.batch() == [(0, 0, 2)]
    lenient = Query(bootstrap, {"subscribe": f"{topic},{stays}", "failOnDataLoss": "false"}, strict.position)
    delete(admin, topic)
    with pytest.raises(DataLossError, match=f"{topic}-0 is gone: the topic was deleted.*'failOnDataLoss'"):
        strict.batch()
    fill(bootstrap, stays, (1,))
    assert lenient.batch() == [(0, 0, 1)]
    assert lenient.batch() == []


@pytest.mark.parametrize("limit", [ALL, ReadMaxRows(100)])
def test_a_recreated_topic_is_another_topic(bootstrap: str, new_topic: TopicMaker, admin: Admin, limit: Any) -> None:
    topic = new_topic("again", partitions=1)
    fill(bootstrap, topic, (2,))
    strict = Query(bootstrap, {"subscribe": topic})
    assert strict.batch() == [(0, 0, 2)]
    lenient = Query(bootstrap, {"subscribe": topic, "failOnDataLoss": "false"}, strict.position)
    delete(admin, topic)
    create(admin, topic, 1)
    fill(bootstrap, topic, (5,))  # more than there were: by offsets alone nobody would notice
    with pytest.raises(TopicRecreatedError, match=f"Topic {topic} was deleted and created again"):
        strict.batch(limit)
    assert lenient.batch(limit) == [(0, 0, 5)]
    assert lenient.batch(limit) == []


def test_a_planned_batch_of_a_topic_that_is_gone_cannot_be_read_again(bootstrap: str, new_topic: TopicMaker, admin: Admin) -> None:
    topic = new_topic("replay", partitions=1)
    fill(bootstrap, topic, (2,))
    query = Query(bootstrap, {"subscribe": topic})
    start = query.position
    assert query.batch() == [(0, 0, 2)]
    assert places(p.value for p in Query(bootstrap, {"subscribe": topic}, start).reader.partitions(start, query.position)) == [(0, 0, 2)]
    delete(admin, topic)
    with pytest.raises(DataLossError, match=f"planned with {topic}-0, but that is gone"):
        Query(bootstrap, {"subscribe": topic}, start).reader.partitions(start, query.position)
    create(admin, topic, 1)
    with pytest.raises(DataLossError, match="is of another topic of the same name"):
        Query(bootstrap, {"subscribe": topic}, start).reader.partitions(start, query.position)
    lenient = Query(bootstrap, {"subscribe": topic, "failOnDataLoss": "false"}, start)
    assert lenient.reader.partitions(start, query.position) == []


def test_an_end_that_went_back_is_a_loss(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("back", partitions=1)
    fill(bootstrap, topic, (2,))
    ahead = {topic: {"0": 7}}
    with pytest.raises(DataLossError, match=f"The end of {topic}-0 went back from offset 7 to 2"):
        Query(bootstrap, {"subscribe": topic}, ahead).batch()
    lenient = Query(bootstrap, {"subscribe": topic, "failOnDataLoss": "false"}, ahead)
    assert lenient.batch() == []
    assert lenient.offsets() == [2]


def test_a_partition_that_lost_records_before_it_was_first_read_is_a_loss(bootstrap: str, new_topic: TopicMaker, admin: Admin) -> None:
    topic = new_topic("late", partitions=2)
    fill(bootstrap, topic, (1, 4))
    admin.delete_records({TopicPartition(topic, 1): RecordsToDelete(3)}).all()
    only_first = {topic: {"0": 0}}
    with pytest.raises(DataLossError, match=f"The new partition {topic}-1 starts at offset 3 and not at 0"):
        Query(bootstrap, {"subscribe": topic}, only_first).batch()
    assert Query(bootstrap, {"subscribe": topic, "failOnDataLoss": "false"}, only_first).batch() == [(0, 0, 1), (1, 3, 4)]


@pytest.mark.parametrize(
    ("checkpoint", "error", "message"),
    [
        ({"logOffset": 3}, CheckpointError, "belongs to another query"),
        ({"another-topic": {"0": 3}}, CheckpointError, "another-topic-0, which this query does not read"),
        ({"TOPIC": {"0": 0}, "#topicIds": {"TOPIC": "AAAAAAAAAAAAAAAAAAAAAQ"}}, TopicRecreatedError, "it has another id"),
    ],
)
def test_the_checkpoint_of_another_query_is_refused(
    bootstrap: str, new_topic: TopicMaker, checkpoint: dict[str, Any], error: type[DataSourceError], message: str
) -> None:
    topic = new_topic("foreign", partitions=1)
    renamed: dict[str, Any] = {
        name.replace("TOPIC", topic): {inner.replace("TOPIC", topic): held for inner, held in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in checkpoint.items()
    }
    with pytest.raises(error, match=message):
        Query(bootstrap, {"subscribe": topic}, renamed).batch()


def test_a_name_that_is_no_topic_ends_a_query_at_its_start_and_later(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("named", partitions=1)
    with pytest.raises(UnknownTopicError, match="Option 'subscribe': there is no topic no-such-topic"):
        Query(bootstrap, {"subscribe": f"{topic},no-such-topic"})
    with pytest.raises(UnknownTopicError, match="Option 'subscribe': there is no topic no-such-topic"):
        Query(bootstrap, {"subscribe": f"{topic},no-such-topic"}, {topic: {"0": 0}}).batch()


def test_offsets_to_start_from_must_be_there(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("range", partitions=1)
    fill(bootstrap, topic, (2,))
    options = {"subscribe": topic, "startingOffsets": f'{{"{topic}":{{"0":5}}}}'}
    with pytest.raises(DataLossError, match=f"Option 'startingOffsets': offset 5 of {topic}-0 is out of range, the log has 0 to 2"):
        Query(bootstrap, options)
    assert Query(bootstrap, {**options, "failOnDataLoss": "false"}).offsets() == [2]


def test_before_spark_4_2_a_reader_knows_itself_where_it_is(bootstrap: str, new_topic: TopicMaker, admin: Admin) -> None:
    topic = new_topic("older", partitions=1)
    fill(bootstrap, topic, (2,))
    settings = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest", "kafka.group.id": topic}

    def reader() -> OlderStreamReader:
        made = OlderStreamReader(ReadOptions.of(settings, streaming=True), record_schema(False))
        Query.readers.append(made)
        return made

    first = reader()
    start = first.initialOffset()
    end = first.latestOffset()
    assert places(part.value for part in first.partitions(start, end)) == [(0, 0, 2)]
    fill(bootstrap, topic, (1,))
    later = first.latestOffset()
    assert places(part.value for part in first.partitions(end, later)) == [(0, 2, 3)]
    first.stop()
    assert {offset.offset for offset in admin.list_consumer_group_offsets(topic)[topic].values() if offset} == {2}
    restarted = reader()
    assert restarted.latestOffset() == later
    with pytest.raises(TopicRecreatedError):
        restarted.partitions({**start, "#topicIds": {topic: "AAAAAAAAAAAAAAAAAAAAAQ"}}, later)
    with pytest.raises(OptionError, match=r"Option 'maxOffsetsPerTrigger': needs Spark 4\.2"):
        OlderStreamReader(ReadOptions.of({**settings, "maxOffsetsPerTrigger": "1"}, streaming=True), record_schema(False))


def test_directories_cannot_be_streamed() -> None:
    with pytest.raises(OptionError, match="Option 'logDirs': is for batches"):
        DefaultSource({"logDirs": "/somewhere"}).streamReader(StructType())


def test_finished_batches_are_committed_to_the_group_as_soon_as_the_next_is_asked_for(
    bootstrap: str, new_topic: TopicMaker, admin: Admin
) -> None:
    topic = new_topic("group", partitions=2)
    group = f"{topic}-readers"
    fill(bootstrap, topic, (4, 2))
    query = Query(bootstrap, {"subscribe": topic, "kafka.group.id": group, "maxOffsetsPerTrigger": 3})

    def committed() -> list[int]:
        offsets = admin.list_consumer_group_offsets(group)[group]
        return [offset.offset for _, offset in sorted(offsets.items()) if offset is not None]

    query.batch(ReadMaxRows(3))
    query.reader.stop()
    assert committed() == []  # the batch was only planned
    query.batch(ReadMaxRows(3))
    query.reader.stop()
    assert committed() == [2, 1]
    query.batch(ReadMaxRows(3))
    query.reader.commit(query.position)
    query.reader.stop()
    assert committed() == [4, 2]


def test_the_progress_of_a_query_shows_its_lag(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("lag", partitions=2)
    fill(bootstrap, topic, (8, 0))
    query = Query(bootstrap, {"subscribe": topic})
    assert query.reader.reportLatestOffset() is None
    query.batch(ReadMaxRows(2))
    shown = query.reader.reportLatestOffset()
    assert shown is not None
    assert shown[topic] == {"0": 8, "1": 0}
    assert shown["#metrics"]["maxOffsetsBehindLatest"] == 6
    assert shown["#metrics"]["offsetsBehindLatest"] == 6


def test_a_filter_holds_for_every_record_of_a_stream(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("sieve", partitions=2)
    fill(bootstrap, topic, (6, 6))
    query = Query(bootstrap, {"subscribe": topic, "filter": f"partition = 1 and offset > 0 and timestamp < {FIRST_MS + 4000}"})
    start, end = query.position, query.reader.latestOffset(query.position, ALL)
    copy = pickle.loads(pickle.dumps(query.reader))  # as it comes to a worker
    assert offsets_read(copy, query.reader.partitions(start, end)) == [(1, 1), (1, 2), (1, 3)]
