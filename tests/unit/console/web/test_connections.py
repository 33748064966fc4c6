"""Bounds of connections that send nothing, or not enough, on the sockets of a console."""

from __future__ import annotations

import re
import socket
import time
from contextlib import ExitStack

import pytest

from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.web.connections import Connection
from tests.console_server import DEADLINE_S, served

CONFIG = ConsoleConfig((ClusterConfig("down", {"bootstrap.servers": "127.0.0.1:1"}),))
REQUEST = b"GET /static/console.css HTTP/1.1\r\nhost: localhost\r\n%s\r\n"
FORM = b"POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\nconnection: close\r\n\r\n"


class Quick(Connection):
    request_s = 0.2


class Few(Connection):
    silent_max = 5


class Small(Connection):
    connections_max = 5
    silent_max = 5


def test_a_connection_without_a_request_is_closed() -> None:
    with served(CONFIG, Quick) as address, socket.create_connection(address, DEADLINE_S) as silent:
        assert rest(silent) == b""


def test_a_request_that_never_ends_is_closed_also_after_another_one() -> None:
    with served(CONFIG, Quick) as address, ExitStack() as cleanup:
        first, second = (cleanup.enter_context(socket.create_connection(address, DEADLINE_S)) for _ in range(2))
        first.sendall(REQUEST[:20])
        second.sendall(REQUEST % b"")
        assert response(second).startswith(b"HTTP/1.1 200")
        second.sendall(REQUEST[:20])
        assert rest(first) == b""
        assert rest(second) == b""


def test_a_request_in_progress_may_take_longer() -> None:
    with served(CONFIG, Quick) as address, socket.create_connection(address, DEADLINE_S) as slow:
        slow.sendall(FORM)
        time.sleep(3 * Quick.request_s)  # longer than the bound that must not apply
        slow.sendall(b"x")
        assert rest(slow).startswith(b"HTTP/1.1 403")


def test_many_silent_connections_keep_nobody_out() -> None:
    with served(CONFIG, Few) as address, ExitStack() as cleanup:
        silent = [cleanup.enter_context(socket.create_connection(address, DEADLINE_S)) for _ in range(50)]
        with socket.create_connection(address, DEADLINE_S) as browser:
            browser.sendall(REQUEST % b"connection: close\r\n")
            assert rest(browser).startswith(b"HTTP/1.1 200")
        assert [rest(one) for one in silent[:45]] == [b""] * 45


def test_at_the_bound_of_connections_the_one_that_is_idle_for_longest_is_closed() -> None:
    with served(CONFIG, Small) as address, ExitStack() as cleanup:
        kept = []
        for _ in range(10):
            one = cleanup.enter_context(socket.create_connection(address, DEADLINE_S))
            one.sendall(REQUEST % b"")
            assert response(one).startswith(b"HTTP/1.1 200")
            kept.append(one)
        assert [rest(one) for one in kept[:5]] == [b""] * 5


def test_a_body_that_is_not_http_is_refused_once_and_logs_no_exception(caplog: pytest.LogCaptureFixture) -> None:
    with served(CONFIG) as address, socket.create_connection(address, DEADLINE_S) as broken:
        broken.sendall(b"POST /login HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nno number\r\n")
        assert rest(broken).startswith(b"HTTP/1.1 400")
    assert [record for record in caplog.records if record.exc_info] == []


def response(connection: socket.socket) -> bytes:
    """The whole response, on a connection that stays open."""
    received = bytearray()
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None
    while len(body) < int(length[1]):
        body += connection.recv(65536)
    return head + body


def rest(connection: socket.socket) -> bytes:
    """What arrives until the console closes the connection."""
    received = bytearray()
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return bytes(received)
