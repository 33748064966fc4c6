"""A client of few words: one connection, one request at a time, on any event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._unread = b""
        self._answer: asyncio.Future[bytes] | None = None
        self._transport: Any = None
        self._correlation_id = 0

    @classmethod
    async def to(cls, host: str, port: int) -> Connection:
        _, connection = await asyncio.get_running_loop().create_connection(cls, host, port)
        return connection

    async def ask(self, request: Message, version: int) -> Any:
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        self._correlation_id += 1
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(b"".join(request_frame(request, api, version, self._correlation_id, "simulation")))
        _, reader = parse_response_header(await self._answer, api.response_header_version(version))
        return api.response.read(reader, version)

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if len(self._unread) >= 4 and len(self._unread) >= 4 + (size := int.from_bytes(self._unread[:4], "big")):
            frame, self._unread = self._unread[4 : 4 + size], self._unread[4 + size :]
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(frame)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionResetError("The broker has closed the connection"))
