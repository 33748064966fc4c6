"""ZooKeeper's semantics, as our tree keeps them: nodes and versions, ephemerals and sequences, multis, watches and sessions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.metadata.errors import (
    BadArguments,
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    QuotaExceeded,
    SessionExpired,
    StoreFailure,
    TreeError,
)
from barnabas.metadata.local import LocalTree
from barnabas.metadata.nodes import Image, Limits, ZNodes
from barnabas.metadata.tree import (
    Check,
    Create,
    CreateMode,
    Delete,
    EventType,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    SetData,
    WatchedEvent,
)
from tests.unit.metadata.sessions import Client, snapshot

NOW_MS = 1_700_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tree(clock: Clock) -> LocalTree:
    return LocalTree(clock)


@pytest.fixture
def client(tree: LocalTree) -> Client:
    return Client(tree)


@pytest.fixture
def other(tree: LocalTree) -> Client:
    return Client(tree)


# Nodes and versions


def test_a_created_node_holds_its_data_at_version_0(client: Client) -> None:
    client.ask(Create("/a", b"x"))
    data, stat = client.ask(GetData("/a"))
    assert (data, stat.version, stat.cversion, stat.ephemeral_owner, stat.num_children) == (b"x", 0, 0, 0, 0)


def test_no_data_and_empty_data_are_different(client: Client) -> None:
    client.session.handle_now([Create("/none"), Create("/empty", b"")])
    assert (client.ask(GetData("/none")).data, client.ask(GetData("/empty")).data) == (None, b"")


def test_a_node_is_not_created_twice(client: Client) -> None:
    client.ask(Create("/a"))
    with pytest.raises(NodeExists):
        client.ask(Create("/a"))


def test_a_node_needs_its_parent(client: Client) -> None:
    with pytest.raises(NoNode):
        client.ask(Create("/a/b"))


def test_setting_data_counts_the_version_and_stamps_the_time(client: Client, clock: Clock) -> None:
    client.ask(Create("/a", b"x"))
    before = client.stat("/a")
    clock.now_ms += 5
    after = client.ask(SetData("/a", b"y"))
    assert (after.version, after.mtime, after.ctime, after.czxid) == (1, NOW_MS + 5, NOW_MS, before.czxid)
    assert after.mzxid > before.mzxid


def test_setting_data_with_an_old_version_changes_nothing(client: Client) -> None:
    client.ask(Create("/a", b"x"))
    client.ask(SetData("/a", b"y", version=0))
    with pytest.raises(BadVersion):
        client.ask(SetData("/a", b"z", version=0))
    assert client.ask(GetData("/a")).data == b"y"


def test_setting_data_of_a_missing_node_fails(client: Client) -> None:
    with pytest.raises(NoNode):
        client.ask(SetData("/a", b"x"))


def test_a_node_with_children_is_not_deleted(client: Client) -> None:
    client.session.handle_now([Create("/a"), Create("/a/b")])
    with pytest.raises(NotEmpty):
        client.ask(Delete("/a"))


def test_a_node_with_another_version_is_not_deleted(client: Client) -> None:
    client.ask(Create("/a"))
    with pytest.raises(BadVersion):
        client.ask(Delete("/a", version=1))


def test_a_deleted_node_is_gone_and_may_come_again_at_version_0(client: Client) -> None:
    client.session.handle_now([Create("/a"), SetData("/a", b"x"), Delete("/a"), Create("/a")])
    assert client.stat("/a").version == 0


def test_a_missing_node_is_not_deleted(client: Client) -> None:
    with pytest.raises(NoNode):
        client.ask(Delete("/a"))


def test_the_root_is_there_and_stays(client: Client) -> None:
    assert client.ask(GetChildren("/")).names == []
    with pytest.raises(NodeExists):
        client.ask(Create("/"))
    with pytest.raises(BadArguments):
        client.ask(Delete("/"))


def test_children_come_sorted_and_without_their_own_children(client: Client) -> None:
    client.session.handle_now([Create("/a"), Create("/a/c"), Create("/a/b"), Create("/a/b/d")])
    assert client.ask(GetChildren("/a")).names == ["b", "c"]


def test_the_children_version_counts_creations_and_deletions(client: Client) -> None:
    client.session.handle_now([Create("/a"), Create("/a/b"), Create("/a/c"), Delete("/a/b")])
    stat = client.stat("/a")
    assert (stat.cversion, stat.num_children, stat.version) == (3, 1, 0)
    assert stat.pzxid > stat.czxid


def test_every_write_has_a_greater_zxid_than_all_before(client: Client, other: Client) -> None:
    first = client.ask(Create("/a")).stat.czxid
    second = other.ask(Create("/b")).stat.czxid
    third = client.ask(SetData("/a", b"")).mzxid
    assert first < second < third


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/.", "/a/..", "/./a", "/a\x00", "/a\n", "/\ud800", "/\U0001f600"])
def test_what_zookeeper_takes_for_no_path_is_refused(client: Client, path: str) -> None:
    for request in (Create(path), SetData(path, b""), Delete(path), GetData(path), Exists(path), GetChildren(path)):
        with pytest.raises(BadArguments):
            client.ask(request)


@pytest.mark.parametrize("path", ["/.a", "/a..", "/...", "/<default>", "/a%20b", "/é", "/a b"])
def test_other_paths_are_good(client: Client, path: str) -> None:
    assert client.ask(Create(path)).path == path


# Sequences


def test_a_sequential_node_gets_ten_digits_that_count_the_children_ever_made(client: Client) -> None:
    client.session.handle_now([Create("/a"), Create("/a/x")])
    client.ask(Delete("/a/x"))
    made = [client.ask(Create("/a/n_", mode=CreateMode.PERSISTENT_SEQUENTIAL)).path for _ in range(2)]
    assert made == ["/a/n_0000000001", "/a/n_0000000002"]


def test_a_number_is_not_given_again_after_its_node_was_deleted(client: Client) -> None:
    client.ask(Create("/a"))
    first = client.ask(Create("/a/n_", mode=CreateMode.PERSISTENT_SEQUENTIAL)).path
    client.ask(Delete(first))
    assert client.ask(Create("/a/n_", mode=CreateMode.PERSISTENT_SEQUENTIAL)).path == "/a/n_0000000001"


def test_a_sequential_node_may_have_no_name_but_its_number(client: Client) -> None:
    client.ask(Create("/a"))
    assert client.ask(Create("/a/", mode=CreateMode.PERSISTENT_SEQUENTIAL)).path == "/a/0000000000"


def test_a_sequential_node_may_stand_right_below_the_root(client: Client) -> None:
    assert client.ask(Create("/", mode=CreateMode.PERSISTENT_SEQUENTIAL)).path == "/0000000000"


def test_a_refused_multi_gives_its_numbers_back(client: Client) -> None:
    client.ask(Create("/a"))
    with pytest.raises(NoNode):
        client.ask(Multi([Create("/a/n_", mode=CreateMode.PERSISTENT_SEQUENTIAL), Check("/missing")]))
    assert client.ask(Create("/a/n_", mode=CreateMode.PERSISTENT_SEQUENTIAL)).path == "/a/n_0000000000"


# Ephemerals and sessions


def test_an_ephemeral_belongs_to_its_session_and_goes_with_it(client: Client, other: Client) -> None:
    client.ask(Create("/a", mode=CreateMode.EPHEMERAL))
    assert other.stat("/a").ephemeral_owner == client.session.session_id
    client.session.close_now()
    assert other.ask(Exists("/a")) is None


def test_an_ephemeral_has_no_children(client: Client) -> None:
    client.ask(Create("/a", mode=CreateMode.EPHEMERAL))
    with pytest.raises(NoChildrenForEphemerals):
        client.ask(Create("/a/b"))


def test_other_sessions_may_delete_an_ephemeral(client: Client, other: Client) -> None:
    client.ask(Create("/a", mode=CreateMode.EPHEMERAL))
    other.ask(Delete("/a"))
    other.ask(Create("/a"))
    client.session.close_now()
    assert other.ask(Exists("/a")) is not None


def test_persistent_nodes_outlive_their_session(client: Client, other: Client) -> None:
    client.ask(Create("/a"))
    client.session.expire()
    assert other.ask(Exists("/a")) is not None


def test_an_expired_session_is_told_and_can_do_nothing_more(client: Client) -> None:
    client.session.expire()
    assert client.take_events() == [("SessionExpired", "")]
    assert not client.session.is_alive
    for request in (Create("/a"), GetData("/"), Multi([])):
        with pytest.raises(SessionExpired):
            client.ask(request)


def test_a_closed_session_hears_nothing_more(client: Client, other: Client) -> None:
    client.ask(GetChildren("/", watch=True))
    client.session.close_now()
    other.ask(Create("/a"))
    assert client.take_events() == []


def test_ending_a_session_twice_is_ending_it_once(client: Client) -> None:
    client.session.close_now()
    client.session.expire()
    assert client.take_events() == []


def test_sessions_have_different_ids_and_none_has_0(client: Client, other: Client) -> None:
    assert len({client.session.session_id, other.session.session_id, 0}) == 3


def test_the_ephemerals_of_a_session_vanish_in_one_write(client: Client, other: Client) -> None:
    client.session.handle_now([Create("/p"), Create("/q")])
    client.session.handle_now([Create(f"/{parent}/e", mode=CreateMode.EPHEMERAL) for parent in "pq"])
    client.session.expire()
    assert other.stat("/p").pzxid == other.stat("/q").pzxid


# Multis


def test_a_multi_is_one_write_with_one_zxid(client: Client) -> None:
    client.ask(Multi([Create("/a"), Create("/a/b"), SetData("/a", b"x")]))
    assert client.stat("/a").czxid == client.stat("/a").mzxid == client.stat("/a/b").czxid


def test_a_multi_sees_its_own_changes(client: Client) -> None:
    results = client.ask(Multi([Create("/a", b"x"), SetData("/a", b"y", 0), Check("/a", 1), Delete("/a", 1), Create("/a", b"z")]))
    assert len(results) == 5
    assert (client.ask(GetData("/a")).data, client.stat("/a").version) == (b"z", 0)


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (Check("/a", 7), BadVersion),
        (Check("/missing"), NoNode),
        (Create("/a"), NodeExists),
        (Delete("/a"), NotEmpty),
        (SetData("/a", b"", 9), BadVersion),
        (Create("bad"), BadArguments),
    ],
)
def test_a_multi_with_one_refused_operation_changes_nothing(
    client: Client, last: Create | Check | Delete | SetData, error: type[TreeError]
) -> None:
    client.session.handle_now([Create("/a", b"x"), Create("/a/b", b"y"), Create("/a/e", mode=CreateMode.EPHEMERAL)])
    before = snapshot(client, "/")
    changes: list[Operation] = [
        SetData("/a", b"new"),
        Delete("/a/b"),
        Create("/a/b", b"again"),
        Delete("/a/e"),
        Create("/a/e", b"persistent now"),
        Create("/a/e/f"),
        Create("/c"),
        Create("/c/d"),
        Delete("/c/d"),
    ]
    with pytest.raises(error) as raised:
        client.ask(Multi([*changes, last]))
    assert raised.value.operation == len(changes)
    assert snapshot(client, "/") == before


def test_an_undone_multi_leaves_ephemerals_to_their_session(client: Client, other: Client) -> None:
    client.ask(Create("/e", mode=CreateMode.EPHEMERAL))
    with pytest.raises(NoNode):
        other.ask(Multi([Delete("/e"), Create("/e", mode=CreateMode.EPHEMERAL), Check("/missing")]))
    other.session.close_now()
    assert client.ask(Exists("/e")) is not None
    third = client.session.session_id
    assert client.stat("/e").ephemeral_owner == third
    client.session.close_now()


def test_an_empty_multi_does_nothing(client: Client) -> None:
    assert client.ask(Multi([])) == []


# Batches


def test_responses_come_in_the_order_of_requests_and_a_refusal_stops_no_other(client: Client) -> None:
    responses = client.session.handle_now([Create("/a"), Create("/a"), Create("/x/y"), Create("/b")])
    assert [type(response.error) for response in responses] == [type(None), NodeExists, NoNode, type(None)]


def test_a_read_in_a_batch_sees_the_writes_before_it_and_not_those_after(client: Client) -> None:
    responses = client.session.handle_now([Create("/a", b"1"), GetData("/a"), SetData("/a", b"2"), GetData("/a")])
    assert [responses[1].value.data, responses[3].value.data] == [b"1", b"2"]  # type: ignore[attr-defined]


def test_a_watch_left_in_a_batch_does_not_fire_for_the_writes_before_it(client: Client) -> None:
    client.session.handle_now([Create("/a"), GetData("/a", watch=True)])
    assert client.take_events() == []


# Watches


def test_a_data_watch_fires_once_when_the_data_is_set(client: Client, other: Client) -> None:
    other.ask(Create("/a"))
    client.ask(GetData("/a", watch=True))
    other.session.handle_now([SetData("/a", b"1"), SetData("/a", b"2")])
    assert client.take_events() == [("NodeDataChanged", "/a")]


def test_a_watch_fires_also_when_the_data_stays_the_same(client: Client) -> None:
    client.ask(Create("/a", b"x"))
    client.ask(GetData("/a", watch=True))
    client.ask(SetData("/a", b"x"))
    assert client.take_events() == [("NodeDataChanged", "/a")]


def test_a_data_watch_fires_when_the_node_is_deleted(client: Client, other: Client) -> None:
    other.ask(Create("/a"))
    client.ask(GetData("/a", watch=True))
    other.ask(Delete("/a"))
    assert client.take_events() == [("NodeDeleted", "/a")]


def test_an_exists_watch_waits_for_a_node_that_is_not_there(client: Client, other: Client) -> None:
    assert client.ask(Exists("/a", watch=True)) is None
    other.ask(Create("/a"))
    assert client.take_events() == [("NodeCreated", "/a")]


def test_reading_a_missing_node_leaves_no_watch(client: Client, other: Client) -> None:
    client.session.handle_now([GetData("/a", watch=True), GetChildren("/a", watch=True)])
    other.ask(Create("/a"))
    assert client.take_events() == []


def test_a_child_watch_fires_once_for_children_made_or_deleted(client: Client, other: Client) -> None:
    other.ask(Create("/a"))
    client.ask(GetChildren("/a", watch=True))
    other.session.handle_now([Create("/a/b"), Create("/a/c")])
    assert client.take_events() == [("NodeChildrenChanged", "/a")]
    client.ask(GetChildren("/a", watch=True))
    other.ask(Delete("/a/b"))
    assert client.take_events() == [("NodeChildrenChanged", "/a")]


def test_a_child_watch_does_not_hear_of_data_nor_of_grandchildren(client: Client, other: Client) -> None:
    other.session.handle_now([Create("/a"), Create("/a/b")])
    client.ask(GetChildren("/a", watch=True))
    other.session.handle_now([SetData("/a", b"x"), SetData("/a/b", b"x"), Create("/a/b/c")])
    assert client.take_events() == []


def test_a_deleted_node_is_told_once_to_who_watched_both_data_and_children(client: Client, other: Client) -> None:
    other.ask(Create("/a"))
    client.session.handle_now([GetData("/a", watch=True), GetChildren("/a", watch=True)])
    other.ask(Delete("/a"))
    assert client.take_events() == [("NodeDeleted", "/a")]


def test_watching_twice_is_watching_once(client: Client, other: Client) -> None:
    other.ask(Create("/a"))
    client.session.handle_now([GetData("/a", watch=True), Exists("/a", watch=True)])
    other.ask(SetData("/a", b""))
    assert len(client.take_events()) == 1


def test_every_watching_session_is_told(client: Client, other: Client) -> None:
    client.ask(Exists("/a", watch=True))
    other.ask(Exists("/a", watch=True))
    client.ask(Create("/a"))
    assert client.take_events() == other.take_events() == [("NodeCreated", "/a")]


def test_a_refused_write_fires_nothing_and_uses_no_watch(client: Client, other: Client) -> None:
    other.ask(Create("/a"))
    client.ask(GetData("/a", watch=True))
    with pytest.raises(NoNode):
        other.ask(Multi([SetData("/a", b"x"), Check("/missing")]))
    assert client.take_events() == []
    other.ask(SetData("/a", b"x"))
    assert client.take_events() == [("NodeDataChanged", "/a")]


def test_the_end_of_a_session_is_seen_by_who_watches_its_ephemerals(client: Client, other: Client) -> None:
    other.session.handle_now([Create("/ids"), Create("/ids/0", mode=CreateMode.EPHEMERAL)])
    client.session.handle_now([GetChildren("/ids", watch=True), Exists("/ids/0", watch=True)])
    other.session.expire()
    assert client.take_events() == [("NodeDeleted", "/ids/0"), ("NodeChildrenChanged", "/ids")]


def test_events_come_before_the_response_of_the_write_that_caused_them(tree: LocalTree) -> None:
    order: list[str] = []
    session = tree.open_session_now(lambda event: order.append(event.type.value))
    session.handle_now([Exists("/a", watch=True)])
    session.handle_now([Create("/a")])
    order.append("response")
    assert order == ["NodeCreated", "response"]


def test_a_watcher_may_read_and_write_and_hears_of_it_afterwards(tree: LocalTree) -> None:
    order: list[str] = []

    def watcher(event: WatchedEvent) -> None:
        order.append(f"begin {event.path}")
        if event.path == "/a":
            session.handle_now([Exists("/b", watch=True), Create("/b")])
        order.append(f"end {event.path}")

    session = tree.open_session_now(watcher)
    session.handle_now([Exists("/a", watch=True), Create("/a")])
    assert order == ["begin /a", "end /a", "begin /b", "end /b"]


def test_a_watcher_that_fails_keeps_nobody_from_hearing(tree: LocalTree, client: Client) -> None:
    def fail(event: WatchedEvent) -> None:
        raise RuntimeError("broken watcher")

    tree.open_session_now(fail).handle_now([Exists("/a", watch=True)])
    client.ask(Exists("/a", watch=True))
    assert client.ask(Create("/a")).path == "/a"
    assert client.take_events() == [("NodeCreated", "/a")]


def test_watches_are_used_up_and_forgotten_with_their_session(tree: LocalTree, client: Client, other: Client) -> None:
    client.session.handle_now([Exists(f"/{number}", watch=True) for number in range(10)])
    other.session.handle_now([GetChildren("/", watch=True)])
    client.session.close_now()
    assert tree.watch_count == 1
    other.ask(Create("/a"))
    assert tree.watch_count == 0


# Limits


def limited(**limits: int) -> Client:
    return Client(LocalTree(lambda: 0, nodes=ZNodes(Limits(**limits))))


def test_a_node_greater_than_the_limit_is_refused() -> None:
    client = limited(node_bytes_max=10)
    client.ask(Create("/a", b"12345678"))
    for request in (Create("/b", b"123456789"), SetData("/a", b"123456789"), Create("/" + "b" * 10)):
        with pytest.raises(BadArguments):
            client.ask(request)


def test_a_full_tree_refuses_new_nodes_and_takes_the_rest() -> None:
    client = limited(nodes_max=3)
    client.session.handle_now([Create("/a"), Create("/b")])
    with pytest.raises(QuotaExceeded):
        client.ask(Create("/c"))
    client.session.handle_now([SetData("/a", b"x"), Delete("/b")])
    client.ask(Create("/c"))


def test_a_multi_with_too_many_operations_is_refused_as_a_whole() -> None:
    client = limited(operations_max=2)
    with pytest.raises(BadArguments):
        client.ask(Multi([Create("/a"), Create("/b"), Create("/c")]))
    assert client.ask(GetChildren("/")).names == []


def test_a_session_holds_only_so_many_watches() -> None:
    client = limited(watches_max=1)
    client.session.handle_now([Exists("/a", watch=True), Exists("/a", watch=True)])
    with pytest.raises(QuotaExceeded):
        client.ask(Exists("/b", watch=True))


# A journal that refuses


class RefusingJournal:
    path = "metadata.db"

    def __init__(self) -> None:
        self.refuses = False

    def commit(self, written: Sequence[tuple[str, Image]], deleted: Sequence[str]) -> None:
        if self.refuses:
            raise StoreFailure("/", "disk full")

    def close(self) -> None: ...


def test_what_the_journal_refuses_has_not_happened() -> None:
    journal = RefusingJournal()
    client = Client(LocalTree(lambda: 0, journal))
    client.session.handle_now([Create("/a", b"x"), Create("/a/b"), GetChildren("/a", watch=True)])
    before = snapshot(client, "/")
    journal.refuses = True
    responses = client.session.handle_now([SetData("/a", b"y"), Delete("/a/b"), Delete("/missing"), Multi([Create("/c"), Create("/c/d")])])
    assert [type(response.error) for response in responses] == [StoreFailure, StoreFailure, NoNode, StoreFailure]
    assert (snapshot(client, "/"), client.take_events()) == (before, [])
    journal.refuses = False
    client.session.handle_now([SetData("/a", b"y"), Delete("/a/b")])
    assert client.take_events() == [("NodeChildrenChanged", "/a")]


def test_a_session_ends_also_while_the_journal_refuses() -> None:
    journal = RefusingJournal()
    tree = LocalTree(lambda: 0, journal)
    client, other = Client(tree), Client(tree)
    client.ask(Create("/e", mode=CreateMode.EPHEMERAL))
    other.ask(Exists("/e", watch=True))
    journal.refuses = True
    client.session.expire()
    assert other.take_events() == [(EventType.NODE_DELETED.value, "/e")]
    assert other.ask(Exists("/e")) is None


def test_a_closed_tree_opens_no_session(tree: LocalTree, client: Client) -> None:
    tree.close_now()
    with pytest.raises(StoreFailure):
        tree.open_session_now(lambda event: None)
    with pytest.raises(SessionExpired):
        client.ask(GetData("/"))
