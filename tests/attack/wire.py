"""What attacks send with: raw frames over asyncio's streams, since a client with manners would refuse to build most of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.protocol.framing import request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME
from benchmarks.wire import Client

CLIENT_ID = "attacker"
ANSWER_TIMEOUT_S = 120


def frame(request: Message, version: int, client_id: str = CLIENT_ID) -> bytes:
    """A request as it goes over the wire, its size included."""
    api = BY_NAME[type(request).__name__.removesuffix("Request")]
    return b"".join(request_frame(request, api, version, 1, client_id))


def address(bootstrap: str) -> tuple[str, int]:
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)


def create_topic(bootstrap: str, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    with Client(*address(bootstrap)) as client:
        client.create_topics([name], partitions, configs)


async def send(bootstrap: str, frames: Sequence[bytes], *, connections: int = 1) -> None:
    """Sends the frames, dealt out over some connections, each connection at its own pace, and waits for the answers.

    A broker may close the connection instead of answering: that too is an end of the attack.
    """
    hands = [frames[index::connections] for index in range(connections)]
    await asyncio.gather(*(_send_by_one(bootstrap, hand) for hand in hands if hand))


async def _send_by_one(bootstrap: str, frames: Sequence[bytes]) -> None:
    reader, writer = await asyncio.open_connection(*address(bootstrap))
    writing = asyncio.create_task(_write(writer, frames))
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            for _ in frames:
                await _read_answer(reader)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writing.cancel()
        writer.close()


async def _write(writer: asyncio.StreamWriter, frames: Sequence[bytes]) -> None:
    try:
        for request in frames:
            writer.write(request)
            await writer.drain()
    except ConnectionError:
        pass


async def _read_answer(reader: asyncio.StreamReader) -> None:
    left = int.from_bytes(await reader.readexactly(4), "big")
    while left:
        data = await reader.read(min(left, 1 << 20))
        if not data:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(data)
