from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from pathlib import Path

import pytest

from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.network import listener as listener_module
from barnabas.network.config import ListenerLimits, NetworkConfig
from barnabas.network.server import SocketServer
from tests.unit.network.harness import LOOPBACK, Client, Clock, Echo, Keeper, client_of, framed, server_tls, serving, the_connection, until

CLIENTS = EndPoint("CLIENT", "127.0.0.1", 0)
BROKERS = EndPoint("BROKER", "127.0.0.1", 0)


async def test_each_listener_has_its_port_and_its_counts() -> None:
    async with (
        serving(Echo(), CLIENTS, BROKERS) as server,
        client_of(server, "CLIENT") as one,
        client_of(server, "BROKER") as two,
        client_of(server, "BROKER") as three,
    ):
        for client in (one, two, three):
            assert await client.ask(b"?") == b"?"
        assert [server.listeners[name].context.metrics.connections for name in ("CLIENT", "BROKER")] == [1, 2]


async def test_ports_are_bound_before_anybody_is_served() -> None:
    server = SocketServer(NetworkConfig(), Echo())
    await server.start([LOOPBACK])
    async with client_of(server) as client:  # the kernel takes it
        client.send(b"early")
        assert not server.listeners["PLAINTEXT"].is_accepting
        server.start_processing_requests()
        assert await client.receive() == b"early"
    await server.shutdown(1000)


async def test_a_port_in_use_is_an_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = SocketServer(NetworkConfig(), Echo())
        with pytest.raises(
            OSError, match=f"failed to bind to 127.0.0.1:{port} .*Address already in use.*set another port in listeners"
        ) as raised:
            await server.start([LOOPBACK, EndPoint("SECOND", "127.0.0.1", port)])
        assert raised.value.errno == errno.EADDRINUSE


async def test_after_a_failed_start_no_port_is_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = SocketServer(NetworkConfig(), Echo())
        with pytest.raises(OSError):
            await server.start([LOOPBACK, EndPoint("SECOND", "127.0.0.1", taken.getsockname()[1])])
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port("PLAINTEXT"))


async def test_a_host_that_is_not_here_is_an_error_that_names_it() -> None:
    server = SocketServer(NetworkConfig(), Echo())
    with pytest.raises(OSError, match=r"192\.0\.2\.1:9092.*not an address of this machine"):
        await server.start([EndPoint("PLAINTEXT", "192.0.2.1", 9092)])


async def test_two_listeners_of_one_name_are_refused() -> None:
    server = SocketServer(NetworkConfig(), Echo())
    with pytest.raises(ValueError, match="different name"):
        await server.start([LOOPBACK, LOOPBACK])


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
async def test_an_empty_host_listens_on_ipv4_and_ipv6() -> None:
    async with serving(Echo(), EndPoint("PLAINTEXT", "", 0)) as server:
        async with client_of(server) as client:
            assert await client.ask(b"4") == b"4"
            assert (await the_connection(server)).remote_ip == "127.0.0.1"
        async with client_of(server, host="::1") as client:
            assert await client.ask(b"6") == b"6"
            await until(lambda: [connection.remote_ip for connection in server.connections] == ["::1"])
            assert server.connections[0].id.startswith(f"[::1]:{server.port('PLAINTEXT')}-[::1]:")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
async def test_an_ipv6_host_may_be_named() -> None:
    async with serving(Echo(), EndPoint("PLAINTEXT", "::1", 0)) as server, client_of(server, host="::1") as client:
        assert await client.ask(b"6") == b"6"


async def test_socket_options_are_set() -> None:
    async with serving(Echo(), socket_send_buffer_bytes=32768, socket_receive_buffer_bytes=16384) as server, client_of(server) as client:
        await client.ask(b"?")
        taken = (await the_connection(server)).extra_info("socket")
        assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        assert taken.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert taken.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * 32768  # Linux tells twice what was asked
        assert taken.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * 16384


async def test_an_address_over_its_limit_is_hung_up_on_and_comes_in_when_one_has_left() -> None:
    async with serving(Echo(), max_connections_per_ip=1) as server:
        async with client_of(server) as first:
            assert await first.ask(b"1") == b"1"
            async with client_of(server) as second:
                assert await second.is_closed_by_server()
            assert server.listeners["PLAINTEXT"].context.metrics.connections_rejected == 1
        await until(lambda: server.quotas.total == 0)
        async with client_of(server) as third:
            assert await third.ask(b"3") == b"3"


class Descriptors:
    """So many connections may be let in."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.limit = 1024
        self.is_unlimited = False
        self.asked_for: list[bool] = []

    def admits(self, descriptor: int, *, is_broker: bool = False) -> bool:
        assert descriptor > 2
        self.asked_for.append(is_broker)
        self.room -= 1
        return self.room >= 0

    def should_log(self, monotonic_ms: int) -> bool:
        return True


async def test_without_descriptors_the_next_client_waits_for_one_to_leave(caplog: pytest.LogCaptureFixture) -> None:
    descriptors = Descriptors(1)
    async with serving(Echo(), descriptors=descriptors) as server, client_of(server) as first:
        assert await first.ask(b"1") == b"1"
        async with client_of(server) as second:
            second.send(b"2")
            await until(lambda: not server.listeners["PLAINTEXT"].is_accepting)
            assert len(server.connections) == 1
            assert "raise the limit of open files" in caplog.text
            descriptors.room = 1
            await first.close()
            assert await second.receive() == b"2"


async def test_a_client_that_waits_for_a_descriptor_is_let_in_when_files_were_closed() -> None:
    descriptors = Descriptors(0)
    async with serving(Echo(), descriptors=descriptors) as server, client_of(server) as client:
        client.send(b"1")
        await until(lambda: descriptors.asked_for)
        descriptors.room = 1  # no connection has ended
        assert await client.receive() == b"1"


async def test_at_max_connections_the_next_client_waits_for_one_to_leave() -> None:
    async with serving(Echo(), max_connections=1) as server, client_of(server) as first:
        assert await first.ask(b"1") == b"1"
        async with client_of(server) as second:
            second.send(b"2")
            await until(lambda: not server.listeners["PLAINTEXT"].is_accepting)
            assert len(server.connections) == 1
            await first.close()
            assert await second.receive() == b"2"


async def test_a_raised_limit_lets_in_who_waits() -> None:
    async with serving(Echo(), max_connections=1) as server, client_of(server) as first, client_of(server) as second:
        second.send(b"2")
        first.send(b"1")
        await until(lambda: not server.listeners["PLAINTEXT"].is_accepting)
        server.reconfigure_quotas(NetworkConfig(max_connections=2))
        assert [await first.receive(), await second.receive()] == [b"1", b"2"]


async def test_a_full_listener_does_not_keep_another_from_accepting() -> None:
    limits = {"CLIENT": ListenerLimits(max_connections=0)}
    async with (
        serving(Echo(), CLIENTS, BROKERS, listener_limits=limits) as server,
        client_of(server, "CLIENT"),
        client_of(server, "BROKER") as broker,
    ):
        assert await broker.ask(b"?") == b"?"
        await until(lambda: not server.listeners["CLIENT"].is_accepting)


async def test_another_broker_takes_the_place_of_the_quietest_client() -> None:
    async with (
        serving(Echo(), CLIENTS, BROKERS, inter_broker_listener="BROKER", max_connections=2) as server,
        client_of(server, "CLIENT") as quiet,
        client_of(server, "CLIENT") as busy,
    ):
        await quiet.ask(b"?")
        await busy.ask(b"?")
        async with client_of(server, "BROKER") as broker:
            assert await broker.ask(b"?") == b"?"
            assert await quiet.is_closed_by_server()
            assert await busy.ask(b"?") == b"?"
            assert server.listeners["CLIENT"].context.metrics.connections_closed_excess == 1


async def test_connections_come_no_faster_than_the_rate() -> None:
    clock = Clock()  # stands still, so that only the delays count
    async with serving(Echo(), max_connection_creation_rate=10, monotonic_ms=clock) as server:
        clients = [Client(*await asyncio.open_connection("127.0.0.1", server.port("PLAINTEXT"))) for _ in range(12)]
        assert [await client.ask(b"?") for client in clients] == [b"?"] * 12
        assert server.listeners["PLAINTEXT"].context.metrics.connections_delayed == 2
        for client in clients:
            await client.close()


class Throttled:
    """Rates of addresses that let `admitted` connections in; the others are closed after a time."""

    is_in_use = True

    def __init__(self, admitted: int, throttle_ms: int) -> None:
        self._left = admitted
        self._throttle_ms = throttle_ms

    def throttle_ms(self, address: str, monotonic_ms: int) -> int:
        self._left -= 1
        return 0 if self._left >= 0 else self._throttle_ms


async def test_a_connection_above_the_rate_of_its_address_is_closed_after_its_time_and_holds_up_nobody() -> None:
    async with serving(Echo(), address_rates=Throttled(1, 50)) as server, client_of(server) as early, client_of(server) as late:
        metrics = server.listeners["PLAINTEXT"].context.metrics
        late.send(b"?")
        assert await early.ask(b"?") == b"?"
        assert await late.is_closed_by_server()
        assert (metrics.connections_throttled, metrics.connections_accepted, server.quotas.total) == (1, 1, 1)


async def test_the_throttled_connections_are_bounded_and_closed_with_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "THROTTLED_MAX", 2)
    async with serving(Echo(), address_rates=Throttled(0, 3_600_000)) as server:
        clients = [Client(*await asyncio.open_connection("127.0.0.1", server.port("PLAINTEXT"))) for _ in range(3)]
        assert await clients[0].is_closed_by_server()
        await server.stop_accepting()
        assert [await client.is_closed_by_server() for client in clients[1:]] == [True, True]
        for client in clients:
            await client.close()


class OutOfDescriptors:
    """A listening socket whose process has no descriptor left for what it would accept."""

    def __init__(self, listening: socket.socket) -> None:
        self.fileno = listening.fileno
        self.close = listening.close

    def accept(self) -> None:
        raise OSError(errno.EMFILE, "Too many open files")


async def test_without_descriptors_the_listener_pauses_and_says_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Echo()) as server, client_of(server) as client:
        assert await client.ask(b"?") == b"?"
        listener = server.listeners["PLAINTEXT"]
        listening = listener._listening
        listener._listening = OutOfDescriptors(listening)  # type: ignore[assignment]
        async with client_of(server) as late:
            await until(lambda: not listener.is_accepting)
            assert "Too many open files; raise the limit of open files" in caplog.text
            assert await client.ask(b"?") == b"?"
            listener._listening = listening
            assert await late.ask(b"now") == b"now"


async def test_while_one_is_delayed_for_the_rate_the_next_stay_in_the_kernel() -> None:
    async with (
        serving(Echo(), max_connection_creation_rate=1, monotonic_ms=Clock()) as server,
        client_of(server),
        client_of(server),
        client_of(server),
    ):
        await until(lambda: server.listeners["PLAINTEXT"].context.metrics.connections_delayed == 1)
        assert not server.listeners["PLAINTEXT"].is_accepting
        assert server.quotas.total == 2


async def test_a_quiet_connection_is_closed_when_its_time_has_come() -> None:
    clock = Clock()
    async with (
        serving(Echo(), connections_max_idle_ms=1000, monotonic_ms=clock) as server,
        client_of(server) as quiet,
        client_of(server) as busy,
    ):
        await quiet.ask(b"?")
        clock.now_ms += 600
        await busy.ask(b"?")
        clock.now_ms += 400
        server.close_idle_connections()
        assert await quiet.is_closed_by_server()
        assert await busy.ask(b"?") == b"?"
        assert server.listeners["PLAINTEXT"].context.metrics.connections_closed_idle == 1


async def test_the_server_looks_for_quiet_connections_by_itself() -> None:
    async with serving(Echo(), connections_max_idle_ms=20) as server:
        for _ in range(2):
            async with client_of(server) as client:
                assert await client.is_closed_by_server()


async def test_a_peer_that_never_sends_a_whole_frame_is_quiet_too() -> None:
    async with serving(Echo(), connections_max_idle_ms=20) as server, client_of(server) as client:
        client.writer.write(framed(b"never whole")[:7])
        assert await client.is_closed_by_server()


async def test_a_client_that_waits_for_its_response_is_not_quiet() -> None:
    clock = Clock()
    keeper = Keeper()
    async with serving(keeper, connections_max_idle_ms=1000, monotonic_ms=clock) as server, client_of(server) as client:
        client.send(b"join group")
        await until(lambda: keeper.kept)
        clock.now_ms += 5000
        server.close_idle_connections()
        keeper.answer(b"join group")
        assert await client.receive() == b"join group"


async def test_a_peer_that_never_reads_is_closed_as_quiet() -> None:
    clock = Clock()

    class Large(Echo):
        def dispatch(self, exchange, frame) -> None:  # type: ignore[no-untyped-def]
            exchange.respond([framed(b"x" * 10_000_000)])

    async with serving(Large(), connections_max_idle_ms=1000, monotonic_ms=clock) as server, client_of(server, limit=1024) as client:
        client.send(b"?")
        connection = await the_connection(server)
        await until(lambda: connection.is_muted)
        clock.now_ms += 1000
        server.close_idle_connections()
        await until(lambda: not server.connections)


async def test_a_thousand_quiet_connections_hold_up_nobody() -> None:
    async with serving(Echo(), socket_listen_backlog_size=1000) as server:
        port = server.port("PLAINTEXT")
        quiet = [socket.create_connection(("127.0.0.1", port)) for _ in range(1000)]
        await until(lambda: len(server.connections) == 1000)
        async with client_of(server) as client:
            assert await client.ask(b"?") == b"?"
        for each in quiet:
            each.close()
        await until(lambda: not server.connections)
        assert (server.quotas.total, len(server.idle)) == (0, 0)


async def test_the_control_plane_is_heard_when_the_data_plane_is_full() -> None:
    keeper = Keeper()
    async with (
        serving(keeper, CLIENTS, BROKERS, control_plane_listener="BROKER", queued_max_requests=1) as server,
        client_of(server, "CLIENT") as one,
        client_of(server, "CLIENT") as two,
        client_of(server, "BROKER") as controller,
    ):
        one.send(b"1")
        two.send(b"2")
        await until(lambda: server.data_plane.waiting == 1)
        controller.send(b"LeaderAndIsr")
        await until(lambda: b"LeaderAndIsr" in keeper.frames)
        assert (server.control_plane.requests, server.control_plane.max_requests) == (1, 20)


async def test_a_clean_shutdown_answers_what_is_in_process() -> None:
    keeper = Keeper()
    async with serving(keeper) as server, client_of(server) as client, client_of(server) as idle:
        client.send(b"in process")
        await until(lambda: keeper.kept and len(server.connections) == 2)
        stopping = asyncio.create_task(server.shutdown(10_000))
        assert await idle.is_closed_by_server()
        assert not stopping.done()
        keeper.answer(b"in process")
        assert await client.receive() == b"in process"
        assert await client.is_closed_by_server()
        assert await stopping is True


async def test_nothing_new_is_taken_in_during_a_shutdown() -> None:
    keeper = Keeper()
    async with serving(keeper) as server, client_of(server) as client:
        client.send(b"P1")
        await until(lambda: keeper.kept)
        stopping = asyncio.create_task(server.shutdown(10_000))
        connection = await the_connection(server)
        await until(lambda: connection.is_muted)
        client.send(b"P2")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port("PLAINTEXT"))
        keeper.answer(b"P1")
        assert await stopping is True
        assert keeper.kept == []


async def test_a_shutdown_waits_no_longer_than_its_time() -> None:
    keeper = Keeper()
    async with serving(keeper) as server, client_of(server) as client:
        client.send(b"never answered")
        await until(lambda: keeper.kept)
        assert await server.shutdown(10) is False
        assert await client.is_closed_by_server()
        assert server.connections == []


async def test_requests_come_through_tls(certificate: Path) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate))
    large = b"x" * 1_000_000
    async with (
        serving(Echo(), EndPoint("SSL", "127.0.0.1", 0, SecurityProtocol.SSL), tls=server_tls(certificate)) as server,
        client_of(server, "SSL", ssl=trusting, limit=1 << 22) as client,
    ):
        assert await client.ask(b"secret") == b"secret"
        assert await client.ask(large) == large
        client.send(*[b"P%d" % number for number in range(200)])
        assert [await client.receive() for _ in range(200)] == [b"P%d" % number for number in range(200)]


async def test_a_peer_that_says_goodbye_in_tls_is_no_error(certificate: Path) -> None:
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with serving(Echo(), EndPoint("SSL", "127.0.0.1", 0, SecurityProtocol.SSL), tls=server_tls(certificate)) as server:
        async with client_of(server, "SSL", ssl=trusting) as client:
            assert await client.ask(b"secret") == b"secret"
        await until(lambda: server.quotas.total == 0)
    assert errors == []


async def test_a_failed_handshake_ends_that_connection_and_is_not_counted_on(certificate: Path) -> None:
    async with serving(Echo(), EndPoint("SSL", "127.0.0.1", 0, SecurityProtocol.SSL), tls=server_tls(certificate)) as server:
        async with client_of(server, "SSL") as plain:
            plain.send(b"this is not TLS")
            await until(lambda: server.listeners["SSL"].context.metrics.handshakes_failed == 1)
        await until(lambda: server.quotas.total == 0)


async def test_a_peer_that_hangs_up_in_the_handshake_is_released(certificate: Path) -> None:
    async with serving(Echo(), EndPoint("SSL", "127.0.0.1", 0, SecurityProtocol.SSL), tls=server_tls(certificate)) as server:
        async with client_of(server, "SSL"):
            await until(lambda: server.quotas.total == 1)
        await until(lambda: server.quotas.total == 0)


async def test_a_shutdown_does_not_wait_for_handshakes(certificate: Path) -> None:
    async with (
        serving(Echo(), EndPoint("SSL", "127.0.0.1", 0, SecurityProtocol.SSL), tls=server_tls(certificate)) as server,
        client_of(server, "SSL"),
    ):
        await until(lambda: server.quotas.total == 1)
        assert await server.shutdown(10_000) is True
        await until(lambda: server.quotas.total == 0)


async def test_tls_without_a_certificate_is_an_error_that_names_the_setting() -> None:
    server = SocketServer(NetworkConfig(), Echo())
    with pytest.raises(ValueError, match=r"ssl\.keystore\.location"):
        await server.start([EndPoint("SSL", "127.0.0.1", 0, SecurityProtocol.SSL)])
