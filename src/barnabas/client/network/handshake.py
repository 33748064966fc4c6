"""Opens a connection: resolves the address, connects, does the TLS handshake, and fetches the API versions.

`Connections` runs it once for each attempt. Every step has a timeout, and every failure is Disconnected, Timeout or AuthenticationError,
with a text that says what to change.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.client.cluster import Node
from barnabas.client.errors import Disconnected, KafkaError, SslAuthentication, Timeout, error_for
from barnabas.client.network.broker_versions import BrokerVersions
from barnabas.client.network.connection import Connection
from barnabas.client.software import SOFTWARE_NAME, SOFTWARE_VERSION
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse
from barnabas.protocol.registry import APIS


class ConnectionHandshake:
    """`make` creates the protocol object of a new connection; `sockets` are send.buffer.bytes and receive.buffer.bytes."""

    def __init__(
        self,
        make: Callable[[Node], Connection],
        *,
        sockets: tuple[int, int],
        request_timeout_ms: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._make = make
        self._send_buffer_bytes, self._receive_buffer_bytes = sockets
        self._request_timeout_ms = request_timeout_ms
        self.tls = tls

    async def connect(self, node: Node, setup_timeout_ms: int) -> Connection:
        """An open connection, with TLS if configured. Tries all addresses of the host name in turn."""
        failure: KafkaError | None = None
        for family, address in await self._resolve(node, setup_timeout_ms):
            try:
                return await self._open(node, family, address, setup_timeout_ms)
            except (Disconnected, Timeout) as error:
                failure = error
        assert failure is not None
        raise failure

    async def versions(self, connection: Connection) -> BrokerVersions:
        """Fetches the broker's API versions, with the newest version of the request first."""
        api = APIS[api_keys.API_VERSIONS]
        request = ApiVersionsRequest(SOFTWARE_NAME, SOFTWARE_VERSION)
        version = api.stable_version
        response = await connection.request(api, version, request, self._request_timeout_ms)
        assert isinstance(response, ApiVersionsResponse)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and version > 0:
            # The error response contains the supported versions, except from very old brokers.
            offered = next((row.max_version for row in response.api_keys if row.api_key == api.key), 0)
            response = await connection.request(api, min(offered, version - 1), request, self._request_timeout_ms)
            assert isinstance(response, ApiVersionsResponse)
        if response.error_code != 0:
            raise error_for(response.error_code)
        return BrokerVersions(response)

    async def _resolve(self, node: Node, timeout_ms: int) -> Sequence[tuple[int, Any]]:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                rows = await asyncio.get_running_loop().getaddrinfo(node.host, node.port, type=socket.SOCK_STREAM)
        except TimeoutError as error:
            raise Timeout(
                f"{node.place}: the host name was not resolved within {timeout_ms} ms (socket.connection.setup.timeout.ms); is DNS up?"
            ) from error
        except (OSError, UnicodeError) as error:
            raise Disconnected(f"{node.place}: {unresolved(node.host, error)}") from error
        return [(int(family), address) for family, _, _, _, address in rows]

    async def _open(self, node: Node, family: int, address: Any, timeout_ms: int) -> Connection:
        # A socket of the system, or of the simulated world of a simulation's event loop.
        raw: socket.socket = getattr(asyncio.get_running_loop(), "new_socket", socket.socket)(family, socket.SOCK_STREAM)
        try:
            self._set_options(raw)
            await self._connect_socket(raw, address, node.place, timeout_ms)
            return await self._wrap(raw, node)
        except BaseException:
            raw.close()
            raise

    def _set_options(self, raw: socket.socket) -> None:
        raw.setblocking(False)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._send_buffer_bytes >= 0:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        if self._receive_buffer_bytes >= 0:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)

    async def _connect_socket(self, raw: socket.socket, address: Any, place: str, timeout_ms: int) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await asyncio.get_running_loop().sock_connect(raw, address)
        except TimeoutError as error:
            raise Timeout(
                f"{place} did not answer within {timeout_ms} ms (socket.connection.setup.timeout.ms): "
                "is a firewall in the way, or the host down?"
            ) from error
        except ConnectionRefusedError as error:
            raise Disconnected(f"{place} refused the connection: no broker listens on this port") from error
        except OSError as error:
            raise Disconnected(f"{place} could not be connected to: {error.strerror or error}") from error

    async def _wrap(self, raw: socket.socket, node: Node) -> Connection:
        loop = asyncio.get_running_loop()
        connection = self._make(node)
        options: dict[str, Any] = {}
        if self.tls is not None:
            options = {"ssl": self.tls, "server_hostname": node.host, "ssl_handshake_timeout": self._request_timeout_ms / 1000}
        try:
            await loop.create_connection(lambda: connection, sock=raw, **options)
        except (ConnectionError, ssl.SSLEOFError) as error:
            if self.tls is None:
                raise Disconnected(f"{node.place} closed the connection: {error}") from error
            raise Disconnected(
                f"{node.place} closed the connection during the TLS handshake: "
                "if the port does not speak TLS set security.protocol=PLAINTEXT, or SASL_PLAINTEXT if it asks for a password"
            ) from error
        except ssl.SSLError as error:
            raise _tls_error(node.place, error) from error
        except TimeoutError as error:
            raise Timeout(
                f"{node.place} did not answer the TLS handshake within {self._request_timeout_ms} ms (request.timeout.ms): "
                "if the port does not speak TLS set security.protocol=PLAINTEXT"
            ) from error
        return connection


def unresolved(host: str, error: Exception) -> str:
    """Why a host name has no address, for an error message."""
    return f"the host name {host} is not known ({getattr(error, 'strerror', None) or error})"


def _tls_error(place: str, error: ssl.SSLError) -> KafkaError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return SslAuthentication(
            f"The TLS handshake with {place} failed: {error.verify_message}; "
            "check ssl.truststore.*, and that the certificate names the host (ssl.endpoint.identification.algorithm)"
        )
    reason = getattr(error, "reason", None) or str(error)
    if "WRONG_VERSION_NUMBER" in reason or "HTTP_REQUEST" in reason or "RECORD_LAYER_FAILURE" in reason:
        return SslAuthentication(f"{place} does not speak TLS on this port ({reason}); is security.protocol=PLAINTEXT meant?")
    return SslAuthentication(f"The TLS handshake with {place} failed: {reason}")
