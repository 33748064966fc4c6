"""What takes longer than a turn of the event loop is told by the validator, and done in slices that have a bound."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import InvalidRecord, InvalidTimestamp, RecordTooLarge, TakesTurns, TooManyHeaders
from barnabas.records import reader
from barnabas.records.batch import read_batches
from barnabas.records.builder import build, encode_batch
from barnabas.records.codecs.compression import FIRST_LOOK, GZIP, NONE, PRODUCED_SIZE_OF_ANY_RATIO, ZSTD, compress, produced_size_max
from barnabas.records.reader import records_of
from barnabas.records.record_walk import HEADERS_MAX, WalkFault, slice_end, walk_records
from barnabas.records.validation import validator
from barnabas.records.validation.long_validation import SLICE_BYTES, SLICE_RECORDS, LongValidation, placed, validate_whole
from barnabas.records.validation.validation import CLIENT, ValidationRules
from barnabas.records.validation.validator import ALWAYS_AT_ONCE, LOOK_AT_ONCE, RECORDS_AT_ONCE, REWRITTEN_AT_ONCE, validate

NOW = 1_700_000_000_000
LARGE = 100_000_000


def batch_of(count: int, value: bytes = b"v", codec: int = NONE, key: bytes | None = b"k", **options: Any) -> bytes:
    return build([(NOW, key, value, ())] * count, codec=codec, **options)


def check(data: bytes, at_once: int = LOOK_AT_ONCE, **rules: Any) -> None:
    validate(data, 0, len(data), 0, NOW, 0, CLIENT, ValidationRules(max_message_bytes=LARGE, **rules), at_once)


def long_of(data: bytes, **rules: Any) -> LongValidation:
    return LongValidation(data, 0, len(data), NOW, 0, CLIENT, ValidationRules(max_message_bytes=LARGE, **rules))


@pytest.mark.parametrize(
    ("data", "rules"),
    [
        (batch_of(1, bytes(FIRST_LOOK), GZIP), {}),  # it unfolds into much
        (batch_of(3, bytes(LOOK_AT_ONCE)), {}),  # it is much
        (batch_of(RECORDS_AT_ONCE + 1, key=None), {"compacted": True}),  # each has to be looked at
        (batch_of(RECORDS_AT_ONCE + 1), {"after_max_ms": -1, "before_max_ms": -1}),
        (batch_of(RECORDS_AT_ONCE + 1), {"codec": GZIP}),  # it has to be compressed
        (batch_of(1, bytes(REWRITTEN_AT_ONCE)), {"codec": GZIP}),
        (batch_of(100, bytes(2000), magic=1), {}),  # an old format, which is written anew
        (batch_of(100, bytes(2000), GZIP, magic=1), {}),
    ],
)
def test_what_takes_long_is_not_done_in_one_call(data: bytes, rules: dict[str, Any]) -> None:
    with pytest.raises(TakesTurns):
        check(data, **rules)


@pytest.mark.parametrize("codec", [NONE, GZIP, ZSTD])
def test_what_is_left_of_a_turn_is_respected(codec: int) -> None:
    data = batch_of(100, bytes(1000), codec)
    check(data, len(data) if codec == NONE else 102_000)
    with pytest.raises(TakesTurns):
        check(data, 1000)
    if codec == NONE:
        check(batch_of(1, bytes(ALWAYS_AT_ONCE - 100)), 0)  # a small plain batch costs nothing
    else:
        with pytest.raises(TakesTurns):
            check(batch_of(1, codec=codec), 0)  # nobody knows what it unfolds into


def test_a_slice_of_the_walk_has_a_bound() -> None:
    data = batch_of(6_000, bytes(900), ZSTD)
    validation = long_of(data)
    looked_at = []
    for step in validation.steps():
        if step is not None:
            step()
        looked_at.append(validation.looked_at)
    assert validation.validated is not None
    looked_at.append(validation.looked_at)
    assert len(set(looked_at)) > 1
    assert sum(1 for was_looked_at in looked_at if was_looked_at) >= 6_000 * 907 // SLICE_BYTES
    assert max(looked_at) < SLICE_BYTES + 1000  # to the end of the record that passes the bound


def test_a_slice_ends_where_a_record_does() -> None:
    data = batch_of(1000, bytes(100))
    (batch,) = read_batches(data)
    at, index, walked = 61, 0, 0
    while index < batch.count:
        stop, stop_index = slice_end(data, at, len(data), index, batch.count, 1000)
        assert stop - at < 1000 + 120
        walk_records(data, at, stop, stop_index, index)
        walked += 1
        at, index = stop, stop_index
    assert (at, index) == (len(data), 1000)
    assert walked > 90


def test_records_that_are_looked_at_or_written_one_by_one_go_in_slices() -> None:
    count = 2 * SLICE_RECORDS + 1
    plain = len(list(_run(long_of(batch_of(count)))))
    looked_at = long_of(batch_of(count, key=b"k", timestamp_type=1, log_append_time=NOW), timestamp_type=1)
    with pytest.raises(InvalidTimestamp):  # of each it is said that its time is not for a producer to set; so many are not told of
        list(_run(looked_at))
    written_anew = list(_run(long_of(build([(NOW - 1, b"k", b"v", ()), *[(NOW, b"k", b"v", ())] * count]), codec=GZIP)))
    assert len(written_anew) >= plain


def test_a_fault_is_looked_for_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever damages the last of many records gets the reader's words for it, but not the reader's time for the others."""
    good = batch_of(2000)
    (batch,) = read_batches(good)
    damaged = good[:-1] + b"\x08"  # four headers, and no bytes for them
    with pytest.raises(WalkFault) as raised:
        walk_records(damaged, 61, len(damaged), batch.count)
    assert raised.value.index == 1999
    assert len(damaged) - 12 <= raised.value.at < len(damaged)
    assert "headers" in str(validator.fault_in(damaged, len(damaged), batch, raised.value))
    with pytest.raises(InvalidRecord, match="records still remaining"):
        reader.check_record(good, 61, len(good), batch, batch.count)


def test_a_record_with_more_headers_than_anybody_can_read_is_refused() -> None:
    most = build([(NOW, None, b"", [("", None)] * HEADERS_MAX)])
    check(most)
    with pytest.raises(TooManyHeaders, match=f"{HEADERS_MAX + 1} headers"):
        check(build([(NOW, None, b"", [("", None)] * (HEADERS_MAX + 1))]))


def test_a_producer_divides_what_unfolds_into_too_much() -> None:
    """MESSAGE_TOO_LARGE is what producers split a batch for; CORRUPT_MESSAGE they send again as it is."""
    body = _records(1, bytes(PRODUCED_SIZE_OF_ANY_RATIO))
    data = encode_batch(compress(ZSTD, body), ZSTD, 0, 0, NOW, NOW, 1)
    with pytest.raises(RecordTooLarge, match=f"unfolds into more than {PRODUCED_SIZE_OF_ANY_RATIO} bytes"):
        long_of(data).finish()


def test_what_compresses_as_well_as_logs_do_may_be_large() -> None:
    assert produced_size_max(1000) == PRODUCED_SIZE_OF_ANY_RATIO
    assert produced_size_max(900_000) == 90_000_000
    assert produced_size_max(50_000_000) == 100 * 1024 * 1024


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_long_batch_gets_the_offsets_where_the_log_ends_by_then(magic: int, codec: int) -> None:
    records = [(NOW, b"k%d" % index, b"v" * 300, ()) for index in range(4_000)]
    data = build(records, magic=magic, codec=codec)
    outcome = placed(long_of(data).finish(), 1000, 9)
    whole = validate_whole(data, 0, len(data), 1000, NOW, 9, CLIENT, ValidationRules(max_message_bytes=LARGE))
    written = b"".join(outcome.buffers)
    assert written == b"".join(whole.buffers)
    assert (outcome.last_offset, outcome.batches[0].base_offset, outcome.batches[0].leader_epoch) == (4_999, 1000, 9)
    assert [record.offset for record in records_of(written)] == list(range(1000, 5_000))


def _run(validation: LongValidation) -> Any:
    for step in validation.steps():
        if step is not None:
            step()
        yield step


def _records(count: int, value: bytes) -> bytes:
    return build([(NOW, None, value, ())] * count)[61:]
