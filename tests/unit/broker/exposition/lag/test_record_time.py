from __future__ import annotations

from barnabas.broker.exposition.lag.record_time import first_batch, needs_records
from barnabas.records.batch import HEADER_SIZE_V2
from barnabas.records.builder import build

TIMES = (1000, 2000, 3000)
DATA = build([(timestamp, None, b"x" * 100, ()) for timestamp in TIMES])


def test_the_header_has_the_timestamp_of_the_first_record() -> None:
    header = DATA[:HEADER_SIZE_V2]
    assert not needs_records(header, 0)
    assert first_batch(header, 0) == (1000, 3, len(DATA))


def test_a_record_in_the_middle_is_read() -> None:
    assert needs_records(DATA[:HEADER_SIZE_V2], 2)
    assert first_batch(DATA, 2) == (3000, 3, len(DATA))


def test_a_batch_that_is_cut_or_large_has_the_timestamp_of_its_first_record() -> None:
    assert first_batch(DATA[:-10], 2) == (1000, 3, len(DATA))
    large = build([(timestamp, None, b"x" * 40_000, ()) for timestamp in TIMES])
    assert not needs_records(large[:HEADER_SIZE_V2], 1)
    assert first_batch(large, 1) == (1000, 3, len(large))


def test_records_of_one_time_need_the_header_only() -> None:
    data = build([(1000, None, b"x", ()) for _ in range(3)])
    assert not needs_records(data[:HEADER_SIZE_V2], 2)
    assert first_batch(data[:HEADER_SIZE_V2], 2) == (1000, 3, len(data))


def test_too_few_bytes_are_no_batch() -> None:
    assert first_batch(b"", 0) is None
    assert first_batch(DATA[:16], 0) is None
