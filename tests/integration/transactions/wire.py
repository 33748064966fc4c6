"""Requests by hand: one connection to a broker, and answers as text in which nothing is left that may differ between two brokers.

Producer ids are named in the order in which a conversation meets them, times are a word, topic ids and addresses are left out.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any

from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME
from barnabas.records.batch import read_batches
from barnabas.records.control import CONTROL_TYPE_NAMES, parse_control_type
from barnabas.records.reader import read_records

TIMEOUT_S = 30
CLIENT_ID = "wire"
LEFT_OUT = frozenset({"throttle_time_ms", "topic_id", "host", "port", "current_leader", "node_endpoints", "session_id"})
KEYS = ("transactional_id", "name", "topic", "partition_index", "producer_id", "first_offset", "key")
TIMES = frozenset({"transaction_start_time_ms", "last_timestamp", "log_append_time_ms", "timestamp"})


class Connection:
    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def ask(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return self.receive(request, version)

    def send(self, request: Message, version: int) -> None:
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        client_id = CLIENT_ID if api.request_header_version(version) else ""  # ControlledShutdown version 0 has none
        self._socket.sendall(b"".join(request_frame(request, api, version, 1, client_id)))

    def receive(self, request: Message, version: int) -> Any:
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        size = self._file.read(4)
        if len(size) < 4:
            raise ConnectionError(f"{api.name} v{version}: the broker has closed the connection")
        _, reader = parse_response_header(self._file.read(int.from_bytes(size, "big")), api.response_header_version(version))
        return api.response.read(reader, version)


class Names:
    """What producer ids are called in a conversation."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def of(self, producer_id: int) -> str:
        if producer_id < 0:
            return str(producer_id)
        return self._names.setdefault(producer_id, f"P{len(self._names)}")


def error_codes(answer: Any) -> Iterable[int]:
    """All codes in an answer, however deep."""
    if isinstance(answer, list):
        for element in answer:
            yield from error_codes(element)
    elif isinstance(answer, Message):
        for name in answer.field_names():
            value = getattr(answer, name)
            if name == "error_code":
                yield value
            else:
                yield from error_codes(value)


def text_of(answer: Any, names: Names) -> str:
    """An answer as comparable text: `name=value` of each field that is not at its default."""
    if isinstance(answer, list):
        return "[" + ", ".join(text_of(element, names) for element in answer) + "]"
    if not isinstance(answer, Message):
        return repr(answer)
    default = type(answer)()
    shown = []
    for name in answer.field_names():
        value = getattr(answer, name)
        if name not in LEFT_OUT and value != getattr(default, name):
            shown.append(f"{name}={_field(name, value, names)}")
    return "(" + " ".join(shown) + ")"


def _field(name: str, value: Any, names: Names) -> str:
    if name == "producer_id":
        return names.of(value)
    if name in TIMES:
        return "TIME" if value > 0 else str(value)
    if name == "records":
        return _batches(value.to_bytes(), names)
    if isinstance(value, list):
        value = sorted(value, key=_place)  # it comes in the order of a hash map
    return text_of(value, names)


def _place(element: Any) -> tuple[Any, ...]:
    """Where an element belongs among others of its kind."""
    if not isinstance(element, Message):
        return (element,)
    return tuple(getattr(element, name) for name in KEYS if name in element.field_names())


def _batches(data: bytes, names: Names) -> str:
    """What is in the log: who wrote it, its offsets and sequence, and which markers."""
    shown = []
    for batch in read_batches(data):
        records = read_records(data, batch)
        kind = [CONTROL_TYPE_NAMES[parse_control_type(record)] for record in records] if batch.is_control else len(records)
        shown.append(
            f"{batch.base_offset}-{batch.last_offset} {names.of(batch.producer_id)} epoch {batch.producer_epoch} "
            f"sequence {batch.base_sequence}{' transactional' if batch.is_transactional else ''} {kind}"
        )
    return "{" + "; ".join(shown) + "}"
