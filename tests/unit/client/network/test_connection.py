"""One connection, fed by hand: frames however they are cut, and what ends it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.errors import Disconnected, KafkaError, Timeout
from barnabas.client.network.connection import RECEIVE_BUFFER_BYTES, Connection, Idle
from barnabas.protocol import api_keys, framing
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.registry import APIS
from barnabas.protocol.slices import Records
from tests.client_network import on_loop
from tests.unit.client.clocks import ManualClock

FETCH = APIS[api_keys.FETCH]
VERSION = 12


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.aborted = 0

    def writelines(self, buffers: list[bytes]) -> None:
        self.written.append(b"".join(map(bytes, buffers)))

    def abort(self) -> None:
        self.aborted += 1

    def get_extra_info(self, name: str) -> None: ...


class NoTraffic:
    def sent(self, size: int, now_ms: int) -> None: ...

    def received(self, size: int, now_ms: int) -> None: ...

    def answered(self, latency_ms: int, now_ms: int) -> None: ...

    def io_begins(self, now_ns: int) -> None: ...

    def io_ended(self, now_ns: int, now_ms: int, *, reading: bool) -> None: ...


class Ends:
    """A connection with its wire, its clock, and how it ended."""

    def __init__(self, idle_ms: int = -1) -> None:
        self.clock = ManualClock()
        self.wire = cast("Any", Wire())
        self.lost: list[KafkaError] = []
        self.answers: list[Message | KafkaError | None] = []
        self.connection = Connection(
            "broker:9092",
            client_id="c",
            clock=self.clock,
            idle_ms=idle_ms,
            traffic=NoTraffic(),
            on_lost=lambda connection, error: self.lost.append(error),
        )
        self.connection.connection_made(self.wire)

    def ask(self, timeout_ms: int = 1000) -> None:
        self.connection.send(FETCH, VERSION, FetchRequest(), lambda answer, error: self.answers.append(error or answer), timeout_ms)

    def feed(self, data: bytes, sizes: list[int]) -> None:
        """Brings bytes in pieces of these sizes, and then in whatever the connection has room for."""
        at = 0
        pieces = iter(sizes)
        while at < len(data) and not self.lost:
            room = self.connection.get_buffer(-1)
            taken = min(len(room), len(data) - at, next(pieces, len(data)))
            room[:taken] = data[at : at + taken]
            del room
            self.connection.buffer_updated(taken)
            at += taken


def fetched(size: int) -> Message:
    part = PartitionData(partition_index=0, records=Records(bytes(size)))
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])


def frame(message: Message, correlation_id: int) -> bytes:
    return b"".join(framing.response_frame(message, correlation_id, VERSION, 1))  # type: ignore[arg-type]


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([0, 1, 100, RECEIVE_BUFFER_BYTES - 60, RECEIVE_BUFFER_BYTES, 300_000, 3_000_000]), min_size=1, max_size=6),
    st.lists(st.integers(1, 100_000), max_size=40),
)
def test_frames_are_the_same_however_they_are_cut(sizes: list[int], cuts: list[int]) -> None:
    async def run() -> None:
        ends = Ends()
        for _ in sizes:
            ends.ask()
        ends.feed(b"".join(frame(fetched(size), number + 1) for number, size in enumerate(sizes)), cuts)
        assert ends.answers == [fetched(size) for size in sizes] and not ends.lost
        assert ends.connection.in_flight_count == 0

    on_loop(run)


@given(st.binary(min_size=1, max_size=200), st.lists(st.integers(1, 50), max_size=20))
def test_any_bytes_end_in_an_answer_an_error_or_patience(data: bytes, cuts: list[int]) -> None:
    async def run() -> None:
        ends = Ends()
        ends.ask()
        ends.feed(data, cuts)
        assert len(ends.answers) == 1 - ends.connection.in_flight_count
        assert all(isinstance(error, Disconnected) for error in ends.lost)

    on_loop(run)


def test_correlation_ids_begin_again_after_the_largest() -> None:
    async def run() -> None:
        ends = Ends()
        ends.connection._correlation_id = 2**31 - 2
        ends.ask()
        ends.ask()
        ids = [framing.parse_request(written[4:]).correlation_id for written in ends.wire.written]
        assert ids == [2**31 - 1, 0]

    on_loop(run)


def test_a_request_that_cannot_be_said_writes_nothing() -> None:
    async def run() -> None:
        ends = Ends()
        api = APIS[api_keys.DESCRIBE_CLUSTER]
        with pytest.raises(UnsupportedVersion):
            ends.connection.send(api, 0, DescribeClusterRequest(endpoint_type=2), lambda answer, error: None, 1000)
        assert ends.wire.written == [] and ends.connection.in_flight_count == 0

    on_loop(run)


def test_time_passes() -> None:
    async def run() -> None:
        ends = Ends(idle_ms=5000)
        ends.ask(timeout_ms=1000)
        ends.ask(timeout_ms=500)
        ends.clock.advance(499)
        ends.connection._look()
        assert ends.answers == []
        ends.clock.advance(1)
        ends.connection._look()
        late, other = ends.answers
        assert isinstance(late, Timeout) and isinstance(other, Disconnected) and ends.wire.aborted == 1
        assert len(ends.lost) == 1

    on_loop(run)


def test_idleness_counts_from_the_last_byte() -> None:
    async def run() -> None:
        ends = Ends(idle_ms=5000)
        ends.clock.advance(4000)
        ends.ask()
        ends.feed(frame(fetched(1), 1), [])
        ends.clock.advance(4999)
        ends.connection._look()
        assert not ends.lost
        ends.clock.advance(1)
        ends.connection._look()
        assert [type(error) for error in ends.lost] == [Idle]

    on_loop(run)


def test_it_ends_once() -> None:
    async def run() -> None:
        ends = Ends()
        ends.ask()
        ends.connection.close(Disconnected("by us"))
        ends.connection.connection_lost(None)
        ends.connection.close(Disconnected("again"))
        await asyncio.sleep(0)
        assert [str(error) for error in ends.lost] == ["by us"] and len(ends.answers) == 1

    on_loop(run)
