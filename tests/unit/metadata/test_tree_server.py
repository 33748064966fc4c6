"""The served tree as plain objects: sessions, passwords, expiry, watches, and what it answers byte for byte."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.errors import BadVersion, NoNode
from barnabas.metadata.local import LocalTree
from barnabas.metadata.serving import server_wire
from barnabas.metadata.serving.tree_server import TICK_MS, TIMEOUT_MS_MAX, TIMEOUT_MS_MIN, TreeServer
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
    SetData,
    TreeRequest,
    WatchedEvent,
)
from barnabas.metadata.zookeeper import wire
from barnabas.metadata.zookeeper.access import open_to_all

TIMEOUT_MS = 10_000
_SIZE = 4


class Connection:
    """The end of the server, and a client that reads what it sends."""

    def __init__(self, process: int | None = 1) -> None:
        self.process = process
        self.sent: list[bytes] = []
        self.is_ended = False

    def send(self, frames: bytes) -> None:
        assert not self.is_ended
        while frames:
            size = int.from_bytes(frames[:_SIZE], "big")
            self.sent.append(frames[_SIZE : _SIZE + size])
            frames = frames[_SIZE + size :]

    def end(self) -> None:
        self.is_ended = True

    def take(self) -> list[bytes]:
        taken, self.sent = self.sent, []
        return taken


class Client:
    """A connection with the frames of ZooKeeper's client."""

    def __init__(
        self, server: TreeServer, process: int = 1, session_id: int = 0, password: bytes = bytes(16), monotonic_ms: int = 0
    ) -> None:
        self.server = server
        self.connection = Connection(process)
        self.xid = 0
        server.received(self.connection, [_frame(wire.connect(0, TIMEOUT_MS, session_id, password))], monotonic_ms)
        self.handshake = wire.handshake(self.connection.take()[0])

    def send(self, *requests: TreeRequest[Any], monotonic_ms: int = 0) -> list[Any]:
        """All that arrives until the responses: events, and results or errors."""
        frames = []
        for request in requests:
            self.xid += 1
            frames.append(_frame(wire.request(self.xid, request, "", open_to_all)))
        self.server.received(self.connection, frames, monotonic_ms)
        return self._read(list(requests))

    def send_frame(self, frame: bytes, monotonic_ms: int = 0) -> list[wire.ReplyHeader]:
        self.server.received(self.connection, [_frame(frame)], monotonic_ms)
        return [wire.reply(sent) for sent in self.connection.take()]

    def events(self) -> list[Any]:
        return self._read([])

    def _read(self, requests: list[TreeRequest[Any]]) -> list[Any]:
        read: list[Any] = []
        for frame in self.connection.take():
            reply = wire.reply(frame)
            if reply.xid == wire.NOTIFICATION_XID:
                read.append(wire.event(reply.body, ""))
                continue
            try:
                read.append(wire.result(requests.pop(0), reply, ""))
            except Exception as error:
                read.append(type(error))
        assert not requests
        return read


def _frame(framed: bytes) -> bytes:
    return framed[_SIZE:]


def make_server() -> tuple[TreeServer, LocalTree]:
    tree = LocalTree(now_ms=lambda: 7)
    return TreeServer(tree, Random(1)), tree


def test_a_new_session_has_an_id_a_password_and_the_timeout_it_wanted_within_bounds() -> None:
    server, _ = make_server()
    first, second = Client(server), Client(server)
    assert first.handshake.timeout_ms == TIMEOUT_MS
    assert 0 < first.handshake.session_id < second.handshake.session_id
    assert first.handshake.password != second.handshake.password
    for wanted_ms, given_ms in ((1, TIMEOUT_MS_MIN), (10**9, TIMEOUT_MS_MAX)):
        connection = Connection()
        server.received(connection, [_frame(wire.connect(0, wanted_ms, 0, bytes(16)))], 0)
        assert wire.handshake(connection.take()[0]).timeout_ms == given_ms


def test_events_come_before_the_response_to_the_write_that_caused_them() -> None:
    server, _ = make_server()
    client = Client(server)
    assert client.send(Exists("/a", watch=True)) == [None]
    event, created = client.send(Create("/a", b"x"))
    assert event == WatchedEvent(EventType.NODE_CREATED, "/a")
    assert created.path == "/a"


def test_a_read_between_writes_sees_those_before_it() -> None:
    server, _ = make_server()
    client = Client(server)
    _, first, set_again, second = client.send(Create("/a", b"1"), GetData("/a"), SetData("/a", b"2"), GetData("/a"))
    assert (first.data, second.data, set_again.version) == (b"1", b"2", 1)


def test_the_zxid_of_a_response_is_that_of_its_write() -> None:
    server, tree = make_server()
    client = Client(server)
    multi = Multi([Create("/a"), Create("/b", None, CreateMode.EPHEMERAL)])
    results = client.send(Create("/x"), Create("/x"), multi, SetData("/x", b"y"))
    assert [results[0].stat.czxid + offset for offset in (1, 2, 3)] == [results[3].mzxid - 2, results[2][1].stat.czxid, tree.last_zxid]
    assert client.send(Exists("/b"))[0].czxid == results[2][1].stat.czxid
    assert results[1].__name__ == "NodeExists"


def test_a_failed_multi_says_which_operation_failed_and_changes_nothing() -> None:
    server, _ = make_server()
    client = Client(server)
    client.send(Create("/a"))
    frame = wire.request(9, Multi([SetData("/a", b"1"), Check("/a", 5), Create("/b")]), "", open_to_all)
    server.received(client.connection, [_frame(frame)], 0)
    reply = wire.reply(client.connection.take()[0])
    with pytest.raises(BadVersion) as raised:
        wire.result(Multi([SetData("/a", b"1"), Check("/a", 5), Create("/b")]), reply, "")
    assert raised.value.operation == 1
    assert client.send(Exists("/b"), GetData("/a"))[1].stat.version == 0


def test_the_codes_of_the_operations_of_a_failed_multi_are_zookeepers() -> None:
    server, _ = make_server()
    client = Client(server)
    request = Multi([Create("/a"), Delete("/none"), Create("/b")])
    (reply,) = client.send_frame(wire.request(1, request, "", open_to_all))
    codes = [(reply.body.unpack(struct.Struct(">i?i")), reply.body.int32()) for _ in range(3)]
    assert reply.error == NoNode.code
    assert [code for _, code in codes] == [0, NoNode.code, server_wire.RUNTIME_INCONSISTENCY]
    assert reply.body.unpack(struct.Struct(">i?i")) == (-1, True, -1)
    assert reply.body.is_at_end


def test_ping_auth_sync_and_operations_that_are_not_there_are_answered() -> None:
    server, _ = make_server()
    client = Client(server)
    assert [reply.xid for reply in client.send_frame(wire.ping())] == [wire.PING_XID]
    assert [(reply.xid, reply.error) for reply in client.send_frame(wire.auth("digest", b"a:b"))] == [(wire.AUTH_XID, 0)]
    (synced,) = client.send_frame(b"\0" * 4 + struct.pack(">ii", 5, server_wire.SYNC) + struct.pack(">i", 2) + b"/a")
    assert (synced.xid, synced.body.text()) == (5, "/a")
    (refused,) = client.send_frame(b"\0" * 4 + struct.pack(">ii", 6, 999))
    assert (refused.xid, refused.error) == (6, server_wire.UNIMPLEMENTED)


def test_get_children_without_a_stat_is_answered() -> None:
    server, _ = make_server()
    client = Client(server)
    client.send(Create("/a"), Create("/a/b"))
    (reply,) = client.send_frame(b"\0" * 4 + struct.pack(">ii", 5, server_wire.GET_CHILDREN) + struct.pack(">i", 2) + b"/a\0")
    assert (reply.body.texts(), reply.body.is_at_end) == (["b"], True)


def test_the_end_of_a_session_deletes_its_ephemeral_nodes_at_once() -> None:
    server, _ = make_server()
    owner, other = Client(server), Client(server)
    owner.send(Create("/e", None, CreateMode.EPHEMERAL))
    other.send(Exists("/e", watch=True))
    (reply,) = owner.send_frame(wire.close(7))
    assert reply.xid == 7
    assert owner.connection.is_ended
    assert other.events() == [WatchedEvent(EventType.NODE_DELETED, "/e")]
    assert server.session_count == 1


def test_a_process_that_was_reaped_takes_its_sessions_with_it_and_no_others() -> None:
    server, _ = make_server()
    dead, alive = Client(server, process=10), Client(server, process=11)
    dead.send(Create("/dead", None, CreateMode.EPHEMERAL))
    alive.send(Create("/alive", None, CreateMode.EPHEMERAL))
    server.process_ended(10)
    assert dead.connection.is_ended
    assert alive.send(Exists("/dead"), Exists("/alive"))[0] is None
    assert server.session_count == 1


def test_a_lost_connection_leaves_the_session_until_its_timeout() -> None:
    server, _ = make_server()
    client, other = Client(server), Client(server)
    client.send(Create("/e", None, CreateMode.EPHEMERAL))
    server.lost(client.connection)
    for now_ms in range(0, TIMEOUT_MS + 1, TICK_MS):
        assert other.send(Exists("/e"), monotonic_ms=now_ms)[0] is not None
        server.tick(now_ms)
    assert other.send(Exists("/e"), monotonic_ms=TIMEOUT_MS)[0] is None


def test_every_frame_is_a_sign_of_life() -> None:
    server, _ = make_server()
    client = Client(server)
    for now_ms in range(0, 3 * TIMEOUT_MS, TICK_MS):
        client.send_frame(wire.ping(), now_ms)
        server.tick(now_ms)
    assert not client.connection.is_ended


def test_a_server_that_was_suspended_gives_its_clients_the_time_it_missed() -> None:
    server, _ = make_server()
    client = Client(server)
    server.tick(TICK_MS)
    server.tick(50 * TIMEOUT_MS)
    assert not client.connection.is_ended
    client.send_frame(wire.ping(), 50 * TIMEOUT_MS)
    for now_ms in range(50 * TIMEOUT_MS + TICK_MS, 51 * TIMEOUT_MS + TICK_MS, TICK_MS):
        server.tick(now_ms)
    assert client.connection.is_ended


def test_a_session_continues_on_another_connection_with_its_password_only() -> None:
    server, _ = make_server()
    client = Client(server)
    session_id, password = client.handshake.session_id, client.handshake.password
    client.send(Create("/e", None, CreateMode.EPHEMERAL))
    stranger = Client(server, session_id=session_id, password=bytes(16))
    assert (stranger.handshake.timeout_ms, stranger.handshake.session_id) == (0, 0)
    assert stranger.connection.is_ended
    again = Client(server, session_id=session_id, password=password)
    assert again.handshake == client.handshake
    assert client.connection.is_ended
    server.lost(client.connection)  # is reported later, and does not concern the new one
    assert again.send(Exists("/e"))[0].ephemeral_owner == session_id


def test_a_session_that_has_ended_is_expired_for_whoever_returns() -> None:
    server, _ = make_server()
    client = Client(server)
    server.process_ended(1)
    again = Client(server, session_id=client.handshake.session_id, password=client.handshake.password)
    assert again.handshake.timeout_ms == 0


def test_watches_of_a_lost_connection_return_with_the_events_that_were_missed() -> None:
    server, tree = make_server()
    client, other = Client(server), Client(server)
    other.send(*(Create(path) for path in ("/changed", "/deleted", "/same", "/parent", "/quiet")))
    last_zxid = tree.last_zxid
    client.send(GetData("/changed", watch=True))
    server.lost(client.connection)
    other.send(SetData("/changed", b"1"), Delete("/deleted"), Create("/parent/child"), Create("/created"))
    again = Client(server, session_id=client.handshake.session_id, password=client.handshake.password)
    assert again.events() == []
    frame = wire.set_watches(last_zxid, ["/changed", "/deleted", "/same"], ["/created", "/missing"], ["/parent", "/quiet", "/deleted"])
    replies = again.send_frame(frame)
    assert [wire.event(reply.body, "") for reply in replies[:-1]] == [
        WatchedEvent(EventType.NODE_DATA_CHANGED, "/changed"),
        WatchedEvent(EventType.NODE_DELETED, "/deleted"),
        WatchedEvent(EventType.NODE_CREATED, "/created"),
        WatchedEvent(EventType.NODE_CHILDREN_CHANGED, "/parent"),
        WatchedEvent(EventType.NODE_DELETED, "/deleted"),
    ]
    assert (replies[-1].xid, replies[-1].error) == (wire.SET_WATCHES_XID, 0)
    other.send(SetData("/same", b"1"), Create("/missing"), Create("/quiet/child"))
    assert [(event.type, event.path) for event in again.events()] == [
        (EventType.NODE_DATA_CHANGED, "/same"),
        (EventType.NODE_CREATED, "/missing"),
        (EventType.NODE_CHILDREN_CHANGED, "/quiet"),
    ]


def test_nodes_of_other_kinds_are_refused() -> None:
    server, _ = make_server()
    client = Client(server)
    body = struct.pack(">i", 2) + b"/c" + struct.pack(">iii", -1, 0, 4)  # a container
    (reply,) = client.send_frame(b"\0" * 4 + struct.pack(">ii", 1, wire.CREATE) + body)
    assert reply.error == -8
    assert client.send(Exists("/c")) == [None]


def test_close_ends_everything() -> None:
    server, tree = make_server()
    clients = [Client(server) for _ in range(3)]
    clients[0].send(Create("/e", None, CreateMode.EPHEMERAL), GetChildren("/", watch=True))
    server.close()
    assert all(client.connection.is_ended for client in clients)
    assert (tree.node_count, tree.watch_count, server.session_count) == (1, 0, 0)


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_bytes_that_are_not_zookeepers_are_malformed_and_nothing_else(frames: list[bytes]) -> None:
    server, _ = make_server()
    client = Client(server)
    for connection, garbage in ((client.connection, frames), (Connection(), frames)):
        try:
            server.received(connection, garbage, 0)
        except wire.Malformed:
            pass


@given(st.integers(0, 20), st.binary(max_size=40))
def test_requests_with_a_wrong_body_are_malformed_or_answered(operation: int, body: bytes) -> None:
    server, _ = make_server()
    client = Client(server)
    try:
        server.received(client.connection, [struct.pack(">ii", 1, operation) + body], 0)
    except wire.Malformed:
        return
    assert len(client.connection.take()) == 1
