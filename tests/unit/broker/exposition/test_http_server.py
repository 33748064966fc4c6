"""The HTTP server of metrics and health: what it answers, and that nothing a client does harms it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path

import pytest

from barnabas.broker.exposition.http_server import REQUEST_BYTES_MAX, HttpRequest, HttpResponse, HttpServer
from tests.unit.security.certificates import authority, key_store

TIMEOUT_S = 60


async def answer(request: HttpRequest) -> HttpResponse:
    match request.path:
        case "/hello":
            return HttpResponse(HTTPStatus.OK, "hello\n")
        case "/pieces":
            return HttpResponse(HTTPStatus.OK, pieces(3, "piece\n"))
        case "/endless":
            return HttpResponse(HTTPStatus.OK, pieces(1_000_000, "x" * 65_536))
        case "/error":
            raise RuntimeError("a mistake in the handler")
    return HttpResponse(HTTPStatus.NOT_FOUND, "Not Found\n")


async def pieces(count: int, text: str) -> AsyncIterator[str]:
    for _ in range(count):
        yield text


@asynccontextmanager
async def serving(**options: float) -> AsyncIterator[HttpServer]:
    server = HttpServer(answer, **options)  # type: ignore[arg-type]
    await server.start("127.0.0.1", 0)
    try:
        yield server
    finally:
        await server.stop()


async def ask(server: HttpServer, data: bytes) -> bytes:
    """Everything that the server sends until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(data)
        return await asyncio.wait_for(reader.read(), TIMEOUT_S)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def status(server: HttpServer, data: bytes) -> int:
    return int((await ask(server, data)).split()[1])


def get(path: str, *headers: str, version: str = "1.1") -> bytes:
    return "\r\n".join([f"GET {path} HTTP/{version}", "Host: localhost", *headers, "", ""]).encode()


async def test_a_text_has_a_length() -> None:
    async with serving() as server:
        response = await ask(server, get("/hello?x=1", "Connection: close"))
        assert response.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Content-Length: 6\r\n" in response
        assert response.endswith(b"\r\n\r\nhello\n")


async def test_pieces_are_chunks_or_end_with_the_connection() -> None:
    async with serving() as server:
        chunked = await ask(server, get("/pieces", "Connection: close"))
        assert chunked.endswith(b"\r\n\r\n" + b"6\r\npiece\n\r\n" * 3 + b"0\r\n\r\n")
        plain = await ask(server, get("/pieces", version="1.0"))
        assert plain.endswith(b"Connection: close\r\n\r\n" + b"piece\n" * 3)


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with serving() as server:
        response = await ask(server, get("/hello") + get("/pieces") + get("/hello", "Connection: close"))
        assert (response.count(b"hello\n"), response.count(b"piece\n"), response.count(b"HTTP/1.1 200")) == (2, 3, 3)


async def test_head_has_no_body() -> None:
    async with serving() as server:
        response = await ask(server, b"HEAD /hello HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert response.endswith(b"\r\n\r\n")
        assert b"hello" not in response


async def test_requests_that_are_none_are_refused_and_the_next_is_served() -> None:
    async with serving() as server:
        assert await status(server, b"GET /hello\r\n") == 400  # HTTP/0.9
        assert await status(server, b"GET /hello HTTP/3.0\r\n\r\n") == 505
        assert await status(server, b"\x16\x03\x01\x02\x00\n") == 400  # TLS
        assert await status(server, b"POST /hello HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello") == 413
        assert await status(server, b"DELETE /hello HTTP/1.1\r\n\r\n") == 405
        assert await status(server, b"GET /hello HTTP/1.1\r\nno colon\r\n\r\n") == 400
        assert await status(server, get("/../../etc/passwd", "Connection: close")) == 404
        assert await status(server, get("/metrics/../hello", "Connection: close")) == 404
        assert await status(server, get("/hello", "Connection: close")) == 200


async def test_a_request_has_a_bounded_size() -> None:
    async with serving() as server:
        assert await status(server, b"GET /" + b"x" * (2 * REQUEST_BYTES_MAX) + b" HTTP/1.1\r\n\r\n") == 414
        assert await status(server, b"GET /hello HTTP/1.1\r\nX: " + b"x" * (2 * REQUEST_BYTES_MAX) + b"\r\n\r\n") == 431
        assert await status(server, get("/hello", *("Name: value",) * 5000)) == 431


async def test_a_mistake_of_the_handler_is_the_status_500() -> None:
    async with serving() as server:
        assert await status(server, get("/error", "Connection: close")) == 500


async def test_a_client_that_does_not_read_is_disconnected() -> None:
    async with serving(response_seconds=0.05) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
        writer.write(get("/endless"))
        async with asyncio.timeout(TIMEOUT_S):
            await reader.readline()
            while server.connections:
                await asyncio.sleep(0.01)
        writer.close()
        assert await status(server, get("/hello", "Connection: close")) == 200


async def test_ten_clients_at_once_are_served() -> None:
    async with serving() as server:
        responses = await asyncio.gather(*(ask(server, get("/pieces", "Connection: close")) for _ in range(10)))
        assert all(response.count(b"piece\n") == 3 for response in responses)


async def open_connections(server: HttpServer, count: int, first: bytes = b"") -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connections in the order in which the server has accepted them, each with these first bytes sent."""
    held = []
    for number in range(count):
        held.append(await asyncio.open_connection("127.0.0.1", server.port))
        held[-1][1].write(first)
        await until(lambda number=number: server.connections == number + 1)  # type: ignore[misc]
    return held


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.01)


async def test_connections_are_bounded() -> None:
    async with serving(connections_max=2) as server:
        held = await open_connections(server, 2, get("/endless"))
        for reader, _ in held:
            await asyncio.wait_for(reader.readline(), TIMEOUT_S)  # the response has begun
        assert await ask(server, get("/hello", "Connection: close")) == b""
        for _, writer in held:
            writer.transport.abort()
        await until(lambda: server.connections == 0)
        assert await status(server, get("/hello", "Connection: close")) == 200


@pytest.mark.parametrize("first", [b"", b"GET /hel"])
async def test_at_the_bound_the_connection_idle_for_longest_is_closed(first: bytes) -> None:
    async with serving(connections_max=2) as server:
        held = await open_connections(server, 2, first)
        (oldest, _), (other, writer) = held
        assert await status(server, get("/hello", "Connection: close")) == 200
        with suppress(ConnectionError):
            assert await asyncio.wait_for(oldest.read(), TIMEOUT_S) == b""
        writer.write(get("/hello", "Connection: close").removeprefix(first))
        assert (await asyncio.wait_for(other.read(), TIMEOUT_S)).endswith(b"hello\n")
        for _, writer in held:
            writer.close()


async def test_a_response_that_ends_with_the_connection_is_the_last(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as server:
        response = await ask(server, get("/pieces", "Connection: keep-alive", version="1.0") * 2)
        await until(lambda: server.connections == 0)
    assert response.count(b"HTTP/1.1 200") == 1
    assert response.endswith(b"Connection: close\r\n\r\n" + b"piece\n" * 3)
    assert not caplog.records


@asynccontextmanager
async def serving_tls(tmp_path: Path, **options: float) -> AsyncIterator[HttpServer]:
    store = tmp_path / "broker.pem"
    store.write_text(key_store("broker", "localhost"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(store)
    server = HttpServer(answer, **options)  # type: ignore[arg-type]
    await server.start("127.0.0.1", 0, context)
    try:
        yield server
    finally:
        await server.stop()


async def status_by_tls(server: HttpServer) -> int:
    client = ssl.create_default_context(cadata=authority().own.pem)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client, server_hostname="localhost")
    writer.write(get("/hello", "Connection: close"))
    line = await asyncio.wait_for(reader.readline(), TIMEOUT_S)
    writer.close()
    return int(line.split()[1])


async def test_clients_that_do_not_shake_hands_do_not_lock_out_others(tmp_path: Path) -> None:
    async with serving_tls(tmp_path, connections_max=2) as server:
        held = await open_connections(server, 2)
        assert await status_by_tls(server) == 200
        for _, writer in held:
            writer.close()


async def test_a_handshake_has_a_bounded_time(tmp_path: Path) -> None:
    async with serving_tls(tmp_path, request_seconds=0.05) as server:
        ((reader, writer),) = await open_connections(server, 1)
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), TIMEOUT_S) == b""
        await until(lambda: server.connections == 0)
        writer.close()


async def test_http_on_a_port_of_tls_is_closed(tmp_path: Path) -> None:
    async with serving_tls(tmp_path) as server:
        assert b"HTTP/1.1 200" not in await ask(server, get("/hello"))
        assert await status_by_tls(server) == 200


async def test_a_client_of_tls_on_a_plain_port_is_refused() -> None:
    async with serving() as server:
        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection("127.0.0.1", server.port, ssl=ssl.create_default_context(), server_hostname="localhost")
        assert await status(server, get("/hello", "Connection: close")) == 200


async def test_a_request_that_arrives_byte_by_byte_has_a_bounded_time() -> None:
    async with serving(request_seconds=0.05) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /hel")
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), TIMEOUT_S) == b""
        writer.close()
