from __future__ import annotations

import struct
from pathlib import Path

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptSnapshot
from barnabas.storage.disk.files import Files
from barnabas.storage.producers.entry import BatchMetadata, ProducerStateEntry
from barnabas.storage.producers.snapshot import ProducerSnapshots, decode_snapshot, encode_snapshot
from tests.golden import LOGS
from tests.unit.storage.producing import new_state, replay

SNAPSHOTS = sorted(LOGS.glob("*/*/*/*.snapshot"))
TXN_LOG = LOGS / "kafka-4.2.0/first/g-txn-0"
IDEM_LOG = LOGS / "kafka-4.2.0/first/g-idem-0"
WHOLE = (IDEM_LOG / "00000000000000000020.snapshot").read_bytes()


def fields(entry: ProducerStateEntry) -> tuple[int, ...]:
    return (
        entry.producer_id,
        entry.producer_epoch,
        entry.coordinator_epoch,
        entry.last_timestamp,
        entry.current_txn_first_offset,
        entry.last_sequence,
        entry.last_data_offset,
        entry.last_offset_delta,
    )


# -- Kafka's files


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda p: f"{p.parent.name}/{p.stem.lstrip('0')}")
def test_kafkas_snapshots_are_written_back_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    assert encode_snapshot(decode_snapshot(data, str(path))) == data


def test_a_snapshot_tells_what_kafkas_dump_tells() -> None:
    path = TXN_LOG / "00000000000000000003.snapshot"
    (entry,) = decode_snapshot(path.read_bytes(), str(path))
    assert fields(entry) == (2, 0, -1, 1_700_000_000_002, 0, 2, 2, 2)
    assert entry.first_sequence == 0


def test_a_producer_known_only_by_a_marker_has_no_batch() -> None:
    path = TXN_LOG / "00000000000000000015.snapshot"
    first, second = decode_snapshot(path.read_bytes(), str(path))
    assert fields(first) == (2, 4, 0, 1_794_775_570_808, -1, -1, -1, 0)
    assert fields(second) == (3, 1, 0, 1_794_775_570_769, -1, -1, -1, 0)
    assert first.is_empty


@pytest.mark.parametrize(
    ("log", "segment", "snapshot"),
    [(IDEM_LOG, 0, 20), (TXN_LOG, 0, 3), (LOGS / "kafka-4.2.0/first/__consumer_offsets-0", 0, 7)],
    ids=["g-idem", "g-txn", "__consumer_offsets"],
)
def test_replaying_kafkas_log_gives_kafkas_snapshot(tmp_path: Path, log: Path, segment: int, snapshot: int) -> None:
    state = new_state(tmp_path)
    replay(state, (log / f"{segment:020d}.log").read_bytes())
    written = state.take_snapshot()
    assert written == f"{tmp_path}/{snapshot:020d}.snapshot"
    assert Path(written).read_bytes() == (log / f"{snapshot:020d}.snapshot").read_bytes()


def test_replaying_the_next_segment_goes_on_from_the_state_before_it(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    replay(state, (TXN_LOG / "00000000000000000000.log").read_bytes())
    replay(state, (TXN_LOG / "00000000000000000003.log").read_bytes())
    written = state.take_snapshot()
    assert written is not None
    assert Path(written).read_bytes() == (TXN_LOG / "00000000000000000015.snapshot").read_bytes()


def test_every_snapshot_of_a_compacted_transactional_log_is_replayed(tmp_path: Path) -> None:
    log = LOGS / "kafka-4.2.0/before/g-compact-txn-0"
    state = new_state(tmp_path)
    for segment in sorted(log.glob("*.log")):
        base = int(segment.stem)
        if base:
            state.update_map_end_offset(base)
            state.take_snapshot(sync=False)
        replay(state, segment.read_bytes())
    state.take_snapshot(sync=False)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {p.name: p.read_bytes() for p in log.glob("*.snapshot")}


# -- damage


@pytest.mark.parametrize("size", range(len(WHOLE)))
def test_a_snapshot_cut_anywhere_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptSnapshot, match=r"some\.snapshot"):
        decode_snapshot(WHOLE[:size], "some.snapshot")


@given(st.integers(0, len(WHOLE) * 8 - 1))
def test_a_snapshot_with_any_bit_flipped_is_corrupt(bit: int) -> None:
    data = bytearray(WHOLE)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptSnapshot, match=r"some\.snapshot"):
        decode_snapshot(bytes(data), "some.snapshot")


@given(st.binary(max_size=200))
def test_random_bytes_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(data, "some.snapshot")


def test_bytes_after_the_last_producer_are_corrupt() -> None:
    with pytest.raises(CorruptSnapshot, match="do not hold the 2 producers"):
        decode_snapshot(WHOLE + b"\0", "some.snapshot")


def test_an_unknown_version_is_corrupt() -> None:
    with pytest.raises(CorruptSnapshot, match="Snapshot contained an unknown file version 2"):
        decode_snapshot(b"\x00\x02" + WHOLE[2:], "some.snapshot")


def test_a_wrong_checksum_is_told_with_both() -> None:
    with pytest.raises(CorruptSnapshot, match=r"CRC is no longer valid.* Stored crc: 0. Computed crc: 2142208692"):
        decode_snapshot(WHOLE[:2] + bytes(4) + WHOLE[6:], "some.snapshot")


@pytest.mark.parametrize("count", [-1, 2**31 - 1, -(2**31)])
def test_an_impossible_count_is_refused_before_anything_is_made_for_it(count: int) -> None:
    body = struct.pack(">i", count) + WHOLE[10:]
    data = struct.pack(">hI", 1, google_crc32c.value(body)) + body
    with pytest.raises(CorruptSnapshot, match=f"the {count} producers"):
        decode_snapshot(data, "some.snapshot")


# -- any state

i16s, i32s, i64s = (st.integers(-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (16, 32, 64))


@st.composite
def entries(draw: st.DrawFn) -> ProducerStateEntry:
    entry = ProducerStateEntry(draw(i64s), draw(i16s), draw(i32s), draw(i64s), draw(st.integers(-1, 2**63 - 1)))
    if draw(st.booleans()):
        entry.retain(BatchMetadata(draw(i32s), draw(st.integers(0, 2**63 - 1)), draw(i32s), entry.last_timestamp))
    return entry


@given(st.lists(entries(), max_size=20))
def test_any_producers_survive_a_snapshot(producers: list[ProducerStateEntry]) -> None:
    read = decode_snapshot(encode_snapshot(producers), "some.snapshot")
    assert [fields(entry) for entry in read] == [fields(entry) for entry in producers]


# -- the files of a directory


def files_in(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir())


def with_snapshots(directory: Path, *offsets: int) -> ProducerSnapshots:
    snapshots = ProducerSnapshots(Files(), str(directory))
    for offset in offsets:
        snapshots.write(offset, [], sync=False)
    return snapshots


def test_snapshots_are_found_by_their_names_and_nothing_else_is(tmp_path: Path) -> None:
    for name in ("00000000000000000003.snapshot", "00000000000000000020.snapshot", "3.snapshot", "x.snapshot"):
        (tmp_path / name).touch()
    for name in ("00000000000000000004.snapshot.deleted", "00000000000000000005.snapshot.tmp", "00000000000000000006.log"):
        (tmp_path / name).touch()
    (tmp_path / "00000000000000000007.snapshot").mkdir()
    snapshots = ProducerSnapshots(Files(), str(tmp_path))
    assert (snapshots.offsets, snapshots.oldest, snapshots.latest) == ([3, 20], 3, 20)


def test_a_directory_that_is_not_there_has_none(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(Files(), str(tmp_path / "none"))
    assert (snapshots.oldest, snapshots.latest) == (None, None)


def test_a_snapshot_too_large_is_refused_unread(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(Files(), str(tmp_path), size_max=100)
    (tmp_path / "00000000000000000003.snapshot").write_bytes(WHOLE)
    with pytest.raises(CorruptSnapshot, match=r"00000000000000000003\.snapshot has more than the 100 bytes"):
        snapshots.read(3)


def test_a_state_too_large_to_be_read_back_is_not_written(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(Files(), str(tmp_path), size_max=100)
    assert snapshots.write(3, [ProducerStateEntry(1), ProducerStateEntry(2)], sync=False) is None
    assert files_in(tmp_path) == []


def test_a_snapshot_that_disappeared_is_as_good_as_corrupt(tmp_path: Path) -> None:
    snapshots = with_snapshots(tmp_path, 3)
    (tmp_path / "00000000000000000003.snapshot").unlink()
    with pytest.raises(CorruptSnapshot, match="has disappeared"):
        snapshots.read(3)


def test_a_snapshot_marked_for_deletion_is_renamed_now_and_removed_later(tmp_path: Path) -> None:
    snapshots = with_snapshots(tmp_path, 3, 8)
    delete = snapshots.mark_for_deletion(3)
    assert files_in(tmp_path) == ["00000000000000000003.snapshot.deleted", "00000000000000000008.snapshot"]
    assert snapshots.offsets == [8]
    assert delete is not None
    delete()
    delete()
    assert files_in(tmp_path) == ["00000000000000000008.snapshot"]


def test_marking_a_snapshot_that_is_gone_already_is_no_error(tmp_path: Path) -> None:
    snapshots = with_snapshots(tmp_path, 3)
    (tmp_path / "00000000000000000003.snapshot").unlink()
    assert snapshots.mark_for_deletion(3) is None
    assert snapshots.mark_for_deletion(4) is None


@pytest.mark.parametrize(
    ("snapshots", "segments", "kept"),
    [
        ([1, 2, 5], [1], [1, 5]),  # of the strays only the last, taken at a clean shutdown
        ([2, 4, 6], [3, 5, 7], []),  # the last stray lies before the active segment
        ([0, 3, 8], [0, 3], [0, 3, 8]),
        ([1, 2], [], [2]),
        ([], [0, 3], []),
    ],
)
def test_stray_snapshots_are_removed(tmp_path: Path, snapshots: list[int], segments: list[int], kept: list[int]) -> None:
    files = with_snapshots(tmp_path, *snapshots)
    files.remove_stray(segments)
    assert files.offsets == kept
    assert files_in(tmp_path) == [f"{offset:020d}.snapshot" for offset in kept]


def test_looking_for_strays_finds_snapshots_it_did_not_write(tmp_path: Path) -> None:
    snapshots = with_snapshots(tmp_path)
    with_snapshots(tmp_path, 3, 4, 9)
    snapshots.remove_stray([3])
    assert snapshots.offsets == [3, 9]
