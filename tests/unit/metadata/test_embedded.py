"""The embedded store: what it keeps over a restart, a kill, a full disk; who may open it; how much it grows."""

from __future__ import annotations

import logging
import os
import random
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.metadata import local
from barnabas.metadata.embedded import WAL_BYTES_MAX, open_embedded
from barnabas.metadata.errors import StoreFailure, StoreUnusable
from barnabas.metadata.local import LocalTree
from barnabas.metadata.tree import Create, CreateMode, Delete, Exists, GetChildren, GetData, Multi, SetData
from tests.logged import lines_of
from tests.unit.metadata.sessions import Client, snapshot

_opened: list[LocalTree] = []


@pytest.fixture(autouse=True)
def _close_what_was_opened() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close_now()


def open_tree(directory: Path) -> LocalTree:
    tree = open_embedded(str(directory / "metadata.db"), now_ms=lambda: 1)
    _opened.append(tree)
    return tree


def reopened(tree: LocalTree, directory: Path) -> Client:
    tree.close_now()
    return Client(open_tree(directory))


def test_nodes_with_all_their_history_survive_a_restart(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    client = Client(tree)
    client.session.handle_now([Create("/a", b"x"), Create("/a/b"), Create("/a/empty", b""), SetData("/a", b"\x00\xff"), Delete("/a/b")])
    before = snapshot(client, "/")
    assert snapshot(reopened(tree, tmp_path), "/") == before


def test_deleted_nodes_stay_deleted(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    Client(tree).session.handle_now([Create("/a"), Create("/b"), Delete("/a")])
    assert reopened(tree, tmp_path).ask(GetChildren("/")).names == ["b"]


def test_ephemerals_do_not_survive_a_restart(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    Client(tree).session.handle_now([Create("/ids"), Create("/ids/0", mode=CreateMode.EPHEMERAL)])
    assert reopened(tree, tmp_path).ask(GetChildren("/ids")).names == []


def test_an_ephemeral_in_the_place_of_a_persistent_node_leaves_nothing_behind(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    client = Client(tree)
    client.ask(Create("/a"))
    client.ask(Multi([Delete("/a"), Create("/a", mode=CreateMode.EPHEMERAL)]))
    assert reopened(tree, tmp_path).ask(Exists("/a")) is None


def test_zxids_and_session_ids_go_on_growing_after_a_restart_even_if_nothing_was_written(tmp_path: Path) -> None:
    zxids: list[int] = []
    sessions: list[int] = []
    for _ in range(3):
        tree = open_tree(tmp_path)
        client = Client(tree)
        zxids.append(client.ask(Create("/e", mode=CreateMode.EPHEMERAL)).stat.czxid)
        sessions.append(client.session.session_id)
        tree.close_now()
        open_tree(tmp_path).close_now()
    assert zxids == sorted(set(zxids))
    assert sessions == sorted(set(sessions))


def test_sequence_numbers_are_not_given_again_after_a_restart(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    client = Client(tree)
    client.ask(Create("/a"))
    client.ask(Delete(client.ask(Create("/a/n_", mode=CreateMode.EPHEMERAL_SEQUENTIAL)).path))
    again = reopened(tree, tmp_path).ask(Create("/a/n_", mode=CreateMode.PERSISTENT_SEQUENTIAL))
    assert again.path == "/a/n_0000000001"


def test_sessions_of_one_process_share_the_store(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    client, other = Client(tree), Client(tree)
    client.ask(Create("/a", b"x"))
    assert other.ask(GetData("/a")).data == b"x"


def test_a_store_in_use_is_refused_with_the_name_of_the_file(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    with pytest.raises(StoreUnusable, match=rf"{tmp_path}/metadata.db is in use by another broker. Stop that one"):
        open_tree(tmp_path)
    Client(tree).ask(Create("/a"))
    tree.close_now()


def test_another_process_cannot_open_a_store_in_use(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    code = f"from barnabas.metadata.embedded import open_embedded; open_embedded({str(tmp_path / 'metadata.db')!r}, lambda: 0)"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "is in use by another broker" in outcome.stderr
    tree.close_now()


@pytest.mark.parametrize(
    ("content", "text"), [(b"not a database, but long enough to be looked at" * 100, "is not a metadata store"), (b"", None)]
)
def test_a_file_that_is_no_store_is_refused_and_an_empty_one_taken(tmp_path: Path, content: bytes, text: str | None) -> None:
    (tmp_path / "metadata.db").write_bytes(content)
    if text is None:
        open_tree(tmp_path).close_now()
        return
    with pytest.raises(StoreUnusable, match=text):
        open_tree(tmp_path)
    assert (tmp_path / "metadata.db").read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "metadata.db")
    database.execute("CREATE TABLE theirs (x)")
    database.close()
    before = (tmp_path / "metadata.db").read_bytes()
    with pytest.raises(StoreUnusable, match="of another program"):
        open_tree(tmp_path)
    assert (tmp_path / "metadata.db").read_bytes() == before


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    open_tree(tmp_path).close_now()
    database = sqlite3.connect(tmp_path / "metadata.db")
    database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(StoreUnusable, match="has version 2, this program knows 1"):
        open_tree(tmp_path)


def test_a_node_without_its_parent_is_damage(tmp_path: Path) -> None:
    open_tree(tmp_path).close_now()
    database = sqlite3.connect(tmp_path / "metadata.db")
    database.execute("INSERT INTO node VALUES ('/a/b', NULL, 0, 0, 1, 1, 1, 1, 1)")
    database.commit()
    database.close()
    with pytest.raises(StoreUnusable, match="is damaged"):
        open_tree(tmp_path)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="Its directory must exist"):
        open_tree(tmp_path / "missing")


def test_a_full_disk_refuses_the_write_and_the_store_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tree = open_tree(tmp_path)
    client = Client(tree)
    client.ask(Create("/a", b"x"))
    before = snapshot(client, "/")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        with pytest.raises(StoreFailure, match=r"metadata.db could not keep a change"):
            client.ask(Multi([Create(f"/{number}", bytes(10_000)) for number in range(100)]))
        with pytest.raises(StoreFailure):
            client.ask(Multi([Create(f"/{number}", bytes(10_000)) for number in range(100)]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert tree.trouble is not None and tree.trouble.path.endswith("metadata.db")
    assert len(lines_of(caplog, local, logging.ERROR)) == 1  # once, for as long as it lasts
    assert snapshot(client, "/") == before
    client.ask(Create("/b", b"y"))
    assert tree.trouble is None
    assert reopened(tree, tmp_path).ask(GetChildren("/")).names == ["a", "b"]


def test_ten_thousand_nodes_fit_in_one_multi(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    client = Client(tree)
    client.ask(Multi([Create("/a"), *(Create(f"/a/{number}", b"{}") for number in range(9_999))]))
    assert len(reopened(tree, tmp_path).ask(GetChildren("/a")).names) == 9_999


def test_the_files_do_not_grow_with_the_writes(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    client = Client(tree)
    client.ask(Create("/changes"))
    for _ in range(30):
        made = client.session.handle_now([Create("/changes/c_", bytes(100), CreateMode.PERSISTENT_SEQUENTIAL) for _ in range(1_000)])
        client.session.handle_now([Delete(response.value.path) for response in made])
    assert (tmp_path / "metadata.db").stat().st_size < 2_000_000
    assert (tmp_path / "metadata.db-wal").stat().st_size <= WAL_BYTES_MAX
    tree.close_now()


def test_the_space_of_deleted_nodes_is_given_back_at_the_next_start(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    client = Client(tree)
    client.ask(Multi([Create(f"/{number}", bytes(100_000)) for number in range(100)]))
    client.ask(Multi([Delete(f"/{number}") for number in range(100)]))
    tree.close_now()
    open_tree(tmp_path).close_now()
    assert (tmp_path / "metadata.db").stat().st_size < 1_000_000


# Killed


WRITER = """
import os, signal, sys
from barnabas.metadata import embedded
from barnabas.metadata.tree import Create, CreateMode, GetData, Multi, SetData

tree = embedded.open_embedded(sys.argv[1], lambda: 0)
session = tree.open_session_now(lambda event: None)
session.handle_now([Create("/x", b"0"), Create("/y", b"0"), Create("/log"), Create("/e", mode=CreateMode.EPHEMERAL)])
number = int(session.handle_now([GetData("/x")])[0].value.data)
while True:
    number += 1
    text = str(number).encode()
    session.handle_now([Multi([SetData("/x", text), Create(f"/log/{number}", text), SetData("/y", text)])])[0].value
    print(number, flush=True)
"""

DIES_IN_A_MULTI = """
import os, signal, sqlite3, sys
from barnabas.metadata import embedded
from barnabas.metadata.tree import Create, Multi

class Deadly(sqlite3.Connection):
    def executemany(self, statement, rows):
        for number, row in enumerate(rows):
            if number == 50:
                os.kill(os.getpid(), signal.SIGKILL)
            self.execute(statement, row)

tree = embedded.open_embedded(sys.argv[1], lambda: 0)
tree._journal._database.close()
tree._journal._database = sqlite3.connect(sys.argv[1], isolation_level=None, factory=Deadly)
session = tree.open_session_now(lambda event: None)
session.handle_now([Multi([Create(f"/{number}", bytes(20_000)) for number in range(100)])])
"""


def test_no_acknowledged_write_is_lost_and_no_multi_halved_by_a_kill(tmp_path: Path) -> None:
    chance = random.Random(4)
    for _ in range(12):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "metadata.db")], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        acknowledged = 0
        for _ in range(chance.randrange(1, 300)):
            acknowledged = int(writer.stdout.readline())
        writer.kill()
        last = [int(line) for line in writer.communicate()[0].split("\n")[:-1]]
        acknowledged = max([acknowledged, *last])
        tree = open_tree(tmp_path)
        client = Client(tree)
        kept = int(client.ask(GetData("/x")).data or b"")
        assert acknowledged <= kept <= acknowledged + 1
        assert client.ask(GetData("/y")).data == str(kept).encode()
        assert sorted(map(int, client.ask(GetChildren("/log")).names)) == list(range(1, kept + 1))
        assert client.ask(Exists("/e")) is None
        tree.close_now()


def test_a_kill_in_the_middle_of_a_multi_leaves_nothing_of_it(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    Client(tree).ask(Create("/before"))
    tree.close_now()
    outcome = subprocess.run([sys.executable, "-c", DIES_IN_A_MULTI, str(tmp_path / "metadata.db")], capture_output=True, text=True)
    assert outcome.returncode == -signal.SIGKILL, outcome.stderr
    client = Client(open_tree(tmp_path))
    assert client.ask(GetChildren("/")).names == ["before"]


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "metadata.db")], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    writer.stdout.readline()
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate()
    open_tree(tmp_path).close_now()


def test_others_may_not_read_the_store(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Client(open_tree(tmp_path)).session.handle_now([Create("/secret", b"x")])
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"metadata.db": 0o640, "metadata.db-wal": 0o640}
