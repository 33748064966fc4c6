"""The door to the disk: what a write, a read, a rename and the limit on descriptors promise."""

from __future__ import annotations

import errno
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.storage.disk.files import DirEntry, FilePool, Files


@pytest.fixture
def files() -> Files:
    return Files(FilePool(max_open=4))


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "00000000000000000000.log")


@pytest.fixture
def file_size_limit() -> Iterator[int]:
    """A write across this many bytes is cut short there, and one beyond it fails, as on a full disk."""
    limit = 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_append_returns_where_it_starts_and_grows_the_size(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    assert file.append([b"abc", memoryview(b"defg")]) == 0
    assert file.append_bytes(b"hi") == 7
    assert file.size == 9
    assert Path(path).read_bytes() == b"abcdefghi"


def test_an_append_of_more_buffers_than_the_kernel_takes_at_once_is_whole(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.append([bytes([n % 256]) for n in range(3000)])
    assert Path(path).read_bytes() == bytes(n % 256 for n in range(3000))


def test_a_short_write_is_completed(files: Files, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real_pwritev, real_pwrite = os.pwritev, os.pwrite
    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, at: real_pwritev(fd, [bytes(buffers[0])[:2]], at))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real_pwrite(fd, bytes(data)[:3], at))
    file = files.open(path, create=True)
    file.append([b"abcd", b"efghijkl"])
    file.append_bytes(b"mnopqrst")
    assert Path(path).read_bytes() == b"abcdefghijklmnopqrst"


def test_a_write_that_writes_nothing_is_an_error_and_no_endless_loop(files: Files, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = files.open(path, create=True)
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: 0)
    with pytest.raises(OSError, match="a write wrote nothing"):
        file.append_bytes(b"abc")


@pytest.mark.parametrize("method", ["append", "append_bytes"])
def test_a_failed_append_leaves_no_partial_tail(files: Files, path: str, file_size_limit: int, method: str) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"a" * 6000)
    with pytest.raises(OSError) as failure:
        file.append([b"b" * 3000, b"c" * 3000]) if method == "append" else file.append_bytes(b"b" * 6000)
    assert failure.value.errno == errno.EFBIG
    assert file.size == 6000
    assert Path(path).read_bytes() == b"a" * 6000


def test_after_a_failed_append_the_file_goes_on_where_it_was(files: Files, path: str, file_size_limit: int) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"a" * 6000)
    with pytest.raises(OSError):
        file.append_bytes(b"b" * 6000)
    assert file.append_bytes(b"c" * 4000) == 6000
    assert Path(path).read_bytes() == b"a" * 6000 + b"c" * 4000


def test_a_partial_tail_that_cannot_be_cut_off_is_never_read_and_is_overwritten(
    files: Files, path: str, file_size_limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"a" * 9000)

    def refuse(descriptor: int, size: int) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "ftruncate", refuse)
    with pytest.raises(OSError) as failure:
        file.append([b"b" * 6000])
    assert failure.value.errno == errno.EFBIG
    assert os.path.getsize(path) == 10_000
    assert file.pread(2000, 8999) == b"a"
    file.append_bytes(b"c" * 1000)
    assert file.pread(2000, 8999) == b"a" + b"c" * 1000


def test_a_read_ends_at_the_end_of_the_file(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    assert file.pread(4, 2) == b"2345"
    assert file.pread(100, 7) == b"789"
    assert file.pread(1, 10) == b""
    assert file.pread(1, 11) == b""


def test_an_absurd_read_allocates_no_more_than_the_file_holds(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    assert file.pread(2**62, 5) == b"56789"
    assert file.pread_nowait(2**62, 5) == b"56789"


def test_a_negative_read_is_refused(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    for size, position in ((-1, 0), (1, -1)):
        with pytest.raises(ValueError, match="cannot read"):
            file.pread(size, position)
        with pytest.raises(ValueError, match="cannot read"):
            file.pread_nowait(size, position)


def test_a_short_read_is_completed(files: Files, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    real_pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: real_pread(fd, min(size, 3), at))
    assert file.pread(8, 1) == b"12345678"


def test_a_file_that_was_cut_by_someone_else_reads_short(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    os.truncate(path, 4)
    assert file.pread(8, 1) == b"123"


def test_a_read_that_may_not_wait_gives_what_is_cached(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    content = os.urandom(3_000_000)
    file.append_bytes(content)
    assert file.pread_nowait(2_999_990, 5) == content[5:2_999_995]


@pytest.mark.linux
def test_a_read_that_would_wait_gives_none(files: Files, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def would_block(*_: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "not cached")

    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    monkeypatch.setattr(os, "preadv", would_block)
    assert file.pread_nowait(4, 2) is None
    monkeypatch.undo()
    assert file.pread_nowait(4, 2) == b"2345"


@pytest.mark.linux
def test_a_read_of_which_only_the_beginning_is_cached_gives_none(files: Files, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, at, flags: 3)
    assert file.pread_nowait(4, 2) is None


@pytest.mark.linux
@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.EINVAL])
def test_where_the_file_system_cannot_tell_what_is_cached_the_read_waits(
    files: Files, path: str, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    sizes = []

    def unsupported(*_: object) -> int:
        sizes.append(1)
        raise OSError(error, "unsupported")

    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    monkeypatch.setattr(os, "preadv", unsupported)
    assert file.pread_nowait(4, 2) == b"2345"
    assert file.pread_nowait(4, 3) == b"3456"
    assert len(sizes) == 1


@pytest.mark.linux
def test_an_io_error_of_a_read_that_may_not_wait_is_raised(files: Files, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "broken")

    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    monkeypatch.setattr(os, "preadv", broken)
    with pytest.raises(OSError, match="broken"):
        file.pread_nowait(4, 2)


def test_a_part_that_is_cached_can_be_sent_from_the_descriptor(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    file.pin()
    descriptor = file.cached_descriptor(4, 6)
    assert os.pread(descriptor, 4, 6) == b"6789"
    file.unpin()


@pytest.mark.parametrize(("size", "position"), [(5, 6), (0, 3), (4, -1), (1, 10)])
def test_a_part_that_the_file_does_not_have_cannot_be_sent(files: Files, path: str, size: int, position: int) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    file.pin()
    assert file.cached_descriptor(size, position) == -1
    file.unpin()


@pytest.mark.linux
@pytest.mark.parametrize("error", [errno.EAGAIN, errno.EOPNOTSUPP, errno.EIO])
def test_a_part_that_would_have_to_be_waited_for_is_not_sent(files: Files, path: str, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    def refused(*_: object) -> int:
        raise OSError(error, "refused")

    file = files.open(path, create=True)
    file.append_bytes(b"0123456789")
    file.pin()
    monkeypatch.setattr(os, "preadv", refused)
    assert file.cached_descriptor(4, 2) == -1
    file.unpin()


def test_write_at_overwrites_and_grows_but_leaves_no_gap(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.write_at(b"abcd", 0)
    file.write_at(b"XYZ", 3)
    assert (file.size, Path(path).read_bytes()) == (6, b"abcXYZ")
    with pytest.raises(ValueError, match="outside the file of 6 bytes"):
        file.write_at(b"a", 7)


def test_truncate_cuts_and_never_grows(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"abcdef")
    file.truncate(2)
    assert (file.size, Path(path).read_bytes()) == (2, b"ab")
    with pytest.raises(ValueError, match="cannot be truncated to 3"):
        file.truncate(3)
    assert file.append_bytes(b"x") == 2


def test_opening_a_missing_file_fails_at_once(files: Files, path: str) -> None:
    with pytest.raises(FileNotFoundError):
        files.open(path)


def test_opening_a_directory_fails_at_once(files: Files, tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        files.open(str(tmp_path))


def test_opening_with_truncate_empties_the_file(files: Files, path: str) -> None:
    Path(path).write_bytes(b"old")
    assert files.open(path, create=True, truncate=True).size == 0
    assert Path(path).read_bytes() == b""


def test_a_file_opened_for_reading_cannot_be_written(files: Files, path: str) -> None:
    Path(path).write_bytes(b"old")
    file = files.open(path, writable=False)
    assert file.pread(3, 0) == b"old"
    with pytest.raises(OSError):
        file.append_bytes(b"new")
    assert file.size == 3


def test_opening_files_opens_no_descriptor(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"abc")
    files = Files()
    opened = [files.open(str(tmp_path / "log")) for _ in range(10_000)]
    assert files.pool.open_count == 0
    assert opened[-1].size == 3


def test_no_more_descriptors_than_allowed_stay_open_and_every_file_still_reads(files: Files, tmp_path: Path) -> None:
    opened = [files.open(str(tmp_path / str(n)), create=True) for n in range(50)]
    for n, file in enumerate(opened):
        file.append_bytes(b"%d" % n)
    assert files.pool.open_count <= 4
    assert [file.pread(10, 0) for file in opened] == [b"%d" % n for n in range(50)]
    assert files.pool.open_count <= 4


def test_the_file_in_use_keeps_its_descriptor_while_others_come_and_go(files: Files, tmp_path: Path) -> None:
    active = files.open(str(tmp_path / "active"), create=True)
    descriptor = active.descriptor
    for n in range(50):
        active.append_bytes(b"x")
        files.open(str(tmp_path / str(n)), create=True)
    assert active.descriptor == descriptor


def test_a_pinned_descriptor_is_never_closed(files: Files, tmp_path: Path) -> None:
    pinned = [files.open(str(tmp_path / f"pinned{n}"), create=True) for n in range(4)]
    for file in pinned:
        file.pin()
    descriptors = [file.descriptor for file in pinned]
    for n in range(10):
        files.open(str(tmp_path / str(n)), create=True).append_bytes(b"x")
    assert [file.descriptor for file in pinned] == descriptors
    for file in pinned:
        file.unpin()
    for n in range(10):
        files.open(str(tmp_path / str(n))).pread(1, 0)
    assert files.pool.open_count <= 4


def test_a_file_closed_while_pinned_stays_usable_until_it_is_unpinned(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"abc")
    file.pin()
    file.close()
    os.unlink(path)
    assert file.pread(3, 0) == b"abc"
    file.sync()
    file.unpin()
    assert files.pool.open_count == 0
    with pytest.raises(ValueError, match="is closed"):
        file.pread(3, 0)


def test_a_closed_file_gives_its_descriptor_back_and_refuses_work(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"abc")
    file.close()
    file.close()
    assert files.pool.open_count == 0
    for work in (lambda: file.append_bytes(b"x"), lambda: file.pread(1, 0), file.sync, file.pin):
        with pytest.raises(ValueError, match="is closed"):
            work()


def test_when_the_process_runs_out_of_descriptors_others_are_closed_instead_of_failing(tmp_path: Path) -> None:
    """In a process of its own, as the limit is the process's."""
    script = f"""
import resource
import stat
from barnabas.storage.disk.files import Files, FilePool
pool = FilePool(max_open=1000)
pool.max_open = 1000
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
files = Files(pool)
opened = [files.open({str(tmp_path)!r} + "/%d" % n, create=True) for n in range(200)]
for file in opened: file.append_bytes(b"x")
print(sum(len(file.pread(9, 0)) for file in opened))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout.strip() == "200", done.stderr


def test_the_pool_leaves_half_of_the_descriptors_of_the_process_to_others() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert FilePool(max_open=10**9).max_open <= soft // 2


def test_a_renamed_file_keeps_working_and_is_found_under_its_new_name(files: Files, path: str, tmp_path: Path) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"abc")
    files.rename(path, path + ".deleted")
    file.renamed(path + ".deleted")
    file.append_bytes(b"d")
    for n in range(20):
        files.open(str(tmp_path / str(n)), create=True)
    assert file.descriptor < 0  # evicted: it must be opened again by its new name
    assert file.pread(9, 0) == b"abcd"


def test_a_removed_file_can_be_read_until_it_is_closed(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.append_bytes(b"abc")
    assert files.remove(path)
    assert file.pread(9, 0) == b"abc"


def test_files_can_be_synced_from_threads_while_the_loop_opens_and_evicts_others(files: Files, tmp_path: Path) -> None:
    opened = [files.open(str(tmp_path / str(n)), create=True) for n in range(16)]
    failures: list[BaseException] = []

    def sync_all() -> None:
        try:
            for _ in range(5):
                for file in opened:
                    file.sync()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=sync_all) for _ in range(3)]
    for thread in threads:
        thread.start()
    written = 0
    while any(thread.is_alive() for thread in threads):
        for file in opened:
            file.append_bytes(b"x")
            assert file.pread(1, file.size - 1) == b"x"
        written += 1
    assert failures == []
    assert all(file.size == written for file in opened)


def test_threads_with_files_of_their_own_never_meet_in_a_descriptor(tmp_path: Path) -> None:
    """As when several logs are recovered at once: each thread's opens evict the descriptors of the others."""
    files = Files(FilePool(max_open=3))
    failures: list[BaseException] = []

    def write_and_read(thread: int) -> None:
        try:
            own = [files.open(str(tmp_path / f"{thread}-{n}"), create=True) for n in range(4)]
            for _ in range(150):
                for n, file in enumerate(own):
                    start = file.append([b"%d-%d;" % (thread, n)])
                    assert file.pread(4, start) == b"%d-%d;" % (thread, n)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=write_and_read, args=(number,)) for number in range(4)]
    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch_interval)
    assert failures == []
    for number in range(4):
        for n in range(4):
            assert (tmp_path / f"{number}-{n}").read_bytes() == b"%d-%d;" % (number, n) * 150


def test_list_dir_is_sorted_and_knows_sizes(files: Files, tmp_path: Path) -> None:
    (tmp_path / "b.log").write_bytes(b"12345")
    (tmp_path / "a").mkdir()
    (tmp_path / "c").symlink_to("/nowhere/at/all")
    assert files.list_dir(str(tmp_path)) == [DirEntry("a", 0, True), DirEntry("b.log", 5, False)]


def test_modified_time_is_in_milliseconds(files: Files, path: str) -> None:
    files.open(path, create=True)
    files.set_modified_ms(path, 1_700_000_000_123)
    assert files.modified_ms(path) == 1_700_000_000_123


def test_a_missing_file_is_removed_only_if_that_is_said_to_be_fine(files: Files, path: str) -> None:
    assert files.remove(path, missing_ok=True) is False
    with pytest.raises(FileNotFoundError):
        files.remove(path)


def test_a_file_larger_than_the_limit_is_not_read_into_memory(files: Files, path: str) -> None:
    with open(path, "wb") as sparse:
        sparse.truncate(2**40)
    with pytest.raises(OSError) as failure:
        files.read_bytes(path)
    assert failure.value.errno == errno.EFBIG


def test_write_atomically_replaces_the_content_and_leaves_no_temporary_file(files: Files, path: str, tmp_path: Path) -> None:
    files.write_atomically(path, b"one")
    files.write_atomically(path, b"two")
    assert files.read_bytes(path) == b"two"
    assert os.listdir(tmp_path) == [os.path.basename(path)]
    assert files.pool.open_count == 0


def test_a_write_atomically_that_fails_leaves_the_old_content(files: Files, path: str, file_size_limit: int, tmp_path: Path) -> None:
    files.write_atomically(path, b"old")
    with pytest.raises(OSError):
        files.write_atomically(path, b"x" * 20_000)
    assert files.read_bytes(path) == b"old"
    assert os.listdir(tmp_path) == [os.path.basename(path)]


@pytest.mark.linux
def test_write_atomically_syncs_the_data_before_the_rename_and_the_directory_after(
    files: Files, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def recorded(name: str, real: Callable[..., None]) -> Callable[..., None]:
        def record(*arguments: object) -> None:
            steps.append(name)
            real(*arguments)

        return record

    for name in ("fdatasync", "replace", "fsync"):
        monkeypatch.setattr(os, name, recorded(name, getattr(os, name)))
    files.write_atomically(path, b"content")
    assert steps == ["fdatasync", "replace", "fsync"]


def test_a_lock_keeps_others_of_this_process_out_until_it_is_released(files: Files, tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = files.lock(path)
    with pytest.raises(BlockingIOError):
        Files().lock(path)
    lock.release()
    lock.release()
    files.lock(path).release()


def test_a_lock_keeps_other_processes_out(files: Files, tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = files.lock(path)
    script = f"from barnabas.storage.disk.files import Files\ntry: Files().lock({path!r})\nexcept BlockingIOError: print('locked')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for expected in ("locked", ""):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60)
        assert (done.stdout.strip(), done.returncode) == (expected, 0), done.stderr
        lock.release()


def test_free_bytes_are_those_of_the_file_system(files: Files, tmp_path: Path) -> None:
    assert 0 < files.free_bytes(str(tmp_path)) <= os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize


def test_remove_tree_removes_everything_and_does_not_mind_a_missing_directory(files: Files, tmp_path: Path) -> None:
    directory = str(tmp_path / "a" / "b")
    files.make_dirs(directory)
    files.open(directory + "/file", create=True)
    files.remove_tree(str(tmp_path / "a"))
    files.remove_tree(str(tmp_path / "a"))
    assert not files.exists(str(tmp_path / "a"))


def test_others_may_not_read_what_is_made(files: Files, tmp_path: Path) -> None:
    directory = str(tmp_path / "parent" / "t-0")
    before = os.umask(0)
    try:
        files.make_dirs(directory)
        files.open(f"{directory}/a.log", create=True).append_bytes(b"x")
        files.write_atomically(f"{directory}/checkpoint", b"x")
        files.lock(f"{directory}/.lock").release()
    finally:
        os.umask(before)
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in os.scandir(directory)}
    assert modes == {"a.log": 0o640, "checkpoint": 0o640, ".lock": 0o640}
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o750


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o750), (0o777, 0o770), (0o2775, 0o2770), (0o701, 0o700)])
def test_others_are_shut_out_of_a_directory_and_its_group_is_not(files: Files, tmp_path: Path, before: int, after: int) -> None:
    tmp_path.chmod(before)
    assert files.shut_out_others(str(tmp_path))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == after
    assert not files.shut_out_others(str(tmp_path))


def test_nobody_is_shut_out_of_a_directory_that_is_meant_for_everybody(files: Files, tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(PermissionError, match="all users may write to it"):
        files.shut_out_others(str(tmp_path))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


def test_the_permissions_of_what_is_there_stay(files: Files, tmp_path: Path) -> None:
    """Directories of Apache Kafka keep theirs."""
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0").chmod(0o755)
    (tmp_path / "t-0" / "a.log").write_bytes(b"x")
    (tmp_path / "t-0" / "a.log").chmod(0o644)
    files.make_dirs(str(tmp_path / "t-0"))
    files.open(str(tmp_path / "t-0" / "a.log"), create=True).append_bytes(b"y")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "t-0", tmp_path / "t-0" / "a.log")] == [0o755, 0o644]
