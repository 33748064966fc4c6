"""The metadata shell on a store of our own, also while somebody holds it."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.client import TreeClient
from barnabas.metadata.embedded import STORE_NAME, open_embedded
from barnabas.tools import metadata_shell
from barnabas.tools.command_line.failures import ToolError
from barnabas.tools.tree.metadata_commands import ExitShell, ShellSession, columns, run
from barnabas.tools.tree.metadata_tree import MetadataNode, ShellState, glob_to_regex, load, strip_dots

TREE = {
    "/brokers": b"",
    "/brokers/ids": b"",
    "/brokers/topics": b"",
    "/brokers/topics/bar": b'{"version":3}',
    "/brokers/topics/foo": b'{"version":3}',
    "/brokers/topics/foo/partitions": b"",
    "/cluster": b"",
    "/cluster/id": b'{"id":"abc"}',
}


def tree_of(nodes: dict[str, bytes]) -> MetadataNode:
    root = MetadataNode()
    for path, data in nodes.items():
        node = root
        for component in path.strip("/").split("/"):
            node = node.children.setdefault(component, MetadataNode())
        node.data = data
    return root


@pytest.fixture
def session() -> ShellSession:
    return ShellSession(ShellState(tree_of(TREE)))


def told(line: str, session: ShellSession) -> list[str]:
    return run(line.split(), session, interactive=True)


def test_ls_lists_names_in_their_order(session: ShellSession) -> None:
    assert told("ls", session) == ["brokers", "cluster"]
    assert told("ls /brokers/topics", session) == ["bar", "foo"]


def test_ls_of_several_directories_says_which_is_which(session: ShellSession) -> None:
    assert told("ls /brokers/topics /cluster", session) == ["topics:", "bar", "foo", "\ncluster:", "id"]


def test_ls_of_a_file_is_its_name(session: ShellSession) -> None:
    assert told("ls /cluster/id", session) == ["id"]


def test_cat_shows_data(session: ShellSession) -> None:
    assert told("cat /cluster/id", session) == ['{"id":"abc"}']


def test_a_node_with_children_has_contents_too(session: ShellSession) -> None:
    assert told("cat /brokers/topics/foo", session) == ['{"version":3}']


def test_cat_of_a_directory_is_refused(session: ShellSession) -> None:
    assert told("cat /brokers", session) == ["cat: /brokers: Is a directory"]


def test_what_is_not_there_is_told_in_the_words_of_each_command(session: ShellSession) -> None:
    assert told("ls /x", session) == ["ls: /x: no such file or directory."]
    assert told("cat /x", session) == ["cat: /x: No such file or directory."]
    assert told("cd /x", session) == ["cd: /x: no such directory."]
    assert told("find /x", session) == ["find: /x: no such file or directory."]
    assert told("tree /x", session) == ["tree: /x: No such file or directory."]


def test_cd_goes_down_up_and_home(session: ShellSession) -> None:
    assert told("cd brokers/topics", session) == []
    assert told("pwd", session) == ["/brokers/topics"]
    assert told("ls", session) == ["bar", "foo"]
    told("cd ../ids", session)
    assert told("pwd", session) == ["/brokers/ids"]
    told("cd", session)
    assert told("pwd", session) == ["/"]


def test_one_cannot_cd_into_a_file(session: ShellSession) -> None:
    assert told("cd /cluster/id", session) == ["cd: /cluster/id: not a directory."]
    assert told("pwd", session) == ["/"]


def test_find_walks_from_where_it_is_told(session: ShellSession) -> None:
    assert told("find /brokers/topics", session) == [
        "/brokers/topics",
        "/brokers/topics/bar",
        "/brokers/topics/foo",
        "/brokers/topics/foo/partitions",
    ]
    told("cd /cluster", session)
    assert told("find", session) == [".", "./id"]


def test_tree_shows_names_and_contents(session: ShellSession) -> None:
    assert told("tree /cluster", session) == ["cluster:", '  id: {"id":"abc"}']


def test_stars_and_braces_find_many(session: ShellSession) -> None:
    assert told("cat /brokers/topics/*", session) == ['{"version":3}'] * 2
    assert told("ls /brokers/topics/{foo,bar}", session) == ["bar", "\nfoo:", "partitions"]


def test_history_shows_the_last_commands(session: ShellSession) -> None:
    session.history = ["ls", "pwd", "history 2"]
    assert told("history 2", session) == ["    1  pwd", "    2  history 2"]


def test_man_and_help_name_the_commands(session: ShellSession) -> None:
    assert told("man ls", session)[0].startswith("ls: List metadata nodes.")
    assert told("man x", session) == ["man: unknown command x. Type help to get a list of commands."]
    assert any("tree" in line for line in told("help", session))


def test_exit_leaves(session: ShellSession) -> None:
    with pytest.raises(ExitShell):
        told("exit", session)


def test_an_unknown_command_is_told_which_there_are(session: ShellSession) -> None:
    (line,) = told("rm /", session)
    assert line.startswith("invalid choice: 'rm' (choose from 'cat', 'cd'")


def test_commands_of_a_shell_are_none_outside_of_it(session: ShellSession) -> None:
    (line,) = run(["cd", "/"], session, interactive=False)
    assert line.startswith("invalid choice: 'cd'")


def test_names_stand_beside_each_other_where_there_is_room() -> None:
    assert list(columns(["a", "b", "c"], None)) == ["a", "b", "c"]
    assert list(columns(["a", "b", "c"], 80)) == ["a  b  c"]
    assert list(columns(["aaaa", "b", "cc", "d"], 12)) == ["aaaa  cc", "b     d"]


@given(st.lists(st.text("abcdefghij", min_size=1, max_size=12), max_size=30), st.integers(1, 100))
def test_no_name_gets_lost_in_columns(names: list[str], width: int) -> None:
    lines = list(columns(names, width))
    assert sorted(word for line in lines for word in line.split()) == sorted(names)
    assert all(len(line) <= max(width, 12) for line in lines)


def test_globs_are_kafkas() -> None:
    assert glob_to_regex("plain.name") is None
    assert glob_to_regex("a*b?") == "a.*b."
    assert glob_to_regex("{a,b}c") == "(?:(?:a)|(?:b))c"
    assert glob_to_regex("{a,{b}}") is None
    assert glob_to_regex("{a") is None
    assert glob_to_regex(r"a\*") is None


def test_dots_do_not_lead_above_the_root() -> None:
    assert strip_dots(["..", "a", ".", "b", ".."]) == ["a"]


def test_a_word_is_completed_to_commands_and_paths() -> None:
    state = ShellState(tree_of(TREE))
    assert metadata_shell.candidates(state, "c", "c") == ["cat ", "cd "]
    assert metadata_shell.candidates(state, "ls /br", "/br") == ["/brokers/"]
    assert metadata_shell.candidates(state, "cat /cluster/", "/cluster/") == ["/cluster/id "]
    assert metadata_shell.candidates(state, "man t", "t") == ["tree "]
    assert metadata_shell.candidates(state, "ls /no/where", "/no/where") == []


def make_store(path: Path) -> None:
    asyncio.run(_make_store(path))


async def _make_store(path: Path) -> None:
    tree = open_embedded(str(path), lambda: 1_700_000_000_000)
    client = TreeClient(tree, lambda: None)
    await client.connect()
    for node, data in TREE.items():
        await client.create(node, data)
    await tree.close()


def test_a_store_that_is_in_use_is_read_without_touching_it(tmp_path: Path) -> None:
    store = tmp_path / STORE_NAME
    make_store(store)
    tree = open_embedded(str(store), lambda: 1)
    before = store.read_bytes()
    try:
        root = load(str(tmp_path))
    finally:
        assert store.read_bytes() == before
        asyncio.run(tree.close())
    assert run(["cat", "/cluster/id"], ShellSession(ShellState(root)), interactive=False) == ['{"id":"abc"}']
    assert run(["stat", "/cluster/id"], ShellSession(ShellState(root)), interactive=False)[0] == "/cluster/id"


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="there is no metadata store"):
        load(str(tmp_path))
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ToolError, match="is not a metadata store"):
        load(str(tmp_path / "text"))
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE t (x)")
    with pytest.raises(ToolError, match="SQLite file of another program"):
        load(str(tmp_path / "other.db"))


def test_one_command_is_run_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_store(tmp_path / STORE_NAME)
    assert metadata_shell.main(["--data", str(tmp_path), "ls", "/brokers"]) == 0
    assert capsys.readouterr().out == "ids\ntopics\n"


def test_commands_are_read_from_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    make_store(tmp_path / STORE_NAME)
    lines = iter(["cd /cluster", "ls", "exit", "pwd"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    assert metadata_shell.main(["-d", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "[ Kafka Metadata Shell ]\nid\n"


def test_a_place_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert metadata_shell.main(["ls"]) == 1
    assert "--data" in capsys.readouterr().err
