"""The direct reader against the log itself: the rows of its files are the records that a broker would have sent."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import EqualTo, GreaterThan, In, InputPartition, IsNotNull
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from barnabas.records.columns.columns import decode
from barnabas.storage.disk.files import Files
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from pyspark_barnabas.errors import DataLossError, OptionError, UnknownTopicError
from pyspark_barnabas.read.arrow_rows import COLUMNS, HEADERS
from pyspark_barnabas.read.read_errors import CorruptLogError
from pyspark_barnabas.schema import record_schema
from pyspark_barnabas.segments.log_dirs import SMALL_FILE_BYTES_MAX, find_partitions
from pyspark_barnabas.segments.segment_options import SegmentOptions
from pyspark_barnabas.segments.segment_ranges import log_end_offset, plan
from pyspark_barnabas.segments.segment_reader import FilteringSegmentReader, SegmentReader, read_group
from tests import golden
from tests.unit.storage.logs import NOW, Producer, append, append_many, batch, commit_all, config, file_name, make_log

NAME = "orders-0"


def open_log(directory: Path, **options: Any) -> Log:
    return make_log(Files(), config(**options), directory=str(directory / NAME))


def rows(directory: Path, columns: tuple[str, ...] = COLUMNS, /, **options: str) -> list[dict[str, Any]]:
    checked = SegmentOptions.of({"logDirs": str(directory), **options})
    rows: list[dict[str, Any]] = []
    for group in plan(find_partitions(checked.log_dirs), checked):
        for read in read_group(group, columns, check_crc=checked.check_crc, skip_damage=not checked.fail_on_data_loss):
            rows += read.to_pylist()
    return rows


def offsets(directory: Path, **options: str) -> list[int]:
    return [row["offset"] for row in rows(directory, **options)]


def served(log: Log) -> list[int]:
    """The offsets that a read_committed consumer of this log is shown."""
    commit_all(log)
    offsets: list[int] = []
    offset = log.log_start_offset
    while True:
        fetched = log.read(offset, 10**6, FetchIsolation.TXN_COMMITTED, min_one_message=True)
        data = b"" if fetched.records is None else fetched.records.read()
        if not data:
            return offsets
        aborted = [(transaction.producer_id, transaction.first_offset) for transaction in fetched.aborted or ()]
        decoded = decode(data, first_offset=offset, end_offset=log.last_stable_offset, aborted=aborted)
        offsets += decoded.records.column("offset").to_pylist()
        offset = decoded.next_offset


@pytest.mark.parametrize("directory", sorted({path.parent for path in golden.partitions()}), ids=golden.name)
def test_what_kafka_wrote_is_read_as_kafka_dumped_it(directory: Path) -> None:
    records: dict[str, list[tuple[int, bytes | None, bytes | None]]] = {}
    for row in rows(directory, **{"kafka.isolation.level": "read_uncommitted"}):
        records.setdefault(f"{row['topic']}-{row['partition']}", []).append((row["offset"], row["key"], row["value"]))
    compared = 0
    for partition in directory.iterdir():
        if not (partition / "DUMP.txt").exists() or golden.is_internal(partition):
            continue
        dumped = [
            (int(record.fields["offset"]), _bytes(record.key), _bytes(record.payload))
            for file in golden.read_dump(partition, ".log").values()
            for batch in file.batches
            if batch.fields.get("isControl", "false") == "false"
            for record in batch.records
        ]
        start = 11 if partition.name.startswith("g-delrec") else 0  # what DeleteRecords took away still stands in the file
        assert [(offset, *rest) for offset, *rest in records.get(partition.name, [])] == [each for each in dumped if each[0] >= start]
        compared += len(dumped)
    assert compared > 0


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def test_an_aborted_transaction_of_kafkas_is_not_shown(tmp_path: Path) -> None:
    directory = golden.LOGS / "kafka-4.2.0" / "first"
    everything = offsets(directory, subscribe="g-txn", **{"kafka.isolation.level": "read_uncommitted"})
    committed = offsets(directory, subscribe="g-txn")
    assert set(committed) < set(everything)
    assert committed == served_by_golden(directory, tmp_path)


def served_by_golden(directory: Path, tmp_path: Path) -> list[int]:
    shutil.copytree(directory / "g-txn-0", tmp_path / NAME)
    (tmp_path / NAME / "DUMP.txt").unlink()
    return served(open_log(tmp_path))


def test_rows_have_the_columns_of_sparks_connector(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch([b"value"], key=b"key", timestamp=NOW))
    (row,) = rows(tmp_path, (*COLUMNS, HEADERS), includeHeaders="true")
    assert row["timestamp"].timestamp() * 1000 == NOW
    del row["timestamp"]
    assert row == {
        "key": b"key",
        "value": b"value",
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "timestampType": 0,
        "headers": None,
    }


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.sampled_from(["write 1", "write 2", "commit 1", "commit 2", "abort 1", "abort 2", "plain"]), max_size=40))
def test_a_read_committed_reader_sees_what_a_broker_would_show(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    directory = tmp_path_factory.mktemp("log")
    log = open_log(directory, segment_bytes=400, index_interval_bytes=1)
    producers = {"1": Producer(log, 1), "2": Producer(log, 2)}
    is_open: set[str] = set()
    for step in steps:
        what, _, who = step.partition(" ")
        if what == "plain":
            append(log)
        elif what == "write":
            is_open.add(who)
            producers[who].write()
        elif who in is_open:
            is_open.discard(who)
            producers[who].commit() if what == "commit" else producers[who].abort()
    log.close()  # indexes are written a page at a time; a broker that stops writes the rest
    shown = served(open_log(directory, segment_bytes=400, index_interval_bytes=1))
    assert offsets(directory) == shown
    assert offsets(directory, minPartitions="7") == shown


def test_without_indexes_transactions_are_found_in_the_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=300)
    first, second = Producer(log, 1), Producer(log, 2)
    first.write(3)
    second.write(2)
    first.abort()
    second.commit()
    second.write(2)
    shown = served(log)
    log.close()
    for path in (tmp_path / NAME).iterdir():
        if path.suffix != ".log":
            path.unlink()
    assert offsets(tmp_path) == shown == [3, 4]


def test_tasks_share_the_segments_without_a_gap_or_a_record_twice(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=4096, index_interval_bytes=256)
    append_many(log, 500)
    log.close()
    options = SegmentOptions.of({"logDirs": str(tmp_path), "maxBytesPerPartition": "1024"})
    groups = plan(find_partitions(options.log_dirs), options)
    assert len(groups) > 20
    assert max(group.size for group in groups) < 1024 + 512
    assert [offset for group in groups for read in read_group(group) for offset in read.column("offset").to_pylist()] == list(range(500))


def test_small_segments_share_a_task(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=1024)
    append_many(log, 200)
    log.close()
    options = SegmentOptions.of({"logDirs": str(tmp_path)})
    logs = find_partitions(options.log_dirs)
    assert len(logs[0].segments) > 5
    assert len(plan(logs, options)) == 1


@pytest.mark.parametrize(("first", "end"), [(0, 500), (1, 2), (137, 138), (250, 499), (499, 500), (300, 300)])
def test_offsets_given_are_kept_to_exactly(tmp_path: Path, first: int, end: int) -> None:
    log = open_log(tmp_path, segment_bytes=4096, index_interval_bytes=256)
    append_many(log, 500)
    log.close()
    bounds = {"startingOffsets": f'{{"orders":{{"0":{first}}}}}', "endingOffsets": f'{{"orders":{{"0":{end}}}}}'}
    assert offsets(tmp_path, **bounds) == list(range(first, end))


TIMES = [100, 400, 300, 300, 700, 600, 900]  # as producers send them: not in order


def timed_log(directory: Path, times: list[int] = TIMES, **options: int) -> Log:
    log = open_log(directory, **{"segment_bytes": 300, "index_interval_bytes": 1, **options})
    for time in times:
        append(log, batch([b"x"], timestamp=NOW + time))
    return log


@settings(max_examples=40, deadline=None)
@given(
    times=st.lists(st.integers(0, 20), min_size=1, max_size=30),
    start=st.integers(0, 22),
    end=st.integers(0, 22),
    interval=st.sampled_from([1, 150, 10_000]),
    closed=st.booleans(),
    indexed=st.booleans(),
)
def test_times_bound_a_read_as_the_first_record_at_or_after_them(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], start: int, end: int, interval: int, closed: bool, indexed: bool
) -> None:
    directory = tmp_path_factory.mktemp("log")
    log = timed_log(directory, times, segment_bytes=400, index_interval_bytes=interval)
    first, last = (next((number for number, time in enumerate(times) if time >= bound), len(times)) for bound in (start, end))
    if closed:
        log.close()
    if not indexed:
        for path in (directory / NAME).glob("*index"):
            path.unlink()
    bounds = {
        "startingTimestamp": str(NOW + start),
        "endingTimestamp": str(NOW + end),
        "startingOffsetsByTimestampStrategy": "latest",
    }
    if first > last:
        with pytest.raises(OptionError, match="before its start"):
            offsets(directory, **bounds)
    else:
        assert offsets(directory, **bounds) == list(range(first, last))


def test_a_time_after_the_last_record_is_an_error_unless_the_end_is_meant(tmp_path: Path) -> None:
    timed_log(tmp_path)
    late = {"startingTimestamp": str(NOW + 901)}
    with pytest.raises(OptionError, match="no record at or after"):
        offsets(tmp_path, **late)
    assert offsets(tmp_path, **late, startingOffsetsByTimestampStrategy="latest") == []
    assert offsets(tmp_path, endingTimestamp=str(NOW + 901)) == list(range(7))


def test_times_may_be_given_for_each_partition(tmp_path: Path) -> None:
    timed_log(tmp_path)
    assert offsets(tmp_path, startingOffsetsByTimestamp=f'{{"orders":{{"0":{NOW + 500}}}}}') == [4, 5, 6]


def test_a_time_within_a_batch_begins_within_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(5, timestamps=[NOW + number for number in range(5)]))
    assert offsets(tmp_path, startingTimestamp=str(NOW + 2), endingTimestamp=str(NOW + 4)) == [2, 3]


def test_a_time_does_not_bring_back_what_was_deleted(tmp_path: Path) -> None:
    timed_log(tmp_path).close()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    assert offsets(tmp_path, startingTimestamp=str(NOW + 350)) == [4, 5, 6]
    assert offsets(tmp_path, startingTimestamp=str(NOW)) == [2, 3, 4, 5, 6]


def test_an_open_transaction_is_the_end_for_times_too(tmp_path: Path) -> None:
    log = timed_log(tmp_path, segment_bytes=10_000)
    Producer(log, 1).write(2)
    log.close()
    assert offsets(tmp_path, endingTimestamp=str(2**62)) == list(range(7))


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("offset >= 3 and offset < 5", [3, 4]),
        ("offset in (1, 4)", [1, 4]),
        ("offset != 2", [0, 1, 3, 4, 5, 6]),
        (f"timestamp >= {NOW + 400}", [1, 4, 5, 6]),
        (f"timestamp < {NOW + 400}", [0, 2, 3]),
        (f"timestamp > {NOW + 900}", []),
        ("partition = 1", []),
        ("topic = 'orders' and partition in (0, 3)", list(range(7))),
    ],
)
def test_a_filter_is_answered_in_the_files(tmp_path: Path, condition: str, found: list[int]) -> None:
    timed_log(tmp_path)
    reader = SegmentReader({"logDirs": str(tmp_path), "filter": condition}, record_schema(False))
    assert [offset for part in reader.partitions() for read in reader.read(part) for offset in read.column("offset").to_pylist()] == found


def test_what_spark_pushes_down_is_taken_and_the_rest_given_back(tmp_path: Path) -> None:
    timed_log(tmp_path)
    schema = StructType([StructField("value", BinaryType())])
    reader = FilteringSegmentReader({"logDirs": str(tmp_path)}, schema)
    own, foreign = GreaterThan(("offset",), 4), EqualTo(("value",), b"x")
    assert list(reader.pushFilters([own, IsNotNull(("offset",)), foreign, In(("timestamp",), (_time(NOW + 600), _time(NOW + 1)))])) == [
        foreign
    ]
    read = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [batch.to_pydict() for batch in read] == [{"value": [b"x"]}]


def test_a_filter_leaves_out_segments_unopened(tmp_path: Path) -> None:
    timed_log(tmp_path, list(range(50))).close()
    everything, some = (
        SegmentReader({"logDirs": str(tmp_path), "filter": condition}, record_schema(False)).partitions()[0].value.size
        for condition in ("offset >= 0", "offset >= 40 and offset < 45")
    )
    assert some < everything / 4


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def test_what_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_many(log, 10)
    log.close()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    assert offsets(tmp_path) == [4, 5, 6, 7, 8, 9]
    with pytest.raises(DataLossError, match="begins at 4"):
        offsets(tmp_path, startingOffsets='{"orders":{"0":2}}')
    assert offsets(tmp_path, startingOffsets='{"orders":{"0":2}}', failOnDataLoss="false") == [4, 5, 6, 7, 8, 9]


def test_the_directory_of_one_partition_is_enough(tmp_path: Path) -> None:
    append_many(open_log(tmp_path), 3)
    assert offsets(tmp_path / NAME) == [0, 1, 2]
    assert [row["offset"] for row in _by_uri(f"file://{tmp_path}/{NAME}")] == [0, 1, 2]


def _by_uri(uri: str) -> list[dict[str, Any]]:
    checked = SegmentOptions.of({"logDirs": uri})
    return [row for group in plan(find_partitions(checked.log_dirs), checked) for read in read_group(group) for row in read.to_pylist()]


def test_of_two_replicas_the_longer_one_is_read(tmp_path: Path) -> None:
    for place, count in (("a", 3), ("b", 5)):
        append_many(open_log(tmp_path / place), count)
    assert offsets(Path(f"{tmp_path}/a,{tmp_path}/b")) == [0, 1, 2, 3, 4]


def test_directories_of_different_topics_with_one_name_are_refused(tmp_path: Path) -> None:
    for place, topic_id in (("a", "A" * 21 + "Q"), ("b", "B" * 21 + "Q")):
        append_many(open_log(tmp_path / place), 1)
        (tmp_path / place / NAME / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    with pytest.raises(OptionError, match="different topics"):
        offsets(Path(f"{tmp_path}/a,{tmp_path}/b"))


def test_what_a_compaction_left_unfinished_is_seen_as_after_a_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=300)
    append_many(log, 12)
    log.close()
    directory = tmp_path / NAME
    first = min(path for path in directory.iterdir() if path.suffix == ".log")
    kept = first.read_bytes()
    first.rename(f"{first}.deleted")
    (directory / f"{first.name}.swap").write_bytes(kept)
    (directory / file_name(5000, ".log.cleaned")).write_bytes(b"half a batch")
    assert offsets(tmp_path) == list(range(12))


def test_a_batch_that_is_just_being_written_is_not_there_yet(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_many(log, 3)
    log.close()
    with open(tmp_path / NAME / file_name(0, ".log"), "ab") as file:
        file.write(batch(offset=3)[:-5])
    assert offsets(tmp_path) == [0, 1, 2]


def test_a_file_filled_up_with_zeros_ends_where_they_begin(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_many(log, 3)
    log.close()
    with open(tmp_path / NAME / file_name(0, ".log"), "ab") as file:
        file.write(bytes(5000))
    assert offsets(tmp_path) == [0, 1, 2]


def test_a_damaged_batch_is_an_error_or_left_out_alone(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_many(log, 5)
    log.close()
    path = tmp_path / NAME / file_name(0, ".log")
    content = bytearray(path.read_bytes())
    content[2 * len(content) // 5 + 65] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(CorruptLogError, match="failOnDataLoss"):
        offsets(tmp_path)
    assert offsets(tmp_path, failOnDataLoss="false") == [0, 1, 3, 4]


def test_a_damaged_length_ends_its_segment_only(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=300)
    append_many(log, 12)
    log.close()
    segments = sorted(path for path in (tmp_path / NAME).iterdir() if path.suffix == ".log")
    content = bytearray(segments[1].read_bytes())
    content[8:12] = b"\xff\xff\xff\xff"
    segments[1].write_bytes(content)
    lost = range(int(segments[1].stem), int(segments[2].stem))
    with pytest.raises(CorruptLogError, match="position 0"):
        offsets(tmp_path)
    assert offsets(tmp_path, failOnDataLoss="false") == [offset for offset in range(12) if offset not in lost]


def test_the_end_of_a_log_is_found_from_its_last_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=300)
    append_many(log, 12)
    log.close()
    (partition,) = find_partitions([str(tmp_path)])
    assert log_end_offset(partition) == 12


def test_an_empty_directory_has_no_rows(tmp_path: Path) -> None:
    reader = SegmentReader({"logDirs": str(tmp_path)}, record_schema(False))
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


def test_a_query_may_ask_for_some_columns_only(tmp_path: Path) -> None:
    append_many(open_log(tmp_path), 2)
    schema = StructType([StructField("offset", LongType()), StructField("value", BinaryType())])
    reader = SegmentReader({"logDirs": str(tmp_path)}, schema)
    (partition,) = reader.partitions()
    assert [batch.to_pydict() for batch in reader.read(partition)] == [{"offset": [0, 1], "value": [b"0", b"1"]}]


def test_topics_are_chosen_as_with_a_broker(tmp_path: Path) -> None:
    append_many(open_log(tmp_path), 2)
    shutil.copytree(tmp_path / NAME, tmp_path / "payments-1")
    shutil.copytree(tmp_path / NAME, tmp_path / "__consumer_offsets-0")
    shutil.copytree(tmp_path / NAME, tmp_path / "old-0.0123456789abcdef-delete")
    assert {row["topic"] for row in rows(tmp_path)} == {"orders", "payments"}
    assert {row["topic"] for row in rows(tmp_path, subscribePattern="pay.*")} == {"payments"}
    assert {row["topic"] for row in rows(tmp_path, subscribe="__consumer_offsets")} == {"__consumer_offsets"}
    assert {row["partition"] for row in rows(tmp_path, assign='{"payments":[1]}')} == {1}
    with pytest.raises(UnknownTopicError, match="refunds"):
        rows(tmp_path, subscribe="orders,refunds")


def test_what_is_not_asked_for_is_not_looked_at(tmp_path: Path) -> None:
    append_many(open_log(tmp_path), 2)
    (tmp_path / "other-0").mkdir()
    with open(tmp_path / "other-0" / "partition.metadata", "wb") as file:
        file.truncate(SMALL_FILE_BYTES_MAX + 1)  # whoever reads it fails
    reader = SegmentReader({"logDirs": str(tmp_path), "subscribe": "orders"}, record_schema(False))
    assert len(reader.partitions()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"logDirs": ""}, "at least one"),
        ({"logDirs": "/no/such/directory"}, "no directory"),
        ({"kafka.bootstrap.servers": "localhost:9092"}, "without a broker"),
        ({"startingTimestamp": "soon"}, "milliseconds since 1970"),
        ({"filter": "value = 1"}, "can only compare"),
        ({"kafka.isolation.level": "read"}, "must be one of"),
        ({"logDirs": "nosuchscheme://x/y"}, "cannot be opened"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        checked = SegmentOptions.of({"logDirs": str(tmp_path), **options})
        find_partitions(checked.log_dirs)
