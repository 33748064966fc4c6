from __future__ import annotations

import random
from pathlib import Path

import pytest

from barnabas.errors import CorruptCheckpoint
from barnabas.records.batch import read_batches
from barnabas.simulation.disk import SimulatedCrash, SimulatedFiles
from barnabas.storage.disk.files import Files
from barnabas.storage.indexes.txn_index import AbortedTxn
from barnabas.storage.leader_epochs import EpochEntry
from barnabas.storage.log_config import LogConfig
from tests.unit.storage.log.loaded_logs import SETTINGS, TEN, append_to, fill, load, stripped
from tests.unit.storage.logs import (
    DIRECTORY,
    NOW,
    Producer,
    RecordingHost,
    append,
    append_many,
    batch,
    commit_all,
    file_name,
    flip,
    index_entries,
    make_log,
    names_in,
    path,
    produced,
    records,
    restarted,
    time_entries,
    watch,
    write_file,
)

# -- an ordinary start


def test_a_directory_that_does_not_exist_becomes_an_empty_log(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.recovery_point) == (0, 0, 0, 0)
    assert names_in(disk) == [file_name(0, suffix) for suffix in (".index", ".log", ".timeindex")]


def test_an_empty_log_begins_at_its_log_start_offset(disk: SimulatedFiles) -> None:
    log = make_log(disk, log_start_offset=77)
    assert log.segments.base_offsets == [77] and log.log_end_offset == 77


def test_a_closed_log_is_as_it_was(disk: SimulatedFiles) -> None:
    log = load(fill(disk), clean=True)
    assert stripped(log) == TEN
    assert log.segments.base_offsets == [0, 3, 6, 9]
    append_to(log, 1)
    assert log.log_end_offset == 11


def test_after_a_clean_shutdown_no_record_is_read_but_the_last(disk: SimulatedFiles) -> None:
    files = fill(disk)
    read = watch(files, "read", ".log")
    load(files, clean=True)
    assert {event.path for event in read} <= {path(9, ".log")}


def test_after_a_clean_shutdown_everything_counts_as_flushed(disk: SimulatedFiles) -> None:
    assert load(fill(disk), clean=True).recovery_point == 10


def test_after_a_crash_the_recovery_point_stays_until_the_next_flush(disk: SimulatedFiles) -> None:
    """What was read back from the page cache may still not be on disk."""
    log = load(fill(disk, clean=False), recovery_point=4)
    assert log.recovery_point == 4 and log.log_end_offset == 10


def test_a_recovery_point_past_the_end_is_lowered(disk: SimulatedFiles) -> None:
    assert load(fill(disk, clean=False), recovery_point=99).recovery_point == 10


def test_segments_below_the_recovery_point_are_not_read(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    read = watch(files, "read", ".log")
    load(files, recovery_point=7)
    assert {event.path for event in read} == {path(6, ".log"), path(9, ".log")}


def test_the_segment_that_holds_the_recovery_point_is_recovered_from_its_beginning(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    flip(files, path(6, ".log"), 199)
    assert load(files, recovery_point=8).log_end_offset == 7


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_loaded_with_and_without_recovery_is_the_same(disk: SimulatedFiles, clean: bool) -> None:
    log = load(fill(disk), clean=clean)
    assert stripped(log) == TEN
    assert [index_entries(segment) for segment in log.segments][:2] == [[(1, 100), (2, 200)], [(4, 100), (5, 200)]]


def test_a_log_without_the_marker_is_recovered_with_the_same_files(disk: SimulatedFiles) -> None:
    files = fill(disk)
    before = {name: files.read_bytes(f"{DIRECTORY}/{name}") for name in names_in(files)}
    load(files)
    assert {name: files.read_bytes(f"{DIRECTORY}/{name}") for name in names_in(files)} == before


def test_loading_a_log_twice_changes_nothing_the_second_time(disk: SimulatedFiles) -> None:
    files = restarted(fill(disk, clean=False))
    load(files)
    before = {name: files.read_bytes(f"{DIRECTORY}/{name}") for name in names_in(files)}
    load(restarted(files))
    assert {name: files.read_bytes(f"{DIRECTORY}/{name}") for name in names_in(files)} == before


# -- damage


def test_a_torn_tail_is_cut_and_appending_goes_on(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    file = files.open(path(9, ".log"))
    file.append_bytes(batch(offset=10)[:50])
    file.close()
    log = load(files)
    assert stripped(log) == TEN
    append_to(log, 1)
    assert stripped(log)[-1] == b"10"


def test_damage_in_an_earlier_segment_takes_all_later_segments_along(disk: SimulatedFiles) -> None:
    files, host = fill(disk, clean=False), RecordingHost()
    flip(files, path(3, ".log"), 199)
    log = load(files, host=host)
    assert stripped(log) == TEN[:4]
    assert log.segments.base_offsets == [0, 3]
    assert file_name(6, ".log.deleted") in names_in(files) and file_name(6, ".log") not in names_in(files)
    host.delete_due(60_000)
    assert not [name for name in names_in(files) if name.endswith(".deleted")]
    append_to(log, 5)
    assert log.log_end_offset == 9


def test_damage_below_the_recovery_point_is_left_alone(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    flip(files, path(0, ".log"), 199)
    assert load(files, recovery_point=9).log_end_offset == 10


def test_damage_to_the_first_batch_leaves_an_empty_segment(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    flip(files, path(0, ".log"), 99)
    log = load(files)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    append_to(log, 2)
    assert stripped(log) == [b"0", b"1"]


def test_a_batch_with_the_offsets_of_another_segment_is_damage(disk: SimulatedFiles) -> None:
    """The base offset is not under the checksum."""
    files = fill(disk, clean=False)
    flip(files, path(3, ".log"), 200 + 6, 0x01)  # offset 5 becomes 261
    log = load(files)
    assert stripped(log) == TEN[:5]


def test_a_crash_while_later_segments_are_deleted_leaves_no_hole(disk: SimulatedFiles) -> None:
    for number in range(1, 80):
        files = fill(SimulatedFiles(), clean=False)
        flip(files, path(0, ".log"), 299)
        files.halt_at(files.events + number)
        try:
            load(files, holes_are_losses=True)
        except SimulatedCrash:
            pass
        found = [o for o, _ in records(load(restarted(files), holes_are_losses=True))]
        assert found == [0, 1]


def test_a_log_that_ends_before_its_log_start_is_emptied(disk: SimulatedFiles) -> None:
    files, host = fill(disk), RecordingHost()
    log = load(files, clean=True, log_start_offset=40, host=host)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (40, 40, 40)
    assert log.segments.base_offsets == [40]
    assert log.epochs.entries == [] and log.producers.active_producers == {}
    assert log.recovery_point <= 40
    host.delete_due(2**62)
    assert [name for name in names_in(files) if name.endswith(".log")] == [file_name(40, ".log")]
    assert append(log).first_offset == 40


def test_a_log_that_ends_at_its_log_start_is_kept(disk: SimulatedFiles) -> None:
    log = load(fill(disk), clean=True, log_start_offset=10)
    assert log.segments.base_offsets == [0, 3, 6, 9] and log.log_end_offset == 10


@pytest.mark.parametrize("tail", [b"torn", b"\0" * 100, b"\xff" * 100, batch(offset=10)[:-1]])
def test_a_tail_that_came_after_a_clean_shutdown_is_cut_before_anything_is_appended_to_it(disk: SimulatedFiles, tail: bytes) -> None:
    files = fill(disk)
    write_file(files, path(9, ".log"), files.read_bytes(path(9, ".log")) + tail)
    log = load(files, clean=True)
    append_to(log, 3)
    assert stripped(log) == [*TEN, b"10", b"11", b"12"]
    log.close(NOW)
    assert stripped(load(restarted(files))) == [*TEN, b"10", b"11", b"12"]


# -- indexes


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_index_is_rebuilt(disk: SimulatedFiles, suffix: str, clean: bool) -> None:
    files = fill(disk)
    before = files.read_bytes(path(3, suffix))
    files.remove(path(3, suffix))
    log = load(files, clean=clean, recovery_point=10)
    assert stripped(log) == TEN
    log.close(NOW)
    assert files.read_bytes(path(3, suffix)) == before


def test_all_indexes_may_be_missing(disk: SimulatedFiles) -> None:
    files = fill(disk)
    for name in names_in(files):
        if name.endswith("index"):
            files.remove(f"{DIRECTORY}/{name}")
    log = load(files, clean=True)
    assert stripped(log) == TEN
    assert [index_entries(segment) for segment in log.segments] == [[(n + 1, 100), (n + 2, 200)] for n in (0, 3, 6)] + [[]]
    assert [time_entries(segment)[-1][0] for segment in log.segments] == [NOW] * 4


def test_an_orphaned_index_is_removed(disk: SimulatedFiles) -> None:
    files = fill(disk)
    for suffix in (".index", ".timeindex", ".txnindex"):
        write_file(files, path(50, suffix), b"orphaned")
    log = load(files, clean=True)
    assert log.segments.base_offsets == [0, 3, 6, 9]
    assert not [name for name in names_in(files) if name.startswith(file_name(50, ""))]


@pytest.mark.parametrize("content", [b"torn", AbortedTxn(1, 0, 1, 2).encode() + b"x", b"\x7f" * 34, AbortedTxn(1, 0, 0, 0).encode()])
def test_a_corrupt_transaction_index_is_rebuilt(disk: SimulatedFiles, content: bytes) -> None:
    log = make_log(disk, SETTINGS)
    append_to(log, 2)
    producer = Producer(log, 7)
    producer.write()
    log.roll(NOW)
    producer.abort()
    log.roll(NOW)
    append(log)
    log.close(NOW)
    files = restarted(disk)
    write_file(files, path(3, ".txnindex"), content)
    assert load(files, clean=True).collect_aborted(0, 10) == [AbortedTxn(7, 2, 3, 4)]


def test_a_missing_index_of_a_segment_with_a_transaction_that_began_before_it_is_rebuilt(disk: SimulatedFiles) -> None:
    log = make_log(disk, SETTINGS)
    producer = Producer(log, 7)
    producer.write()
    log.roll(NOW)
    producer.abort()
    log.roll(NOW)
    append(log)
    log.close(NOW)
    files = restarted(disk)
    files.remove(path(1, ".index"))
    files.remove(path(1, ".txnindex"))
    assert load(files, clean=True).collect_aborted(0, 10) == [AbortedTxn(7, 0, 1, 2)]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("content", [b"", b"\xff" * 120, random.Random(5).randbytes(240), b"seven b"])
def test_a_garbage_index_is_healed_although_the_shutdown_was_clean(disk: SimulatedFiles, suffix: str, content: bytes) -> None:
    files = fill(disk)
    for base in (0, 3, 6, 9):
        write_file(files, path(base, suffix), content)
    log = load(files, clean=True)
    assert stripped(log) == TEN
    assert log.log_end_offset == 10
    append_to(log, 5)
    assert [o for o, _ in records(log)] == list(range(15))


def test_indexes_that_kafka_filled_up_with_zeros_are_trimmed(disk: SimulatedFiles) -> None:
    files = fill(disk)
    before = files.read_bytes(path(9, ".timeindex"))
    write_file(files, path(9, ".index"), bytes(10_485_760))
    write_file(files, path(9, ".timeindex"), before + bytes(10_485_756 - len(before)))
    log = load(files, clean=True)
    append_to(log, 1)
    log.close(NOW)
    assert stripped(load(restarted(files), clean=True)) == [*TEN, b"10"]
    assert files.size(path(9, ".timeindex")) < 100


# -- the producers


def test_the_producers_come_from_the_snapshot_of_a_clean_shutdown(disk: SimulatedFiles) -> None:
    log = make_log(disk, SETTINGS)
    for sequence in range(5):
        append(log, produced(7, sequence, size=100))
    log.close(NOW)
    files = restarted(disk)
    again = load(files, clean=True)
    entry = again.producers.last_entry(7)
    assert entry is not None and entry.last_sequence == 4 and again.producers.map_end_offset == 5


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [b"", b"garbage", b"\0" * 56])
def test_corrupt_snapshots_are_replaced_by_reading_the_log(disk: SimulatedFiles, content: bytes, clean: bool) -> None:
    log = make_log(disk, SETTINGS)
    for sequence in range(8):
        append(log, produced(7, sequence, size=100))
    log.close(NOW)
    files = restarted(disk)
    for name in names_in(files):
        if name.endswith(".snapshot"):
            write_file(files, f"{DIRECTORY}/{name}", content)
    again = load(files, clean=clean)
    entry = again.producers.last_entry(7)
    assert entry is not None and entry.last_sequence == 7
    assert len(records(again)) == 8


def test_missing_snapshots_after_a_crash_are_made_up_for_by_reading_the_log(disk: SimulatedFiles) -> None:
    log = make_log(disk, SETTINGS)
    for sequence in range(8):
        append(log, produced(7, sequence, size=100))
    files = restarted(disk)
    for name in names_in(files):
        if name.endswith(".snapshot"):
            files.remove(f"{DIRECTORY}/{name}")
    entry = load(files, recovery_point=8).producers.last_entry(7)
    assert entry is not None and entry.last_sequence == 7


def test_snapshots_that_belong_to_no_segment_are_removed(disk: SimulatedFiles) -> None:
    files = fill(disk)
    good = files.read_bytes(path(10, ".snapshot"))
    for offset in (1, 4, 5):
        write_file(files, path(offset, ".snapshot"), good)
    load(files, clean=True)
    assert [name for name in names_in(files) if name.endswith(".snapshot")] == [file_name(n, ".snapshot") for n in (3, 6, 9, 10)]


def test_an_expired_producer_is_forgotten_when_it_is_loaded(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    append(log, produced(7, 0))
    log.close(NOW)
    assert make_log(restarted(disk), clean=True, now_ms=NOW + 2 * 86_400_000).producers.active_producers == {}


def test_a_log_recovered_with_a_log_start_inside_a_transaction_is_sound(disk: SimulatedFiles) -> None:
    log = make_log(disk, SETTINGS)
    producer = Producer(log, 7)
    producer.write(2, size=100)
    producer.write(2, size=100)
    producer.abort()
    append_to(log, 2)
    again = load(restarted(disk), log_start_offset=3)
    commit_all(again)
    assert again.last_stable_offset == 7


# -- leader epochs and the topic id


def test_epochs_past_the_end_are_forgotten(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    append(log, epoch=1)
    log.epochs.assign(5, 9)
    assert make_log(restarted(disk)).epochs.entries == [EpochEntry(1, 0)]


def test_epochs_before_the_log_start_are_forgotten(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    for epoch in (1, 2, 3):
        append(log, epoch=epoch)
    log.close(NOW)
    assert make_log(restarted(disk), clean=True, log_start_offset=1).epochs.entries == [EpochEntry(2, 1), EpochEntry(3, 2)]


def test_lost_epochs_are_found_in_the_batches(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    for epoch in (1, 1, 3):
        append(log, epoch=epoch)
    files = restarted(disk)
    assert not files.exists(f"{DIRECTORY}/leader-epoch-checkpoint")
    assert make_log(files).epochs.entries == [EpochEntry(1, 0), EpochEntry(3, 2)]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [b"0\n1\nnonsense\n", b"\xff\xff", b"0\n2\n0 0\n", b"7\n0\n"])
def test_epochs_whose_checkpoint_is_damaged_are_found_in_the_batches(disk: SimulatedFiles, content: bytes, clean: bool) -> None:
    log = make_log(disk, SETTINGS)
    for epoch in (0, 0, 0, 0, 2, 2, 5, 5, 5, 5, 6):
        append(log, batch(size=100), epoch=epoch)
    log.close(NOW)
    files = restarted(disk)
    write_file(files, f"{DIRECTORY}/leader-epoch-checkpoint", content)
    found = load(files, clean=clean, recovery_point=11)
    assert found.epochs.entries == [EpochEntry(0, 0), EpochEntry(2, 4), EpochEntry(5, 6), EpochEntry(6, 10)]
    again = load(restarted(files), clean=True)  # they are on the disk again
    assert again.epochs.entries == found.epochs.entries


def test_segments_of_one_epoch_are_not_read_for_it(disk: SimulatedFiles) -> None:
    files = fill(disk)
    write_file(files, f"{DIRECTORY}/leader-epoch-checkpoint", b"nonsense")
    small = watch(files, "read", ".log")
    assert load(files, clean=True).epochs.entries == [EpochEntry(0, 0)]
    assert [event.path for event in small if event.size > 300] == []
    assert [event.path for event in small].count(path(3, ".log")) == 1  # its first batch


def test_a_corrupt_topic_id_is_an_error_that_names_file_and_line(disk: SimulatedFiles) -> None:
    files = fill(disk)
    write_file(files, f"{DIRECTORY}/partition.metadata", b"version: 0\ntopic_id: \n")
    with pytest.raises(CorruptCheckpoint, match=r"/data/orders-0/partition.metadata.* at line 2"):
        load(files, clean=True)


# -- directories of another kind


def test_a_directory_that_is_being_deleted_is_not_recovered(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    flip(files, path(3, ".log"), 150)
    files.rename(DIRECTORY, "/data/orders-0.abc-delete")
    log = load(files, directory="/data/orders-0.abc-delete")
    assert log.segments.base_offsets == [0, 3, 6, 9] and log.log_end_offset == 0
    log.delete()
    assert not files.exists("/data/orders-0.abc-delete")


def test_an_empty_directory_that_is_being_deleted_gets_a_segment(disk: SimulatedFiles) -> None:
    disk.make_dirs("/data/orders-0.abc-delete")
    assert load(disk, directory="/data/orders-0.abc-delete", log_start_offset=7).segments.base_offsets == [0]


def test_a_future_directory_is_an_ordinary_log(disk: SimulatedFiles) -> None:
    log = load(disk, directory="/data/orders-0.abc-future")
    append_to(log, 2)
    assert log.is_future and log.log_dir == "/data"
    assert stripped(log) == [b"0", b"1"]


def test_other_files_in_the_directory_are_left_alone(disk: SimulatedFiles) -> None:
    files = fill(disk)
    write_file(files, f"{DIRECTORY}/notes.txt", b"by hand")
    files.make_dirs(f"{DIRECTORY}/00000000000000000077.log")
    assert stripped(load(files, clean=True)) == TEN
    assert files.read_bytes(f"{DIRECTORY}/notes.txt") == b"by hand"


# -- descriptors


def test_a_log_that_cannot_be_loaded_leaves_no_file_open(tmp_path: Path) -> None:
    files = Files()
    directory = str(tmp_path / "orders-0")
    log = make_log(files, SETTINGS, directory=directory)
    append_to(log, 10)
    log.close(NOW)
    assert files.pool.open_count == 0
    (tmp_path / "orders-0" / "partition.metadata").write_text("nonsense")
    with pytest.raises(CorruptCheckpoint):
        make_log(files, SETTINGS, directory=directory)
    assert files.pool.open_count == 0


def test_a_closed_log_leaves_no_file_open(tmp_path: Path) -> None:
    files = Files()
    log = make_log(files, SETTINGS, directory=str(tmp_path / "orders-0"))
    append_to(log, 20)
    producer = Producer(log, 7)
    producer.write()
    producer.abort()
    records(log)
    log.truncate_to(15, NOW)
    log.close(NOW)
    log.close(NOW)
    open_paths = {file.path for file in files.pool._clock}
    assert all(path.endswith(".deleted") for path in open_paths)


def test_deleting_a_log_leaves_no_file_open_and_no_directory(tmp_path: Path) -> None:
    files, host = Files(), RecordingHost()
    log = make_log(files, SETTINGS, directory=str(tmp_path / "orders-0"), host=host)
    append_to(log, 20)
    log.truncate_to(10, NOW)
    log.rename_dir("orders-0.abc-delete")
    log.delete()
    host.delete_due(2**62)
    assert files.pool.open_count == 0
    assert list(tmp_path.iterdir()) == []


def test_a_renamed_log_goes_on_in_its_new_directory(disk: SimulatedFiles) -> None:
    host = RecordingHost()
    log = load(disk, host=host, directory="/data/orders-0.abc-future")
    append_to(log, 10)
    log.truncate_to(8, NOW)
    log.rename_dir("orders-0")
    append(log, produced(7, 0), epoch=5)
    log.roll(NOW)
    for _ in range(3):
        append(log, epoch=5)
    host.delete_due(2**62)
    assert log.directory == DIRECTORY
    assert not [name for name in names_in(disk) if name.endswith(".deleted") and "snapshot" not in name]
    log.close(NOW)
    again = load(restarted(disk), clean=True)
    assert [o for o, _ in records(again)] == list(range(12))
    assert again.epochs.entries == [EpochEntry(0, 0), EpochEntry(5, 8)]


def test_a_log_of_kafka_size_defaults_loads(disk: SimulatedFiles) -> None:
    log = make_log(disk, LogConfig())
    append_many(log, 3)
    log.close(NOW)
    assert len(read_batches(disk.read_bytes(path(0, ".log")))) == 3


def test_an_index_that_is_rebuilt_is_told(disk: SimulatedFiles, caplog: pytest.LogCaptureFixture) -> None:
    files = fill(disk)
    files.remove(path(3, ".index"))
    write_file(files, path(6, ".txnindex"), b"garbage")
    load(files, clean=True, recovery_point=10)
    missing, corrupt = [message for message in caplog.messages if message.endswith("recovering segment and rebuilding index files...")]
    assert missing.startswith(f"Could not find offset index file corresponding to log file {path(3, '.log')}, ")
    assert corrupt.startswith(f"Found a corrupted index file corresponding to log file {path(6, '.log')} due to ")
