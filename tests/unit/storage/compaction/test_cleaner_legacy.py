"""Compaction of message formats v0 and v1, which old logs are full of."""

from __future__ import annotations

import pytest

from barnabas.records.batch import CREATE_TIME
from barnabas.records.reader import read_records
from barnabas.storage.log.log import Log
from tests.unit.storage.cleaning import batches, clean, compact_log, headers, keyed, keyed_batch, roll
from tests.unit.storage.logs import DAY, NOW


def legacy_log(*sets: bytes) -> Log:
    """A log with message sets of an old format, as an old broker wrote them."""
    log = compact_log()
    for data in sets:
        log.append_as_follower(data, NOW)
    roll(log)
    return log


def message_set(magic: int, offset: int, pairs: list[tuple[str | None, str | None]], codec: int = 0) -> bytes:
    return keyed_batch(pairs, magic=magic, base_offset=offset, codec=codec, timestamp_type=CREATE_TIME)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_last_value_of_each_key_stays_in_old_formats(magic: int) -> None:
    log = legacy_log(message_set(magic, 0, [("a", "1"), ("b", "1"), (None, "x"), ("a", "2")]))
    assert clean(log).stats.invalid_messages == 1
    assert keyed(log) == [(1, b"b", b"1"), (3, b"a", b"2")]
    assert {kept.magic for kept in headers(log)} == {magic}


@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_that_loses_records_is_wrapped_anew(magic: int, codec: int) -> None:
    log = legacy_log(
        message_set(magic, 0, [("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")], codec),
        message_set(magic, 4, [("b", "2"), ("d", "2")], codec),
    )
    clean(log)
    assert keyed(log) == [(0, b"a", b"1"), (2, b"c", b"1"), (4, b"b", b"2"), (5, b"d", b"2")]
    assert [(kept.last_offset, kept.codec, kept.magic) for kept in headers(log)] == [(2, codec, magic), (5, codec, magic)]
    times = [record.timestamp for data, kept in batches(log) for record in read_records(data, kept)]
    assert set(times) == {-1 if magic == 0 else NOW}


@pytest.mark.parametrize(("age_ms", "kept"), [(DAY, []), (DAY - 1, [(0, b"a", None)])])
def test_a_tombstone_of_an_old_format_goes_with_the_age_of_its_segment(age_ms: int, kept: list[tuple[int, bytes, None]]) -> None:
    log = legacy_log(message_set(1, 0, [("a", None)]))
    log.append_as_follower(message_set(1, 1, [("b", "1")]), NOW)
    roll(log)
    log.append_as_follower(message_set(1, 2, [("c", "1")]), NOW)
    roll(log)
    first, last_clean, dirty, _ = log.segments
    log.files.set_modified_ms(first.file.path, NOW - age_ms)
    log.files.set_modified_ms(last_clean.file.path, NOW)
    log.files.set_modified_ms(dirty.file.path, NOW)
    clean(log, first_dirty=2)
    assert keyed(log) == [*kept, (1, b"b", b"1"), (2, b"c", b"1")]


def test_the_first_cleaning_keeps_tombstones_of_an_old_format_however_old_they_are() -> None:
    log = legacy_log(message_set(1, 0, [("a", None), ("b", "1")]))
    log.files.set_modified_ms(log.segments.first.file.path, 1)
    clean(log)
    assert keyed(log) == [(0, b"a", None), (1, b"b", b"1")]


def test_formats_may_follow_each_other_in_one_segment() -> None:
    log = compact_log()
    log.append_as_follower(message_set(0, 0, [("a", "1"), ("b", "1")]), NOW)
    log.append_as_follower(message_set(1, 2, [("b", "2"), ("c", "1")]), NOW)
    log.append_as_follower(keyed_batch({"c": "2"}, base_offset=4, leader_epoch=0), NOW)
    roll(log)
    clean(log)
    assert [(kept.magic, kept.last_offset) for kept in headers(log)] == [(0, 0), (1, 2), (2, 4)]
    assert [key for _, key, _ in keyed(log)] == [b"a", b"b", b"c"]
