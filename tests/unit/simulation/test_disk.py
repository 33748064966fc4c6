"""The simulated disk: the same as the real one while all goes well, and as bad as a real one may be when it does not."""

from __future__ import annotations

import errno
import os
import random
import shutil
import tempfile
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.simulation.disk import SimulatedCrash, SimulatedFiles
from barnabas.storage.disk.files import AnyFile, AnyFiles, Files

SEEDS = range(300)


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


def durable_file(disk: SimulatedFiles, path: str, content: bytes) -> AnyFile:
    file = disk.open(path, create=True)
    file.append_bytes(content)
    file.sync()
    disk.sync_dir(os.path.dirname(path))
    return file


def contents_after_crashes(disk: SimulatedFiles, path: str) -> set[bytes | None]:
    """What the file may hold after a machine crash; None: it is not there."""
    contents: set[bytes | None] = set()
    for seed in SEEDS:
        survivor = disk.crash(random.Random(seed))
        contents.add(survivor.read_bytes(path) if survivor.exists(path) else None)
    return contents


# -- the same as the real disk

NAMES = ["a", "b", "a/c", "b/c", "d", "d/e", "d/e/f", "missing/x"]
names = st.sampled_from(NAMES)
contents = st.binary(max_size=40)
Outcome = tuple[str, object]


class BothDisks(RuleBasedStateMachine):
    """Does the same to a real directory and to a simulated one, and expects the same of both."""

    def __init__(self) -> None:
        super().__init__()
        self.root = tempfile.mkdtemp()
        self.disks: tuple[AnyFiles, AnyFiles] = (Files(), SimulatedFiles())
        self.disks[1].make_dirs(self.root)
        self.handles: dict[str, tuple[AnyFile, AnyFile]] = {}

    def teardown(self) -> None:
        for path in list(self.handles):
            self.drop(path)
        shutil.rmtree(self.root)

    def both(self, work: Callable[[AnyFiles], object]) -> Outcome:
        real, simulated = outcome_of(lambda: work(self.disks[0])), outcome_of(lambda: work(self.disks[1]))
        assert real == simulated
        return real

    def drop(self, path: str) -> None:
        """Closes the handles of a path and of everything below it."""
        for other in [other for other in self.handles if other == path or other.startswith(path + "/")]:
            for file in self.handles.pop(other):
                file.close()

    @rule(name=names, create=st.booleans(), truncate=st.booleans())
    def open(self, name: str, create: bool, truncate: bool) -> None:
        path = f"{self.root}/{name}"
        self.drop(path)
        files: list[AnyFile] = []

        def work(disk: AnyFiles) -> int:
            files.append(disk.open(path, create=create, truncate=truncate))
            return files[-1].size

        if self.both(work)[0] == "gave":
            self.handles[path] = (files[0], files[1])

    @rule(data=st.data())
    def use_a_file(self, data: st.DataObject) -> None:
        if not self.handles:
            return
        path = data.draw(st.sampled_from(sorted(self.handles)))
        real, simulated = self.handles[path]
        kind = data.draw(st.sampled_from(["append", "append_bytes", "write_at", "pread", "pread_nowait", "truncate", "sync"]))
        content, number, size = data.draw(contents), data.draw(st.integers(-1, 60)), data.draw(st.integers(-1, 60))
        arguments: tuple[object, ...] = {
            "append": ([content, memoryview(content)],),
            "append_bytes": (content,),
            "write_at": (content, number),
            "pread": (size, number),
            "pread_nowait": (size, number),
            "truncate": (number,),
        }.get(kind, ())
        assert outcome_of(lambda: getattr(real, kind)(*arguments)) == outcome_of(lambda: getattr(simulated, kind)(*arguments))
        assert (real.size, real.path) == (simulated.size, simulated.path)

    @rule(name=names)
    def close_and_use(self, name: str) -> None:
        pair = self.handles.pop(f"{self.root}/{name}", None)
        if pair is not None:
            for file in pair:
                file.close()
            assert outcome_of(lambda: pair[0].append_bytes(b"x")) == outcome_of(lambda: pair[1].append_bytes(b"x"))

    @rule(src=names, dst=names)
    def rename(self, src: str, dst: str) -> None:
        old, new = f"{self.root}/{src}", f"{self.root}/{dst}"
        if self.both(lambda disk: disk.rename(old, new))[0] == "gave" and old != new:
            self.drop(new)
            for path in [path for path in self.handles if path == old or path.startswith(old + "/")]:
                self.handles[new + path[len(old) :]] = self.handles.pop(path)
                for file in self.handles[new + path[len(old) :]]:
                    file.renamed(new + path[len(old) :])

    @rule(name=names, missing_ok=st.booleans())
    def remove(self, name: str, missing_ok: bool) -> None:
        path = f"{self.root}/{name}"
        if self.both(lambda disk: disk.remove(path, missing_ok=missing_ok))[0] == "gave":
            self.drop(path)

    @rule(name=names)
    def remove_tree(self, name: str) -> None:
        path = f"{self.root}/{name}"
        if self.both(lambda disk: disk.remove_tree(path))[0] == "gave":
            self.drop(path)

    @rule(name=names)
    def make_dirs(self, name: str) -> None:
        self.both(lambda disk: disk.make_dirs(f"{self.root}/{name}"))

    @rule(name=names, content=contents)
    def write_atomically(self, name: str, content: bytes) -> None:
        path = f"{self.root}/{name}"
        self.drop(path)
        self.both(lambda disk: disk.write_atomically(path, content, sync=False))

    @rule(name=names, time=st.integers(0, 2**40))
    def touch(self, name: str, time: int) -> None:
        path = f"{self.root}/{name}"
        if not self.disks[0].is_dir(path):
            self.both(lambda disk: disk.set_modified_ms(path, time))
            self.both(lambda disk: disk.modified_ms(path))

    @rule(name=names, limit=st.integers(0, 60))
    def read(self, name: str, limit: int) -> None:
        self.both(lambda disk: disk.read_bytes(f"{self.root}/{name}", limit))

    @rule(name=names)
    def look(self, name: str) -> None:
        path = f"{self.root}/{name}"
        self.both(lambda disk: (disk.exists(path), disk.is_dir(path)))
        self.both(lambda disk: disk.list_dir(path))
        self.both(lambda disk: disk.sync_dir(path))
        if not self.disks[0].is_dir(path):
            self.both(lambda disk: disk.size(path))
            self.both(lambda disk: disk.sync_file(path))

    @invariant()
    def both_hold_the_same(self) -> None:
        trees = [dict(walk(disk, self.root)) for disk in self.disks]
        assert trees[0] == trees[1]


def outcome_of(work: Callable[[], object]) -> Outcome:
    try:
        return "gave", work()
    except OSError as error:
        return "raised", (type(error), error.errno)
    except ValueError as error:
        return "raised", str(error)


def walk(disk: AnyFiles, path: str) -> list[tuple[str, bytes | None]]:
    entries: list[tuple[str, bytes | None]] = []
    for entry in disk.list_dir(path):
        child = os.path.join(path, entry.name)
        entries += [(child, None), *walk(disk, child)] if entry.is_dir else [(child, disk.read_bytes(child))]
    return entries


TestBothDisksAreTheSame = BothDisks.TestCase
TestBothDisksAreTheSame.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


# -- crashes: data


def test_what_was_synced_survives_and_what_was_not_may_be_lost_torn_or_zero(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"synced")
    file.append_bytes(b"WRITTEN")
    contents = contents_after_crashes(disk, "/log")
    assert all(content is not None and content.startswith(b"synced") for content in contents)
    assert {b"synced", b"syncedWRITTEN", b"synced" + bytes(7), b"syncedW", b"syncedWRITTE"} <= contents


def test_any_of_several_writes_may_survive_without_the_others(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"")
    for content in (b"aa", b"bb", b"cc"):
        file.append_bytes(content)
    contents = contents_after_crashes(disk, "/log")
    assert {b"", b"aabbcc", b"\0\0bbcc", b"aa\0\0cc", b"\0\0\0\0cc", b"aabb", b"aabbc"} <= contents


def test_a_large_write_may_survive_page_by_page(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"")
    file.append_bytes(b"a" * 4096 * 3)
    page, hole = b"a" * 4096, bytes(4096)
    assert {page + hole + page, hole + hole + page, hole + page} <= contents_after_crashes(disk, "/log")


def test_an_overwrite_that_was_not_synced_leaves_old_or_new_bytes(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"12345")
    file.write_at(b"ab", 1)
    assert contents_after_crashes(disk, "/log") == {b"12345", b"1ab45", b"1a345"}


def test_a_truncation_that_was_not_synced_may_be_undone(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"12345")
    file.truncate(2)
    assert contents_after_crashes(disk, "/log") == {b"12345", b"12"}
    file.sync()
    assert contents_after_crashes(disk, "/log") == {b"12"}


def test_what_was_written_before_a_sync_that_failed_stays_uncertain_for_good(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"")
    file.append_bytes(b"aa")
    disk.fail_next("sync")
    with pytest.raises(OSError):
        file.sync()
    file.append_bytes(b"bb")
    file.sync()
    contents = contents_after_crashes(disk, "/log")
    assert all(content is not None and content.endswith(b"bb") for content in contents)
    assert {b"aabb", b"\0\0bb"} <= contents


def test_sync_file_makes_the_content_durable(disk: SimulatedFiles) -> None:
    durable_file(disk, "/log", b"").append_bytes(b"abc")
    disk.sync_file("/log")
    assert contents_after_crashes(disk, "/log") == {b"abc"}


# -- crashes: names


def test_a_new_file_may_be_gone_until_its_directory_was_synced(disk: SimulatedFiles) -> None:
    file = disk.open("/log", create=True)
    file.append_bytes(b"abc")
    file.sync()
    assert contents_after_crashes(disk, "/log") == {None, b"abc"}
    disk.sync_dir("/")
    assert contents_after_crashes(disk, "/log") == {b"abc"}


def test_a_removed_file_may_be_back_until_its_directory_was_synced(disk: SimulatedFiles) -> None:
    durable_file(disk, "/log", b"abc")
    disk.remove("/log")
    assert contents_after_crashes(disk, "/log") == {None, b"abc"}
    disk.sync_dir("/")
    assert contents_after_crashes(disk, "/log") == {None}


def test_a_crash_keeps_the_first_so_many_of_the_operations_on_names(disk: SimulatedFiles) -> None:
    for name in "abc":
        disk.open(f"/{name}", create=True)
    disk.rename("/a", "/d")
    listings = {"".join(entry.name for entry in disk.crash(random.Random(seed)).list_dir("/")) for seed in SEEDS}
    assert listings == {"", "a", "ab", "abc", "bcd"}


def test_syncing_a_directory_leaves_later_changes_elsewhere_at_risk(disk: SimulatedFiles) -> None:
    disk.make_dirs("/x")
    disk.open("/x/early", create=True)
    disk.open("/here", create=True)
    disk.open("/x/late", create=True)
    disk.sync_dir("/")
    listings = {tuple(entry.name for entry in disk.crash(random.Random(seed)).list_dir("/x")) for seed in SEEDS}
    assert listings == {("early",), ("early", "late")}


def test_a_renamed_directory_takes_its_files_along(disk: SimulatedFiles) -> None:
    disk.make_dirs("/t-0")
    durable_file(disk, "/t-0/log", b"abc")
    disk.sync_dir("/")
    disk.rename("/t-0", "/t-0.delete")
    disk.make_dirs("/t-0")
    for seed in SEEDS:
        survivor = disk.crash(random.Random(seed))
        assert [survivor.exists("/t-0/log"), survivor.exists("/t-0.delete/log")].count(True) == 1


def test_a_rename_without_a_sync_of_the_data_may_leave_an_empty_or_short_file(disk: SimulatedFiles) -> None:
    disk.write_atomically("/checkpoint", b"old")
    disk.write_atomically("/checkpoint", b"new", sync=False)
    assert {b"old", b"new", b"", b"ne"} <= contents_after_crashes(disk, "/checkpoint")


def test_a_crash_anywhere_in_an_atomic_write_leaves_the_old_or_the_new_content() -> None:
    contents: set[bytes] = set()
    for steps in range(1, 8):
        disk = SimulatedFiles()
        disk.write_atomically("/checkpoint", b"old")
        disk.halt_at(disk.events + steps)
        try:
            disk.write_atomically("/checkpoint", b"new and longer")
            assert contents_after_crashes(disk, "/checkpoint") == {b"new and longer"}
        except SimulatedCrash:
            contents |= {content for content in contents_after_crashes(disk, "/checkpoint") if content is not None}
            assert None not in contents_after_crashes(disk, "/checkpoint")
    assert contents == {b"old", b"new and longer"}


# -- crashes: in general


def test_a_crash_is_decided_by_its_seed_alone(disk: SimulatedFiles) -> None:
    file = disk.open("/log", create=True)
    for n in range(20):
        file.append_bytes(b"%04d" % n)
    for seed in SEEDS:
        assert walk(disk.crash(random.Random(seed)), "/") == walk(disk.crash(random.Random(seed)), "/")


def test_a_crash_leaves_the_disk_it_was_asked_of_untouched(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"abc")
    file.append_bytes(b"def")
    disk.crash(random.Random(1)).open("/log").truncate(0)
    assert disk.read_bytes("/log") == b"abcdef"
    file.append_bytes(b"ghi")
    assert disk.read_bytes("/log") == b"abcdefghi"


def test_what_a_machine_crash_left_is_durable(disk: SimulatedFiles) -> None:
    disk.open("/log", create=True).append_bytes(b"abc")
    for seed in SEEDS:
        survivor = disk.crash(random.Random(seed))
        assert walk(survivor.crash(random.Random(seed + 1)), "/") == walk(survivor, "/")


def test_a_process_crash_keeps_everything_but_makes_nothing_durable(disk: SimulatedFiles) -> None:
    durable_file(disk, "/log", b"abc").append_bytes(b"def")
    disk.rename("/log", "/renamed")
    disk.lock("/.lock")
    survivor = disk.process_crash()
    assert survivor.read_bytes("/renamed") == b"abcdef"
    assert contents_after_crashes(survivor, "/renamed") == contents_after_crashes(disk, "/renamed")
    survivor.lock("/.lock")
    survivor.open("/renamed").append_bytes(b"ghi")
    assert disk.read_bytes("/renamed") == b"abcdef"
    survivor.sync_file("/renamed")
    survivor.sync_dir("/")
    assert contents_after_crashes(survivor, "/renamed") == {b"abcdefghi"}


def test_a_halted_disk_does_nothing_any_more(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"abc")
    disk.halt_at(disk.events + 2)
    file.append_bytes(b"d")
    works: list[Callable[[], object]] = [
        lambda: file.append_bytes(b"e"),
        lambda: file.truncate(0),
        file.sync,
        lambda: disk.rename("/log", "/x"),
        lambda: disk.remove("/log"),
        lambda: disk.write_atomically("/log", b"x"),
        lambda: disk.sync_dir("/"),
    ]
    for work in works:
        with pytest.raises(SimulatedCrash):
            work()
    assert walk(disk.process_crash(), "/") == [("/log", b"abcd")]


# -- faults


@pytest.mark.parametrize("kind", ["write", "sync", "read", "truncate"])
def test_a_fault_of_a_file_is_an_os_error_once(disk: SimulatedFiles, kind: str) -> None:
    file = durable_file(disk, "/log", b"abc")
    works: dict[str, Callable[[], object]] = {
        "write": lambda: file.append_bytes(b"d"),
        "sync": file.sync,
        "read": lambda: file.pread(3, 0),
        "truncate": lambda: file.truncate(1),
    }
    disk.fail_when(lambda event: event.kind == kind, errno.EIO, times=1)
    with pytest.raises(OSError) as failure:
        works[kind]()
    assert (failure.value.errno, failure.value.filename) == (errno.EIO, "/log")
    assert disk.read_bytes("/log") == b"abc"
    works[kind]()


def test_faults_last_until_the_disk_is_healed(disk: SimulatedFiles) -> None:
    disk.fail_when(lambda event: event.path.startswith("/bad"))
    for _ in range(3):
        with pytest.raises(OSError):
            disk.open("/bad", create=True)
    disk.open("/good", create=True)
    disk.heal()
    disk.open("/bad", create=True)


def test_a_refused_write_is_cut_off_again(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"abc")
    disk.fail_next("write")
    with pytest.raises(OSError):
        file.append([b"defg", b"hijk"])
    assert (file.size, disk.read_bytes("/log")) == (3, b"abc")
    assert file.append_bytes(b"x") == 3


def test_a_refused_write_that_cannot_be_cut_off_leaves_a_tail_that_is_overwritten(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"abc")
    disk.fail_when(lambda event: event.kind in ("write", "truncate"), times=2)
    with pytest.raises(OSError):
        file.append_bytes(b"defghi")
    assert disk.read_bytes("/log") == b"abcdef"
    assert (file.size, file.pread(9, 0)) == (3, b"abc")
    file.append_bytes(b"X")
    assert file.pread(9, 0) == b"abcX"


def test_a_full_disk_takes_what_fits_and_refuses_the_rest(disk: SimulatedFiles) -> None:
    disk.capacity = 10
    file = disk.open("/log", create=True)
    file.append_bytes(b"12345678")
    assert disk.free_bytes("/") == 2
    with pytest.raises(OSError) as failure:
        file.append_bytes(b"abcdef")
    assert failure.value.errno == errno.ENOSPC
    assert disk.read_bytes("/log") == b"12345678"
    file.write_at(b"xx", 0)
    file.append_bytes(b"90")
    assert (disk.free_bytes("/"), file.pread(99, 0)) == (0, b"xx34567890")


def test_a_full_disk_has_room_again_once_something_is_removed_truncated_or_replaced(disk: SimulatedFiles) -> None:
    disk.capacity = 10
    for name in "abc":
        disk.open(f"/{name}", create=True).append_bytes(b"123")
    disk.remove("/a")
    assert disk.free_bytes("/") == 4
    disk.rename("/b", "/c")
    assert disk.free_bytes("/") == 7
    disk.open("/c").truncate(1)
    assert disk.free_bytes("/") == 9
    assert disk.crash(random.Random(1)).free_bytes("/") >= 1


def test_the_partial_write_of_a_full_disk_may_be_found_after_a_crash(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"abc")
    disk.capacity = 5
    with pytest.raises(OSError):
        file.append_bytes(b"defghi")
    assert {b"abc", b"abcde"} <= contents_after_crashes(disk, "/log")


def test_a_read_may_be_said_to_wait(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"abc")
    disk.fail_next("read_nowait", errno.EAGAIN)
    assert file.pread_nowait(3, 0) is None
    assert file.pread_nowait(3, 0) == b"abc"


def test_a_file_that_was_not_told_of_its_new_name_is_found_out(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"abc")
    disk.rename("/log", "/log.deleted")
    with pytest.raises(AssertionError, match=r"/log is now /log\.deleted, but the open file still has the old name"):
        file.append_bytes(b"d")
    file.renamed("/log.deleted")
    file.append_bytes(b"d")


def test_a_removed_file_can_be_used_until_it_is_closed(disk: SimulatedFiles) -> None:
    file = durable_file(disk, "/log", b"abc")
    disk.remove("/log")
    file.append_bytes(b"d")
    assert file.pread(9, 0) == b"abcd"
    file.pin()
    file.close()
    assert file.pread(9, 0) == b"abcd"
    file.unpin()
    with pytest.raises(ValueError, match="is closed"):
        file.pread(9, 0)


def test_a_file_opened_for_reading_cannot_be_written(disk: SimulatedFiles) -> None:
    durable_file(disk, "/log", b"abc")
    with pytest.raises(OSError):
        disk.open("/log", writable=False).append_bytes(b"d")


def test_times_of_modification_come_from_the_given_clock() -> None:
    now = 1000
    disk = SimulatedFiles(clock=lambda: now)
    file = disk.open("/log", create=True)
    assert disk.modified_ms("/log") == 1000
    now = 2000
    file.append_bytes(b"abc")
    assert disk.modified_ms("/log") == 2000
    disk.set_modified_ms("/log", 5)
    assert disk.modified_ms("/log") == disk.process_crash().modified_ms("/log") == 5


def test_a_lock_is_held_by_one_until_it_is_released(disk: SimulatedFiles) -> None:
    lock = disk.lock("/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock("/.lock")
    lock.release()
    lock.release()
    disk.lock("/.lock")
    lock.release()
    with pytest.raises(BlockingIOError):
        disk.lock("/.lock")
