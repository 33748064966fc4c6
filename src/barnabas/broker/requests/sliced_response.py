"""A response with a long list, written in slices: the configs of a thousand topics are 100,000 strings.

Writing a message is one call. Here the elements of its longest list are written in slices, and inserted at the position of the list in the
rest of the response.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from barnabas.protocol import api_keys
from barnabas.protocol.framing import SIZE_PREFIX, response_frame
from barnabas.protocol.message import Message
from barnabas.protocol.writer import Writer, write_size

ELEMENTS_PER_SLICE: Final = 50  # each may have some hundred fields

# Compiled messages are written ten times as fast, and their lists cannot hold a `_Placeholder`.
WRITTEN_AT_ONCE: Final = frozenset(
    {
        api_keys.PRODUCE,
        api_keys.FETCH,
        api_keys.LIST_OFFSETS,
        api_keys.METADATA,
        api_keys.OFFSET_COMMIT,
        api_keys.OFFSET_FETCH,
        api_keys.FIND_COORDINATOR,
        api_keys.JOIN_GROUP,
        api_keys.HEARTBEAT,
        api_keys.SYNC_GROUP,
        api_keys.API_VERSIONS,
        api_keys.INIT_PRODUCER_ID,
        api_keys.ADD_PARTITIONS_TO_TXN,
        api_keys.ADD_OFFSETS_TO_TXN,
        api_keys.END_TXN,
        api_keys.TXN_OFFSET_COMMIT,
        api_keys.CONSUMER_GROUP_HEARTBEAT,
    }
)


def longest_list(response: Message) -> str | None:
    """The field whose elements are written in slices; None if all lists are short or have plain values."""
    longest: list[Any] = []
    name = None
    for field in response.field_names():
        value = getattr(response, field)
        if isinstance(value, list) and len(value) > max(ELEMENTS_PER_SLICE, len(longest)) and isinstance(value[0], Message):
            longest, name = value, field
    return name


def frame_in_slices(response: Any, name: str, correlation_id: int, version: int, header_version: int) -> Generator[None, None, list[bytes]]:
    """Writes the same frame as `response_frame`. Yields after each slice; returns the buffers."""
    elements: list[Message] = getattr(response, name)
    before, after = _around(response, name, correlation_id, version, header_version)
    buffers = [before]
    writer = Writer()
    write_size(writer.out, len(elements), header_version > 0)
    for index, element in enumerate(elements, 1):
        element.write(writer, version)
        if index % ELEMENTS_PER_SLICE == 0:
            buffers.append(writer.out.getvalue())
            writer = Writer()
            yield
    buffers.append(writer.out.getvalue())
    buffers.append(after)
    size = sum(map(len, buffers)) - SIZE_PREFIX
    buffers[0] = size.to_bytes(SIZE_PREFIX, "big") + before[SIZE_PREFIX:]
    return buffers


def _around(response: Any, name: str, correlation_id: int, version: int, header_version: int) -> tuple[bytes, bytes]:
    """The bytes of the frame before the list, without its count, and after it."""
    place = _Placeholder()
    elements = getattr(response, name)
    setattr(response, name, [place])
    try:
        whole = b"".join(response_frame(response, correlation_id, version, header_version))  # type: ignore[arg-type]
    finally:
        setattr(response, name, elements)
    count_size = 1 if header_version > 0 else 4
    return whole[: place.at - count_size], whole[place.at :]


class _Placeholder(Message):
    """Takes the place of the elements of a list, and records the position where they have to be written."""

    def __init__(self) -> None:
        self.at = 0

    def write(self, writer: Writer, version: int) -> None:
        self.at = len(writer.out)
