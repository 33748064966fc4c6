"""A small HTTP/1.1 server for GET and HEAD, with or without TLS: metrics and health. It cannot harm the broker it runs in.

Everything that a client can do is bounded: connections, the time of a TLS handshake, the size of a request, and the time to send it and to
read the response. A client beyond a bound is answered with an error, if it can be answered, and disconnected. At the bound of connections,
the connection that has waited for longest without a whole request is closed for the new one, so that idle clients do not lock out a scraper
or a probe. Responses are generated piece by piece, as fast as the client reads them, so that a slow reader costs one piece of memory.

The server accepts by itself instead of through `asyncio.start_server`: so connections count from their accept on, not from the end of their
TLS handshake, and a certificate can be replaced while the port stays bound.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

CONNECTIONS_MAX: Final = 32
REQUEST_BYTES_MAX: Final = 16_384
REQUEST_SECONDS: Final = 10.0  # to send a request, and before it for the TLS handshake
IDLE_SECONDS: Final = 120.0  # between two requests of a connection: longer than most intervals of scraping
RESPONSE_SECONDS: Final = 30.0  # to read a whole response
LINGER_SECONDS: Final = 1.0
LINGER_READS: Final = 64
TLS_CLOSE_SECONDS: Final = 1.0  # for the client's part of the end of TLS
BACKLOG: Final = 100
_ACCEPTS_PER_TURN: Final = 20
_RETRY_SECONDS: Final = 0.5  # after the system has refused a descriptor
_NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # such as ::1 of localhost on a machine without IPv6
PLAIN: Final = "text/plain; charset=utf-8"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HttpClient:
    """`certificate` is the DER certificate that the client has shown and the server has verified."""

    address: str
    certificate: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class HttpRequest:
    method: str
    path: str  # without the query
    headers: Mapping[str, str] = field(repr=False)  # by names in lower case
    client: HttpClient = HttpClient("")


@dataclass(frozen=True)
class HttpResponse:
    """`pieces` is the body: a text, or texts that are generated while they are sent."""

    status: HTTPStatus
    pieces: str | AsyncIterator[str]
    content_type: str = PLAIN
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


class BadRequest(Exception):
    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class HttpServer:
    """`handle` returns the response to a request. If it raises, the client gets the status 500, and the error is logged."""

    def __init__(
        self,
        handle: Handler,
        connections_max: int = CONNECTIONS_MAX,
        response_seconds: float = RESPONSE_SECONDS,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._handle = handle
        self._connections_max = connections_max
        self._response_seconds = response_seconds
        self._request_seconds = request_seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: dict[asyncio.Task[None], None] = {}  # without a whole request; the one that has waited longest is first
        self._sockets: list[socket.socket] = []
        self._retries: dict[socket.socket, asyncio.TimerHandle] = {}
        self._tls: ssl.SSLContext | None = None

    @property
    def port(self) -> int:
        port: int = self._sockets[0].getsockname()[1]
        return port

    @property
    def connections(self) -> int:
        return len(self._tasks)

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Binds the port and serves it, with TLS if there is a context. Raises OSError. An empty host means all addresses."""
        self._tls = tls
        self._sockets = await _bound(host, port)
        for listening in self._sockets:
            self._start_accepting(listening)

    def use_tls(self, tls: ssl.SSLContext) -> None:
        """Connections that are accepted from now on use this context; open ones stay as they are."""
        self._tls = tls

    async def stop(self) -> None:
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            loop.remove_reader(listening.fileno())
            listening.close()
        for retry in self._retries.values():
            retry.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start_accepting(self, listening: socket.socket) -> None:
        self._retries.pop(listening, None)
        asyncio.get_running_loop().add_reader(listening.fileno(), self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no descriptor is left: the kernel would report the connection again at once
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening.fileno())
                self._retries[listening] = loop.call_later(_RETRY_SECONDS, self._start_accepting, listening)
                return
            if len(self._tasks) >= self._connections_max and not self._end_idle():
                accepted.close()
                continue
            task = asyncio.get_running_loop().create_task(self._open(accepted, address[0]))
            self._tasks.add(task)
            self._idle[task] = None
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._idle.pop(task, None)

    def _end_idle(self) -> bool:
        """Closes the connection that has waited for longest without a whole request. False if all connections are being answered."""
        task = next(iter(self._idle), None)
        if task is None:
            return False
        del self._idle[task]
        self._tasks.discard(task)  # it ends in the next iteration of the loop
        task.cancel()
        return True

    async def _open(self, accepted: socket.socket, address: str) -> None:
        """Performs the TLS handshake, if there is one, and serves the connection to its end."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=REQUEST_BYTES_MAX)
        protocol = asyncio.StreamReaderProtocol(reader)
        times: dict[str, Any] = {}
        if self._tls is not None:
            times = {"ssl_handshake_timeout": self._request_seconds, "ssl_shutdown_timeout": TLS_CLOSE_SECONDS}
        try:
            accepted.setblocking(False)
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted, ssl=self._tls, **times)
        except (OSError, TimeoutError, asyncio.CancelledError) as error:
            _log.debug("The connection of %s to metrics.listener was not established: %r", address, error)
            accepted.close()
            return
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        await self._serve(reader, writer, HttpClient(address, _certificate(writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: HttpClient) -> None:
        task = asyncio.current_task()
        assert task is not None
        is_cut = True
        try:
            while await self._serve_one(reader, writer, client, task):
                self._idle[task] = None
            is_cut = False
        except (OSError, TimeoutError, EOFError, asyncio.CancelledError):
            pass  # the client has left, or is too slow, or the broker stops
        except Exception:
            _log.exception("Answering an HTTP request failed")
        finally:
            writer.transport.abort() if is_cut or writer.transport.get_write_buffer_size() else writer.close()

    async def _serve_one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: HttpClient, task: asyncio.Task[None]
    ) -> bool:
        """Whether the connection stays open for another request."""
        try:
            first = await asyncio.wait_for(reader.readexactly(1), IDLE_SECONDS)
            async with asyncio.timeout(self._request_seconds):
                request, version = await read_request(reader, first, client)
        except BadRequest as error:
            async with asyncio.timeout(self._response_seconds):
                await _send(writer, HttpResponse(error.status, f"{error.status.phrase}\n"), "HTTP/1.1", is_head=False, keep=False)
            await _linger(reader)
            return False
        self._idle.pop(task, None)
        try:
            response = await self._handle(request)
        except Exception:
            _log.exception("Answering GET %s failed", request.path[:100])
            response = HttpResponse(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error\n")
        async with asyncio.timeout(self._response_seconds):
            keep = _stays_open(request, version)
            return await _send(writer, response, version, is_head=request.method == "HEAD", keep=keep)


async def read_request(reader: asyncio.StreamReader, first: bytes, client: HttpClient) -> tuple[HttpRequest, str]:
    """The next request, whose first byte has been read, and its version of HTTP. Raises BadRequest."""
    line = first + await _line(reader, HTTPStatus.REQUEST_URI_TOO_LONG)
    words = line.decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/"):  # HTTP/0.9 has two words
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    method, target, version = words
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        raise BadRequest(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    headers: dict[str, str] = {}
    size = len(line)
    while header := (await _line(reader, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)).strip():
        size += len(header)
        if size > REQUEST_BYTES_MAX:
            raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        name, colon, value = header.decode("latin-1").partition(":")
        if not colon:
            raise BadRequest(HTTPStatus.BAD_REQUEST)
        headers[name.strip().lower()] = value.strip()
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise BadRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    if method not in ("GET", "HEAD"):
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED)
    return HttpRequest(method, target.partition("?")[0], headers, client), version


async def _bound(host: str, port: int) -> list[socket.socket]:
    """Listening sockets on all addresses of a host, with the same port. Raises OSError."""
    addresses = await asyncio.get_running_loop().getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    for family, _, _, _, address in dict.fromkeys(addresses):
        bound_port = opened[0].getsockname()[1] if opened else port
        try:
            opened.append(_listening(family, (address[0], bound_port, *address[2:])))
        except OSError as error:
            is_luck = bool(opened) and not port and error.errno == errno.EADDRINUSE  # port 0: another program has it on this address
            if is_luck or (error.errno in _NOT_HERE and len(addresses) > 1):
                continue
            for listening in opened:
                listening.close()
            raise
    if not opened:
        raise OSError(errno.EADDRNOTAVAIL, f"{host} is not an address of this machine")
    return opened


def _listening(family: int, address: tuple[Any, ...]) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def _certificate(writer: asyncio.StreamWriter) -> bytes | None:
    tls = writer.get_extra_info("ssl_object")
    certificate = None if tls is None else tls.getpeercert(True)
    return certificate if isinstance(certificate, bytes) else None


async def _linger(reader: asyncio.StreamReader) -> None:
    """Reads for a moment what the client still sends: closing with unread bytes would take back the response."""
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(LINGER_SECONDS):
            for _ in range(LINGER_READS):
                if not await reader.read(REQUEST_BYTES_MAX):
                    return


async def _line(reader: asyncio.StreamReader, too_long: HTTPStatus) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        raise BadRequest(too_long) from None


def _stays_open(request: HttpRequest, version: str) -> bool:
    connection = request.headers.get("connection", "").lower()
    return connection != "close" if version == "HTTP/1.1" else connection == "keep-alive"


async def _send(writer: asyncio.StreamWriter, response: HttpResponse, version: str, *, is_head: bool, keep: bool) -> bool:
    """Whether the connection is kept: it cannot be if its end is the end of the response."""
    body = response.pieces
    is_chunked = not isinstance(body, str) and version == "HTTP/1.1"
    is_kept = keep and (is_chunked or isinstance(body, str))
    head = [f"HTTP/1.1 {response.status.value} {response.status.phrase}", f"Content-Type: {response.content_type}"]
    head += [f"{name}: {value}" for name, value in response.headers.items()]
    if isinstance(body, str):
        head.append(f"Content-Length: {len(body.encode())}")
    elif is_chunked:
        head.append("Transfer-Encoding: chunked")
    head.append("Connection: keep-alive" if is_kept else "Connection: close")
    writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
    if is_head:
        pass
    elif isinstance(body, str):
        writer.write(body.encode())
    else:
        async for piece in body:
            if piece:
                data = piece.encode()
                writer.write(b"%x\r\n%b\r\n" % (len(data), data) if is_chunked else data)
                await writer.drain()
        if is_chunked:
            writer.write(b"0\r\n\r\n")
    await writer.drain()
    if not is_kept:
        writer.write_eof() if writer.can_write_eof() else writer.close()
    return is_kept
