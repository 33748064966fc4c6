"""Whatever happens to the files of the last segment, a log opens with a valid prefix of what was appended, and goes on."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from tests.unit.storage.logs import (
    DIRECTORY,
    NOW,
    Producer,
    append,
    batch,
    commit_all,
    config,
    index_entries,
    make_log,
    names_in,
    path,
    produced,
    records,
    restarted,
    scanned,
    time_entries,
    write_file,
)

SETTINGS = config(segment_bytes=1200, index_interval_bytes=150)
LAST = 14  # the base offset of the last segment
# Of a batch, these bytes are under no checksum: the base offset and the leader epoch, which a broker writes into batches of others.
UNCHECKED = {*range(8), *range(12, 16)}


def build() -> tuple[SimulatedFiles, list[tuple[int, bytes | None]]]:
    """Batches of all kinds in several segments: compressed, idempotent, of transactions; left without a clean shutdown."""
    disk = SimulatedFiles()
    log = make_log(disk, SETTINGS)
    producer = Producer(log, 7)
    for n in range(4):
        append(log, batch([b"a%d" % n, b"b%d" % n], codec=(0, 1, 3, 4)[n], size=120))
        append(log, produced(9, n, [b"c%d" % n]), epoch=n)
    producer.write([b"d"])
    producer.abort()
    log.roll(NOW)
    assert log.active_segment.base_offset == LAST
    for n in range(6):
        append(log, batch([b"e%d" % n], size=100), epoch=4)
    producer.write([b"f"])
    append(log, batch([b"g"] * 3, codec=4), epoch=5)
    producer.commit()
    return restarted(disk), records(log)


BUILT, WHOLE = build()
LAST_LOG = BUILT.read_bytes(path(LAST, ".log"))
LAST_FILES = sorted(name for name in names_in(BUILT) if name.startswith(f"{LAST:020d}"))
BATCH_STARTS = [0]
while BATCH_STARTS[-1] < len(LAST_LOG):
    at = BATCH_STARTS[-1]
    BATCH_STARTS.append(at + 12 + int.from_bytes(LAST_LOG[at + 8 : at + 12], "big"))


def fresh() -> SimulatedFiles:
    return BUILT.process_crash()


def check_prefix(disk: SimulatedFiles, least: int = 0) -> Log:
    """Loads, compares, appends, closes and loads again."""
    log = make_log(disk, SETTINGS)
    recovered = records(log)
    assert recovered == WHOLE[: len(recovered)]
    assert len(recovered) >= least
    assert scanned(log) == recovered
    assert log.log_end_offset == (recovered[-1][0] + 1 if recovered else 0)
    assert log.producers.map_end_offset == log.log_end_offset
    for segment in log.segments:
        assert [entry for entry in index_entries(segment) if entry[1] >= segment.size] == []
    append(log, batch([b"after"]), epoch=9)
    assert records(log) == [*recovered, (log.log_end_offset - 1, b"after")]
    log.close(NOW)
    again = make_log(restarted(disk), SETTINGS, clean=True)
    assert records(again) == [*recovered, (again.log_end_offset - 1, b"after")]
    return again


def test_what_was_built_is_what_the_properties_need() -> None:
    log = make_log(fresh(), SETTINGS)
    assert log.active_segment.base_offset == LAST and len(log.segments) >= 2
    assert len(BATCH_STARTS) == 10 and BATCH_STARTS[-1] == len(LAST_LOG)
    assert records(log) == WHOLE and log.log_end_offset == 25


@settings(max_examples=60)
@given(st.integers(0, len(LAST_LOG)))
@example(0)
@example(len(LAST_LOG))
def test_any_prefix_of_the_last_segment_recovers_to_its_whole_batches(size: int) -> None:
    disk = fresh()
    write_file(disk, path(LAST, ".log"), LAST_LOG[:size])
    check_prefix(disk, least=LAST + sum(1 for start in BATCH_STARTS[1:8] if start <= size))


@settings(max_examples=80)
@given(st.integers(0, len(LAST_LOG) - 1), st.integers(1, 255))
def test_any_flipped_byte_under_a_checksum_recovers_to_the_batches_before_it(position: int, mask: int) -> None:
    start = max(s for s in BATCH_STARTS if s <= position)
    if position - start in UNCHECKED:
        position = start + 20
    disk = fresh()
    content = bytearray(LAST_LOG)
    content[position] ^= mask
    write_file(disk, path(LAST, ".log"), bytes(content))
    check_prefix(disk, least=LAST)


@settings(max_examples=80)
@given(st.sampled_from(BATCH_STARTS[:-2]), st.sampled_from(sorted(range(8))), st.integers(1, 255))
def test_a_flipped_offset_recovers_to_the_batches_before_it_unless_it_is_the_last(start: int, position: int, mask: int) -> None:
    """No checksum covers the base offset: a wrong one is known by its neighbours."""
    disk = fresh()
    content = bytearray(LAST_LOG)
    content[start + position] ^= mask
    write_file(disk, path(LAST, ".log"), bytes(content))
    check_prefix(disk, least=LAST)


@settings(max_examples=60)
@given(st.sampled_from(BATCH_STARTS[:-1]), st.sampled_from(sorted(UNCHECKED)), st.integers(1, 255))
def test_a_flipped_byte_under_no_checksum_never_stops_a_log_from_opening(start: int, position: int, mask: int) -> None:
    disk = fresh()
    content = bytearray(LAST_LOG)
    content[start + position] ^= mask
    write_file(disk, path(LAST, ".log"), bytes(content))
    log = make_log(disk, SETTINGS)
    recovered = records(log)
    assert [offset for offset, _ in recovered] == sorted({offset for offset, _ in recovered})
    append(log, batch([b"after"]), epoch=max(9, log.latest_epoch))
    assert records(log)[-1][1] == b"after"


@settings(max_examples=60)
@given(st.binary(min_size=1, max_size=200))
@example(b"\0" * 4096)
@example(b"\xff" * 61)
@example(LAST_LOG[:50])
@example(LAST_LOG[:100])
def test_any_garbage_at_the_end_is_cut_off(tail: bytes) -> None:
    disk = fresh()
    write_file(disk, path(LAST, ".log"), LAST_LOG + tail)
    check_prefix(disk, least=len(WHOLE))


@settings(max_examples=80)
@given(st.sampled_from(LAST_FILES), st.sampled_from(["cut", "flip", "garbage", "empty", "remove"]), st.randoms(use_true_random=False))
def test_damage_to_any_other_file_of_the_last_segment_loses_no_record(name: str, kind: str, rng: random.Random) -> None:
    if name.endswith(".log"):
        return
    disk = fresh()
    damage(disk, f"{DIRECTORY}/{name}", kind, rng)
    check_prefix(disk, least=len(WHOLE))


@settings(max_examples=60)
@given(st.sampled_from(["cut", "flip", "garbage", "empty", "remove"]), st.randoms(use_true_random=False), st.booleans())
def test_damage_to_the_indexes_of_all_segments_loses_no_record(kind: str, rng: random.Random, clean: bool) -> None:
    """Even where a clean shutdown vouches for them and nothing is recovered."""
    disk = fresh()
    if clean:
        make_log(disk, SETTINGS).close(NOW)
        disk = restarted(disk)
    for name in names_in(disk):
        if name.endswith((".index", ".timeindex")):
            damage(disk, f"{DIRECTORY}/{name}", kind, rng)
    log = make_log(disk, SETTINGS, clean=clean)
    assert records(log) == WHOLE
    append(log, batch([b"after"]), epoch=9)
    assert records(log)[-1] == (log.log_end_offset - 1, b"after")


@settings(max_examples=60)
@given(st.sampled_from(["cut", "flip", "garbage", "empty", "remove"]), st.randoms(use_true_random=False))
def test_damage_to_the_snapshots_loses_neither_records_nor_producers(kind: str, rng: random.Random) -> None:
    disk = fresh()
    expected = {i: e.last_sequence for i, e in make_log(fresh(), SETTINGS).producers.active_producers.items()}
    for name in names_in(disk):
        if name.endswith(".snapshot"):
            damage(disk, f"{DIRECTORY}/{name}", kind, rng)
    log = make_log(disk, SETTINGS)
    assert records(log) == WHOLE
    assert {i: e.last_sequence for i, e in log.producers.active_producers.items()} == expected


def damage(disk: SimulatedFiles, name: str, kind: str, rng: random.Random) -> None:
    content = disk.read_bytes(name)
    if kind == "remove":
        disk.remove(name)
    elif kind == "cut":
        write_file(disk, name, content[: rng.randint(0, len(content))])
    elif kind == "garbage":
        write_file(disk, name, rng.randbytes(rng.randint(1, 200)))
    elif kind == "flip" and content:
        at = rng.randrange(len(content))
        write_file(disk, name, content[:at] + bytes([content[at] ^ rng.randint(1, 255)]) + content[at + 1 :])
    else:
        write_file(disk, name, b"")


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(70, 300), st.sampled_from([0, 4]), st.booleans()), max_size=12), st.integers(0, 9))
def test_an_undamaged_log_is_the_same_with_and_without_recovery(layout: list[tuple[int, int, int, bool]], recovery_point: int) -> None:
    disk = SimulatedFiles()
    log = make_log(disk, SETTINGS)
    producer = Producer(log, 3)
    for number, (count, size, codec, transactional) in enumerate(layout):
        if transactional:
            producer.write(count, size=size)
        else:
            append(log, batch(count, size=size, codec=codec), epoch=max(log.latest_epoch, number // 3))
    log.close(NOW)
    clean = make_log(restarted(disk), SETTINGS, clean=True)
    unclean = make_log(restarted(disk), SETTINGS, recovery_point=recovery_point)
    for other in (clean, unclean):
        commit_all(other)
    assert state(clean) == state(unclean)


def state(log: Log) -> object:
    return (
        log.log_start_offset,
        log.log_end_offset,
        log.last_stable_offset,
        records(log),
        log.segments.base_offsets,
        log.epochs.entries,
        {i: (e.producer_epoch, e.last_sequence, e.current_txn_first_offset) for i, e in log.producers.active_producers.items()},
        [(index_entries(segment), time_entries(segment)[-1:]) for segment in log.segments],
        records(log, FetchIsolation.TXN_COMMITTED),
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_machine_that_dies_at_any_moment_leaves_a_prefix_with_all_that_was_flushed(seed: int) -> None:
    rng = random.Random(seed)
    disk = SimulatedFiles()
    log = make_log(disk, SETTINGS)
    flushed = 0
    for n in range(rng.randint(1, 30)):
        append(log, batch([b"%d" % n], size=rng.choice([0, 100, 300])))
        if rng.random() < 0.2:
            log.flush(NOW)
            flushed = log.log_end_offset
    again = make_log(disk.crash(rng), SETTINGS, recovery_point=flushed)
    values = [(value or b"").rstrip(b".") for _, value in records(again)]
    assert values == [b"%d" % n for n in range(len(values))]
    assert len(values) >= flushed
