"""Connection strings, bytes and watch lists of the ZooKeeper client; what it does with a server is tested with a real one."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.errors import StoreUnusable
from barnabas.metadata.tree import EventType, Exists, GetChildren, GetData, WatchedEvent
from barnabas.metadata.zookeeper import wire
from barnabas.metadata.zookeeper.access import ALL, READ, ZnodeAcl, of_creator, open_to_all
from barnabas.metadata.zookeeper.address import Ensemble, Server, parse
from barnabas.metadata.zookeeper.watch_list import WatchList


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("localhost", [("localhost", 2181)], ""),
        ("a:1,b:2 , c", [("a", 1), ("b", 2), ("c", 2181)], ""),
        ("a:1,b:2/kafka", [("a", 1), ("b", 2)], "/kafka"),
        ("a/kafka/eu/", [("a", 2181)], "/kafka/eu"),
        ("a:1/", [("a", 1)], ""),
        ("[::1]:2182,[fe80::1]", [("::1", 2182), ("fe80::1", 2181)], ""),
    ],
)
def test_a_connection_string_names_servers_and_a_chroot(text: str, servers: list[tuple[str, int]], chroot: str) -> None:
    assert parse(text) == Ensemble(tuple(Server(*server) for server in servers), chroot)


@pytest.mark.parametrize("text", ["", "/kafka", "a:port", "a:0", "a:70000", ":2181", "a:1/ka//fka", "a:1/../b"])
def test_what_is_no_connection_string_is_refused_with_the_form_it_should_have(text: str) -> None:
    with pytest.raises(StoreUnusable, match=r"Give it as host:port"):
        parse(text)


def test_an_ensemble_reads_as_it_is_written() -> None:
    assert str(parse("a:1,[::1]:2/kafka")) == "a:1,[::1]:2/kafka"


def test_nodes_are_open_to_all_unless_access_lists_are_asked_for() -> None:
    assert open_to_all("/config/users") == (ZnodeAcl(ALL, "world", "anyone"),)
    assert of_creator("/brokers/ids/1") == (ZnodeAcl(ALL, "auth", ""), ZnodeAcl(READ, "world", "anyone"))
    assert of_creator("/consumers") == (ZnodeAcl(ALL, "world", "anyone"),)


@pytest.mark.parametrize("path", ["/config/users/alice", "/config/brokers/1", "/delegation_token/tokens/id"])
def test_nodes_with_secrets_are_not_readable_by_others(path: str) -> None:
    assert of_creator(path) == (ZnodeAcl(ALL, "auth", ""),)


@given(st.binary(max_size=60))
def test_bytes_that_are_not_zookeepers_are_malformed_and_nothing_else(frame: bytes) -> None:
    for take in (
        wire.handshake,
        wire.reply,
        lambda data: wire.event(wire.JuteReader(data), ""),
        lambda data: wire.JuteReader(data).texts(),
    ):
        try:
            take(frame)
        except wire.Malformed:
            pass


def test_an_event_outside_the_chroot_is_not_told() -> None:
    def event(path: str) -> WatchedEvent | None:
        body = struct.pack(">iii", 3, 3, len(path)) + path.encode()
        return wire.event(wire.JuteReader(body), "/kafka")

    assert event("/kafka/brokers") == WatchedEvent(EventType.NODE_DATA_CHANGED, "/brokers")
    assert event("/kafka") == WatchedEvent(EventType.NODE_DATA_CHANGED, "/")
    assert event("/other") is None
    assert event("/kafka2/brokers") is None


def test_watches_are_left_by_reads_that_found_something_and_by_exists() -> None:
    watches = WatchList()
    for request, is_there in (
        (GetData("/a", True), True),
        (GetData("/no", True), False),
        (Exists("/b", True), False),
        (GetData("/c"), True),
    ):
        watches.note_response(request, is_there)
    watches.note_response(GetChildren("/", True), True)
    assert list(watches.in_portions("/kafka")) == [(["/kafka/a"], ["/kafka/b"], ["/kafka"])]


def test_an_event_uses_up_the_watches_it_concerns() -> None:
    watches = WatchList()
    for request in (GetData("/a", True), GetChildren("/a", True), GetChildren("/b", True)):
        watches.note_response(request, True)
    watches.remove_triggered(WatchedEvent(EventType.NODE_DATA_CHANGED, "/a"))
    assert len(watches) == 2
    watches.remove_triggered(WatchedEvent(EventType.NODE_DELETED, "/a"))
    watches.remove_triggered(WatchedEvent(EventType.NODE_CHILDREN_CHANGED, "/b"))
    assert len(watches) == 0


def test_many_watches_are_told_in_portions_that_a_server_takes() -> None:
    watches = WatchList()
    for number in range(10_000):
        watches.note_response(GetData(f"/brokers/topics/a-topic-with-a-long-name-{number}", True), True)
    portions = list(watches.in_portions(""))
    assert sum(len(data) for data, _, _ in portions) == 10_000
    assert all(len(wire.set_watches(0, *portion)) < 2 * wire.WATCHES_BYTES_MAX for portion in portions)
