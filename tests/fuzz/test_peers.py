"""Peers that behave badly for long: that never read, never send, or flood. Others do not notice, and the broker's memory stays bounded."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from benchmarks.generator import fetch_frame
from tests.fuzz import target, witness
from tests.fuzz.batches import NOW_MS, plain
from tests.fuzz.noise import API_VERSIONS
from tests.fuzz.target import HOST, Target

IDLE = 10_000
PEERS = 20
TOPIC = "large"
TOPIC_MB = 16
FETCH_BYTES = 1 << 20
FLOOD_S = 3
# What a connection may make the broker hold: a request, the responses it does not take, and as much again in the loop's buffers.
PEER_MB_MAX = 6
SLOWEST_MS_MAX = 5_000
IDLE_MB_MAX = 150


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Target]:
    with target.running(tmp_path) as running:
        yield running
        assert not running.complaints()


def test_peers_that_never_read_their_responses_do_not_make_memory_grow(broker: Target) -> None:
    _fill(broker)
    frame = fetch_frame(TOPIC, 0, FETCH_BYTES)
    _besiege(broker, [frame] * 100)


def test_peers_that_flood_without_reading_do_not_make_memory_grow(broker: Target) -> None:
    _besiege(broker, [API_VERSIONS] * 10_000)


def test_peers_that_begin_a_request_and_never_end_it_do_not_make_memory_grow(broker: Target) -> None:
    _besiege(broker, [(104_857_600).to_bytes(4, "big") + bytes(1000)])


def test_ten_thousand_connections_that_say_nothing_harm_nobody(broker: Target) -> None:
    before_mb, before_files = broker.memory_mb(), broker.open_files()
    with witness.watching(broker.port) as testimony:
        command = [sys.executable, "-m", "tests.fuzz.idle", str(broker.port), str(IDLE)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as idle:
            assert idle.stdout is not None and idle.stdin is not None
            assert idle.stdout.readline() == f"open {IDLE}\n"
            _await(lambda: broker.connections() > IDLE)
            with broker.client() as client:
                assert client.metadata([]).brokers
            held_mb = broker.memory_mb()
            idle.stdin.close()
            assert idle.wait(60) == 0
    assert held_mb - before_mb < IDLE_MB_MAX
    assert testimony[0].slowest_ms < SLOWEST_MS_MAX
    assert broker.await_files(before_files + 20, 60) <= before_files + 20


def _besiege(broker: Target, frames: list[bytes]) -> None:
    """Sends the frames from many connections for some seconds, as far as the broker takes them, and reads nothing."""
    with witness.watching(broker.port) as testimony, ExitStack() as held:
        before_mb, sockets = broker.memory_mb(), broker.connections()
        peers = [held.enter_context(socket.create_connection((HOST, broker.port), 30)) for _ in range(PEERS)]
        unsent = {peer: memoryview(b"".join(frames)) for peer in peers}
        until = time.monotonic() + FLOOD_S
        for peer in peers:
            peer.setblocking(False)
        while time.monotonic() < until:
            for peer in select.select([], [peer for peer in peers if unsent[peer]], [], 0.1)[1]:
                unsent[peer] = unsent[peer][peer.send(unsent[peer][:65536]) :]
        grown_mb = broker.memory_mb() - before_mb
        print(f"memory {before_mb:.0f} MB before, {grown_mb:+.0f} MB with {PEERS} such peers")
        assert grown_mb < PEERS * PEER_MB_MAX
    assert testimony[0].slowest_ms < SLOWEST_MS_MAX
    assert broker.await_connections(sockets) <= sockets


def _fill(broker: Target) -> None:
    with broker.client() as client:
        client.create_topics([TOPIC])
        batch = PartitionProduceData(0, Records(plain(1000, NOW_MS, 900)))
        for _ in range(TOPIC_MB):
            response = client.ask(ProduceRequest(None, -1, 30_000, [TopicProduceData(TOPIC, partition_data=[batch])]), 9)
            assert response.responses[0].partition_responses[0].error_code == 0


def _await(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so() and time.monotonic() < until:
        time.sleep(0.05)
    assert is_so()
