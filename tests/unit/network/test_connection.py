from __future__ import annotations

import asyncio
import random
import socket
import struct
from typing import Any

import pytest

from barnabas.errors import KafkaError
from barnabas.network.connection import RECEIVED_AT_ONCE, Connection
from barnabas.network.connection_context import RECEIVED_PER_TURN
from barnabas.network.exchange import Exchange
from barnabas.network.frames import IN_PLACE_MIN
from tests.unit.network.harness import Client, Clock, Echo, Keeper, client_of, framed, serving, the_connection, until


async def test_a_request_is_answered() -> None:
    async with serving(Echo()) as server, client_of(server) as client:
        assert await client.ask(b"hello") == b"hello"


async def test_many_requests_sent_at_once_are_answered_in_order() -> None:
    bodies = [str(number).encode() for number in range(1000)]
    async with serving(Echo()) as server, client_of(server) as client:
        client.send(*bodies)
        assert [await client.receive() for _ in bodies] == bodies


async def test_one_request_of_a_connection_is_in_process_at_a_time() -> None:
    keeper = Keeper()
    async with serving(keeper) as server, client_of(server) as client:
        client.send(b"first", b"second")
        connection = await the_connection(server)
        await until(lambda: not connection.is_reading)
        assert keeper.frames == [b"first"]
        keeper.answer(b"first")
        await until(lambda: keeper.frames == [b"second"])
        keeper.answer(b"second")
        assert [await client.receive(), await client.receive()] == [b"first", b"second"]
        await until(lambda: connection.is_reading)


async def test_a_waiting_request_does_not_hold_up_another_connection() -> None:
    keeper = Keeper()
    async with serving(keeper) as server, client_of(server) as one, client_of(server) as other:
        one.send(b"slow")
        await until(lambda: keeper.frames == [b"slow"])
        other.send(b"quick")
        await until(lambda: len(keeper.kept) == 2)
        keeper.answer(b"quick")
        assert await other.receive() == b"quick"


async def test_pipelinable_requests_are_handed_over_up_to_the_bound() -> None:
    keeper = Keeper()
    bodies = [b"P%d" % number for number in range(5)]
    async with serving(keeper, pipelined_requests_max=3) as server, client_of(server) as client:
        client.send(*bodies)
        connection = await the_connection(server)
        await until(lambda: not connection.is_reading)
        assert keeper.frames == bodies[:3]
        keeper.answer(b"P0")
        await until(lambda: keeper.frames == bodies[1:4])


async def test_pipelined_requests_are_answered_in_their_order_whichever_is_done_first() -> None:
    keeper = Keeper()
    bodies = [b"P%d" % number for number in range(4)]
    async with serving(keeper) as server, client_of(server) as client:
        client.send(*bodies)
        await until(lambda: keeper.frames == bodies)
        for body in reversed(bodies):
            keeper.answer(body)
        assert [await client.receive() for _ in bodies] == bodies


async def test_a_response_out_of_turn_is_not_sent_before_its_turn() -> None:
    keeper = Keeper()
    async with serving(keeper) as server, client_of(server) as client:
        client.send(b"P0", b"P1")
        await until(lambda: len(keeper.kept) == 2)
        keeper.answer(b"P1")
        assert server.listeners["PLAINTEXT"].context.metrics.responses == 0
        keeper.answer(b"P0")
        assert [await client.receive(), await client.receive()] == [b"P0", b"P1"]


async def test_a_request_that_takes_long_holds_the_next_one_until_its_order_no_longer_matters() -> None:
    class Holding(Keeper):
        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            super().dispatch(exchange, frame)
            if frame == b"P1":
                exchange.hold_next()

    keeper = Holding()
    async with serving(keeper) as server, client_of(server) as client:
        client.send(b"P0", b"P1", b"P2", b"P3")
        connection = await the_connection(server)
        await until(lambda: not connection.is_reading)
        assert keeper.frames == [b"P0", b"P1"]
        keeper.kept[1][0].release_next()
        await until(lambda: keeper.frames == [b"P0", b"P1", b"P2", b"P3"])  # and none of them is answered yet
        for body in (b"P3", b"P2", b"P1", b"P0"):
            keeper.answer(body)
        assert [await client.receive() for _ in range(4)] == [b"P0", b"P1", b"P2", b"P3"]


async def test_the_answer_of_a_request_that_held_the_next_lets_it_go_on() -> None:
    class Holding(Keeper):
        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            super().dispatch(exchange, frame)
            exchange.hold_next()

    keeper = Holding()
    async with serving(keeper) as server, client_of(server) as client:
        client.send(b"P0", b"P1")
        await until(lambda: keeper.frames == [b"P0"])
        keeper.answer(b"P0")
        await until(lambda: keeper.frames == [b"P1"])


async def test_an_ordinary_request_waits_for_the_pipelined_ones_before_it() -> None:
    keeper = Keeper()
    async with serving(keeper) as server, client_of(server) as client:
        client.send(b"P0", b"P1", b"fetch", b"P2")
        connection = await the_connection(server)
        await until(lambda: not connection.is_reading)
        assert keeper.frames == [b"P0", b"P1"]
        keeper.answer(b"P0")
        keeper.answer(b"P1")
        await until(lambda: keeper.frames == [b"fetch"])
        assert connection.in_process == 1


async def test_any_order_of_answers_gives_the_order_of_the_requests() -> None:
    choice = random.Random(7)
    keeper = Keeper()
    bodies = [b"%s%d" % (choice.choice([b"P", b"x"]), number) for number in range(300)]
    async with serving(keeper) as server, client_of(server) as client:
        client.send(*bodies)
        received: list[bytes] = []
        answered = 0
        while answered < len(bodies):
            await until(lambda: keeper.kept)
            keeper.answer(choice.choice(keeper.frames))
            answered += 1
        while len(received) < len(bodies):
            received.append(await client.receive())
        assert received == bodies


async def test_a_request_without_response_leaves_no_gap() -> None:
    class Silent(Echo):
        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            if frame == b"P acks=0":
                exchange.no_response()
            else:
                super().dispatch(exchange, frame)

    async with serving(Silent()) as server, client_of(server) as client:
        client.send(b"P acks=0", b"P1", b"P acks=0", b"P2")
        assert [await client.receive(), await client.receive()] == [b"P1", b"P2"]


async def test_what_was_sent_before_a_client_hung_up_is_handled() -> None:
    class Counting(Echo):
        count = 0

        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            self.count += 1
            exchange.no_response()

    counting = Counting()
    async with serving(counting) as server:
        async with client_of(server) as client:
            client.send(*[b"P acks=0"] * 500)
        await until(lambda: counting.count == 500)


async def test_a_connection_is_closed_after_the_response_if_asked() -> None:
    class Closing(Echo):
        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            exchange.respond([framed(frame)], close=True)

    async with serving(Closing()) as server, client_of(server) as client:
        assert await client.ask(b"last") == b"last"
        assert await client.is_closed_by_server()


async def test_closing_for_a_request_waits_for_the_responses_before_it() -> None:
    keeper = Keeper()
    async with serving(keeper) as server, client_of(server) as client:
        client.send(b"P0", b"P1", b"P2")
        await until(lambda: len(keeper.kept) == 3)
        keeper.kept.pop(1)[0].close_connection()
        keeper.answer(b"P0")
        assert await client.receive() == b"P0"
        assert await client.is_closed_by_server()
        keeper.answer(b"P2")  # too late, and nobody is hurt


async def test_answering_twice_is_an_error_of_the_handler() -> None:
    keeper = Keeper()
    async with serving(keeper) as server, client_of(server) as client:
        client.send(b"once")
        await until(lambda: keeper.kept)
        exchange, _ = keeper.kept[0]
        exchange.respond([framed(b"once")])
        with pytest.raises(RuntimeError, match="answered twice"):
            exchange.no_response()
        assert await client.receive() == b"once"


async def test_an_answer_after_the_client_has_gone_is_dropped() -> None:
    keeper = Keeper()
    async with serving(keeper) as server:
        async with client_of(server) as client:
            client.send(b"bye")
            await until(lambda: keeper.kept)
        await until(lambda: not server.connections)
        keeper.answer(b"bye")
        assert server.data_plane.requests == 0


async def test_a_response_may_be_many_buffers() -> None:
    class Pieces(Echo):
        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            exchange.respond([struct.pack(">i", 6), b"ab", memoryview(b"xcdx")[1:3], bytearray(b"ef")])

    async with serving(Pieces()) as server, client_of(server) as client:
        assert await client.ask(b"?") == b"abcdef"


async def test_half_frames_byte_by_byte_are_one_request() -> None:
    async with serving(Echo()) as server, client_of(server) as client:
        client.writer.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in framed(b"slowly"):
            client.writer.write(bytes([byte]))
            await client.writer.drain()
        assert await client.receive() == b"slowly"


async def test_a_frame_much_larger_than_the_receive_buffer_passes() -> None:
    body = random.Random(1).randbytes(3_000_000)
    async with serving(Echo(), receive_buffer_bytes=65536) as server, client_of(server, limit=1 << 23) as client:
        assert await client.ask(body) == body


async def test_an_oversized_frame_closes_its_connection_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Echo(), socket_request_max_bytes=100) as server, client_of(server) as bad, client_of(server) as good:
        bad.send(b"x" * 101)
        assert await bad.is_closed_by_server()
        assert await good.ask(b"still here") == b"still here"
        assert server.listeners["PLAINTEXT"].context.metrics.connections_closed_invalid == 1
    lines = [record.getMessage() for record in caplog.records if record.name == "barnabas.network.connection"]
    assert len(lines) == 1 and "raise socket.request.max.bytes" in lines[0]


async def test_a_negative_size_closes_the_connection() -> None:
    async with serving(Echo()) as server, client_of(server) as client:
        client.writer.write(b"\xff\xff\xff\xff")
        assert await client.is_closed_by_server()


async def test_requests_before_a_bad_size_are_answered() -> None:
    async with serving(Echo()) as server, client_of(server) as client:
        client.writer.write(framed(b"good") + b"\xff\xff\xff\xff")
        assert await client.receive() == b"good"
        assert await client.is_closed_by_server()


class Failing(Echo):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        if frame == b"bad":
            raise self.error
        super().dispatch(exchange, frame)


async def test_an_error_in_the_dispatcher_closes_that_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Failing(ValueError("a bug"))) as server, client_of(server) as bad, client_of(server) as good:
        bad.send(b"bad")
        assert await bad.is_closed_by_server()
        assert await good.ask(b"fine") == b"fine"
        assert server.data_plane.requests == 0
    assert "a bug" in caplog.text and "Traceback" in caplog.text


async def test_a_message_that_cannot_be_read_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Failing(KafkaError("malformed"))) as server, client_of(server) as bad:
        bad.send(b"bad")
        assert await bad.is_closed_by_server()
    assert "malformed" in caplog.text and "Traceback" not in caplog.text


async def test_a_throttled_connection_is_not_heard_until_its_time_has_come() -> None:
    clock = Clock()

    class Throttling(Keeper):
        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            if frame == b"too much":
                assert isinstance(exchange.connection, Connection)
                exchange.connection.throttle(clock.now_ms + 50)
                exchange.respond([framed(b"throttled")])
            else:
                super().dispatch(exchange, frame)

    throttling = Throttling()
    async with serving(throttling, monotonic_ms=clock) as server, client_of(server) as client:
        client.send(b"too much", b"more")
        assert await client.receive() == b"throttled"  # the response goes out at once
        connection = await the_connection(server)
        await until(lambda: not connection.is_reading)
        assert throttling.frames == []
        clock.now_ms += 50
        await until(lambda: throttling.frames == [b"more"])


@pytest.mark.parametrize("throttles_ms", [(10, 20), (20, 10)])
async def test_of_two_throttles_the_longer_one_counts(throttles_ms: tuple[int, int]) -> None:
    clock = Clock()
    async with serving(Echo(), monotonic_ms=clock) as server, client_of(server) as client:
        connection = await the_connection(server)
        start_ms = clock.now_ms
        for throttle_ms in throttles_ms:
            connection.throttle(start_ms + throttle_ms)
        assert connection.throttled_until_ms == start_ms + 20
        client.send(b"?")
        await until(lambda: not connection.is_reading)
        clock.now_ms += 20
        assert await client.receive() == b"?"


async def test_at_queued_max_requests_nobody_is_heard_until_there_is_room() -> None:
    keeper = Keeper()
    async with serving(keeper, queued_max_requests=2) as server, client_of(server) as one, client_of(server) as two:
        one.send(b"P1", b"P2")
        await until(lambda: len(keeper.kept) == 2)
        two.send(b"3")
        await until(lambda: server.data_plane.waiting == 1)
        assert keeper.frames == [b"P1", b"P2"]
        keeper.answer(b"P2")
        await until(lambda: keeper.frames == [b"P1", b"3"])


async def test_a_request_that_waits_for_an_event_does_not_count_as_queued() -> None:
    keeper = Keeper()
    async with serving(keeper, queued_max_requests=1) as server, client_of(server) as one, client_of(server) as two:
        one.send(b"fetch")
        await until(lambda: keeper.kept)
        keeper.kept[0][0].leave_queue()
        two.send(b"produce")
        await until(lambda: len(keeper.kept) == 2)
        keeper.answer(b"fetch")
        keeper.answer(b"produce")
        assert server.data_plane.requests == 0


async def test_a_connection_that_ends_while_it_waits_for_the_queue_is_forgotten() -> None:
    keeper = Keeper()
    async with serving(keeper, queued_max_requests=1) as server, client_of(server) as one, client_of(server) as three:
        one.send(b"1")
        await until(lambda: keeper.kept)
        async with client_of(server) as two:
            two.send(b"2")
            await until(lambda: server.data_plane.waiting == 1)
            next(connection for connection in server.connections if not connection.is_reading).abort()
            assert await two.is_closed_by_server()
        await until(lambda: len(server.connections) == 2)
        assert server.data_plane.waiting == 0
        three.send(b"3")
        await until(lambda: server.data_plane.waiting == 1)
        keeper.answer(b"1")
        await until(lambda: keeper.frames == [b"3"])


async def test_a_peer_that_never_reads_is_not_listened_to_and_memory_stays_bounded() -> None:
    class Large(Echo):
        """Answers a few bytes with a hundred kilobytes."""

        response = framed(b"x" * 100_000)

        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            exchange.respond([self.response])

    async with serving(Large()) as server:
        with silent_peer(server) as peer:
            peer.sendall(framed(b"more") * 2000)  # would be 200 MB of responses
            connection = await the_connection(server)
            await until(lambda: not connection.is_reading)
            transport: Any = connection._transport
            assert transport.get_write_buffer_size() < 1_000_000
            assert server.listeners["PLAINTEXT"].context.metrics.requests < 50
            async with client_of(server) as other:
                assert len(await other.ask(b"?")) == 100_000


async def test_a_slow_reader_gets_everything_in_the_end() -> None:
    class Large(Echo):
        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            exchange.respond([framed(frame * 10_000)])

    async with serving(Large()) as server, client_of(server, limit=1024) as client:
        bodies = [b"%03d" % number for number in range(300)]
        client.send(*bodies)
        connection = await the_connection(server)
        await until(lambda: connection.is_muted)
        for body in bodies:
            assert await client.receive() == body * 10_000


async def test_a_peer_that_closes_without_reading_leaves_nothing_behind() -> None:
    class Large(Echo):
        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            exchange.respond([framed(b"x" * 1_000_000)])

    async with serving(Large()) as server:
        with silent_peer(server) as peer:
            peer.sendall(framed(b"?") * 3)
            connection = await the_connection(server)
            await until(lambda: connection.is_muted)
        await until(lambda: not server.connections)
        assert (server.quotas.total, server.data_plane.requests, len(server.idle)) == (0, 0, 0)


async def test_many_small_frames_of_one_peer_leave_others_their_turn() -> None:
    class Watching(Echo):
        served: list[bytes]

        def __init__(self) -> None:
            self.served = []

        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            self.served.append(frame)
            exchange.no_response()

    watching = Watching()
    async with serving(watching) as server:
        with silent_peer(server) as flood, silent_peer(server) as other:
            await until(lambda: len(server.connections) == 2)
            flood.sendall(framed(b"f") * 10_000)  # this blocks the loop: both stand in the kernel when it goes on
            other.sendall(framed(b"other"))
            await until(lambda: len(watching.served) == 10_001)
    assert watching.served.index(b"other") < 1000


class FullSocket:
    """A transport whose socket always has more bytes to read, as that of a peer that sends much faster than it is heard."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.is_reading = True
        connection.connection_made(self)

    def read_while_allowed(self, most: int) -> int:
        """Fills the buffers that the connection gives, as the loop does, until it pauses reading. How many bytes it has taken."""
        taken = 0
        while self.is_reading and taken < most:
            size = min(len(self.connection.get_buffer(-1)), most - taken)
            self.connection.buffer_updated(size)
            taken += size
        return taken

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def abort(self) -> None:
        self.is_reading = False

    close = abort

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None) -> None: ...
    def write(self, data: bytes) -> None: ...
    def writelines(self, list_of_data: Any) -> None: ...
    def get_extra_info(self, name: str) -> Any: ...


async def test_large_requests_that_arrive_leave_others_their_turn() -> None:
    size = 4 * RECEIVED_PER_TURN
    async with serving(Echo()) as server:
        context = server.listeners["PLAINTEXT"].context
        peers = [FullSocket(Connection(context, f"peer-{number}", "127.0.0.1")) for number in range(10)]
        for peer in peers:
            peer.connection.get_buffer(-1)[:4] = struct.pack(">i", size)
            peer.connection.buffer_updated(IN_PLACE_MIN)
        left = dict.fromkeys(peers, size + 4 - IN_PLACE_MIN)
        turns = 0
        while any(left.values()):
            taken = {peer: peer.read_while_allowed(missing) for peer, missing in left.items()}
            assert 0 < sum(taken.values()) <= RECEIVED_PER_TURN + len(peers) * 2 * RECEIVED_AT_ONCE
            left = {peer: missing - taken[peer] for peer, missing in left.items()}
            turns += 1
            await asyncio.sleep(0)  # the next iteration of the loop
            await asyncio.sleep(0)  # in which they are heard again
        assert turns > 10
        await until(lambda: context.metrics.requests == len(peers))
        for peer in peers:
            peer.connection.is_counted = False  # it has not come by the listener
            peer.connection.connection_lost(None)


async def test_bytes_and_requests_are_counted() -> None:
    async with serving(Echo()) as server, client_of(server) as client:
        await client.ask(b"12345678")
        metrics = server.listeners["PLAINTEXT"].context.metrics
        assert (metrics.requests, metrics.responses, metrics.bytes_in, metrics.bytes_out) == (1, 1, 12, 12)
        assert (metrics.connections, metrics.connections_accepted) == (1, 1)
        assert metrics.busy_ns > 0


async def test_connection_ids_are_kafkas() -> None:
    async with serving(Echo()) as server, client_of(server) as client:
        await client.ask(b"?")
        remote = client.writer.get_extra_info("sockname")[1]
        assert (await the_connection(server)).id == f"127.0.0.1:{server.port('PLAINTEXT')}-127.0.0.1:{remote}-0"


async def test_random_segments_on_a_socket_give_the_same_answers() -> None:
    choice = random.Random(3)
    bodies = [choice.randbytes(choice.choice([0, 1, 30, 1000, 20_000])) for _ in range(100)]
    stream = b"".join(framed(body) for body in bodies)
    async with serving(Echo(), receive_buffer_bytes=4096) as server, client_of(server) as client:
        sending = asyncio.create_task(send_in_segments(client, stream, choice))
        assert [await client.receive() for _ in bodies] == bodies
        await sending


async def send_in_segments(client: Client, stream: bytes, choice: random.Random) -> None:
    at = 0
    while at < len(stream):
        size = choice.choice([1, 2, 3, 5, 100, 5000, 60_000])
        client.writer.write(stream[at : at + size])
        await client.writer.drain()
        await asyncio.sleep(0)
        at += size


def silent_peer(server: Any) -> socket.socket:
    """A blocking socket with small buffers, of which nothing is ever read."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect(("127.0.0.1", server.port("PLAINTEXT")))
    return peer
