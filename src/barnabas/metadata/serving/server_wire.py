"""ZooKeeper's protocol in bytes, on the side of the server: frames of a client become requests of the tree, results become frames.

`metadata.zookeeper.wire` is the side of the client and has the encoding. Nothing here waits or keeps state.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from barnabas.metadata.errors import BadArguments, NoNode, TreeError
from barnabas.metadata.tree import (
    Check,
    Children,
    Create,
    Created,
    CreateMode,
    Delete,
    EventType,
    Exists,
    GetChildren,
    GetData,
    Multi,
    NodeData,
    Operation,
    SetData,
    Stat,
    TreeRequest,
    TreeResponse,
    WatchedEvent,
)
from barnabas.metadata.zookeeper import wire
from barnabas.metadata.zookeeper.wire import JuteReader, Malformed

GET_CHILDREN: Final = 8  # the names alone; GET_CHILDREN2 has the stat too
SYNC: Final = 9
FRAME_BYTES_MAX: Final = 16 * 1024 * 1024  # of a request; a multi of a client of ZooKeeper has at most 1 MB
PASSWORD_BYTES: Final = 16
UNIMPLEMENTED: Final = -6
RUNTIME_INCONSISTENCY: Final = -2

_LAST_FLAGS: Final = 3  # ephemeral and sequential; containers and nodes with a time to live have higher flags
_SYNC_CONNECTED: Final = 3  # the state of the session in each notification
_NO_ZXID: Final = -1
_REPLY: Final = struct.Struct(">iiqi")  # with the size of the frame
_CONNECTED: Final = struct.Struct(">iiq")
_STAT: Final = struct.Struct(">qqqqiiiqiiq")
_INT: Final = struct.Struct(">i")
_MULTI_HEADER: Final = struct.Struct(">i?i")
_END_OF_MULTI: Final = _MULTI_HEADER.pack(-1, True, -1)
_EVENTS: Final = {
    EventType.NODE_CREATED: 1,
    EventType.NODE_DELETED: 2,
    EventType.NODE_DATA_CHANGED: 3,
    EventType.NODE_CHILDREN_CHANGED: 4,
}
_TREE_OPERATIONS: Final = frozenset(
    {
        wire.CREATE,
        wire.CREATE2,
        wire.DELETE,
        wire.EXISTS,
        wire.GET_DATA,
        wire.SET_DATA,
        GET_CHILDREN,
        wire.GET_CHILDREN2,
        wire.CHECK,
        wire.MULTI,
    }
)
_MULTI_KINDS: Final = {Create: wire.CREATE, Delete: wire.DELETE, SetData: wire.SET_DATA, Check: wire.CHECK}


class ConnectRequest(NamedTuple):
    """The first frame of a client. `session_id` is 0 for a new session."""

    last_zxid: int
    timeout_ms: int
    session_id: int
    password: bytes
    has_read_only: bool  # clients before ZooKeeper 3.4 do not send the flag, and do not read it in the response


class ClientFrame(NamedTuple):
    xid: int
    operation: int
    body: JuteReader


class SetWatches(NamedTuple):
    """The watches that a client had on its earlier connection, and the last change that it knows."""

    last_zxid: int
    data: list[str]
    exist: list[str]
    child: list[str]


# Frames of a client


def connect_request(frame: bytes) -> ConnectRequest:
    reader = JuteReader(frame)
    reader.int32()  # the protocol version, which has never changed
    last_zxid, timeout_ms, session_id = reader.int64(), reader.int32(), reader.int64()
    password = reader.buffer() or b""
    return ConnectRequest(last_zxid, timeout_ms, session_id, password, not reader.is_at_end)


def client_frame(frame: bytes) -> ClientFrame:
    reader = JuteReader(frame)
    return ClientFrame(reader.int32(), reader.int32(), reader)


def is_tree_operation(operation: int) -> bool:
    return operation in _TREE_OPERATIONS


def tree_request(frame: ClientFrame) -> TreeRequest[Any]:
    """The request in a frame of a tree operation. Raises Malformed, or BadArguments for what the tree does not have."""
    if frame.operation == wire.MULTI:
        return Multi(_operations(frame.body))
    return _request(frame.operation, frame.body)


def set_watches(body: JuteReader) -> SetWatches:
    return SetWatches(body.int64(), body.texts(), body.texts(), body.texts())


def sync_path(body: JuteReader) -> str:
    return body.text() or ""


def _operations(body: JuteReader) -> list[Operation]:
    operations: list[Operation] = []
    while True:
        kind, is_done, _ = body.unpack(_MULTI_HEADER)
        if is_done:
            return operations
        operation = _request(kind, body) if is_tree_operation(kind) else None
        if not isinstance(operation, (Create, SetData, Delete, Check)):
            raise Malformed(f"A multi cannot have operation {kind}")
        operations.append(operation)


def _request(operation: int, body: JuteReader) -> TreeRequest[Any]:
    path = body.text() or ""
    if operation in (wire.CREATE, wire.CREATE2):
        data = body.buffer()
        _skip_acls(body)
        flags = body.int32()
        if not 0 <= flags <= _LAST_FLAGS:
            raise BadArguments(path, f"There are no nodes of the kind {flags} in this tree")
        return Create(path, data, CreateMode(flags))
    if operation == wire.SET_DATA:
        return SetData(path, body.buffer(), body.int32())
    if operation == wire.DELETE:
        return Delete(path, body.int32())
    if operation == wire.CHECK:
        return Check(path, body.int32())
    watch = body.flag()
    if operation == wire.EXISTS:
        return Exists(path, watch)
    if operation == wire.GET_DATA:
        return GetData(path, watch)
    return GetChildren(path, watch)


def _skip_acls(body: JuteReader) -> None:
    """The socket belongs to one user, who may do everything: a node has no ACL."""
    for _ in range(max(0, body.int32())):
        body.int32()
        body.buffer()
        body.buffer()


# Frames of the server


def connected(timeout_ms: int, session_id: int, password: bytes, has_read_only: bool) -> bytes:
    """A timeout of 0 says that the session has expired."""
    body = _CONNECTED.pack(0, timeout_ms, session_id) + _buffer(password)
    return _framed(body + b"\0" if has_read_only else body)


def expired(has_read_only: bool) -> bytes:
    return connected(0, 0, bytes(PASSWORD_BYTES), has_read_only)


def reply(xid: int, zxid: int, error: int = 0, body: bytes = b"") -> bytes:
    return _REPLY.pack(_REPLY.size - _INT.size + len(body), xid, zxid, error) + body


def sync_reply(xid: int, zxid: int, path: str) -> bytes:
    return reply(xid, zxid, 0, _text(path))


def notification(event: WatchedEvent) -> bytes:
    body = _INT.pack(_EVENTS[event.type]) + _INT.pack(_SYNC_CONNECTED) + _text(event.path)
    return reply(wire.NOTIFICATION_XID, _NO_ZXID, 0, body)


def tree_reply(frame: ClientFrame, zxid: int, response: TreeResponse[Any]) -> bytes:
    if isinstance(response.request, Multi):
        return _multi_reply(frame.xid, zxid, response.request, response)
    if response.error is not None:
        return reply(frame.xid, zxid, response.error.code)
    if isinstance(response.request, Exists) and response.result is None:
        return reply(frame.xid, zxid, NoNode.code)
    return reply(frame.xid, zxid, 0, _body(frame.operation, response.result))


def error_reply(frame: ClientFrame, zxid: int, error: TreeError) -> bytes:
    return reply(frame.xid, zxid, error.code)


def _body(operation: int, result: Any) -> bytes:
    if isinstance(result, Created):
        return _text(result.path) + (_stat(result.stat) if operation == wire.CREATE2 else b"")
    if isinstance(result, NodeData):
        return _buffer(result.data) + _stat(result.stat)
    if isinstance(result, Children):
        return _texts(result.names) + (_stat(result.stat) if operation == wire.GET_CHILDREN2 else b"")
    return _stat(result) if isinstance(result, Stat) else b""


def _multi_reply(xid: int, zxid: int, request: Multi, response: TreeResponse[Any]) -> bytes:
    """As ZooKeeper: without an error, the result of each operation; with one, the error of each: none before the one that failed."""
    error = response.error
    if error is not None and error.operation is None:
        return reply(xid, zxid, error.code)
    parts: list[bytes] = []
    results = response.result or ()
    for number, operation in enumerate(request.operations):
        if error is None or error.operation is None:
            kind = _MULTI_KINDS[type(operation)]
            parts.append(_MULTI_HEADER.pack(kind, False, 0) + _body(kind, results[number]))
        else:
            code = 0 if number < error.operation else error.code if number == error.operation else RUNTIME_INCONSISTENCY
            parts.append(_MULTI_HEADER.pack(wire.ERROR, False, code) + _INT.pack(code))
    return reply(xid, zxid, 0 if error is None else error.code, b"".join(parts) + _END_OF_MULTI)


def _stat(stat: Stat) -> bytes:
    return _STAT.pack(
        stat.czxid,
        stat.mzxid,
        stat.ctime,
        stat.mtime,
        stat.version,
        stat.cversion,
        0,  # of ACLs, which this tree does not have
        stat.ephemeral_owner,
        0,  # the size of the data, which only people read
        stat.num_children,
        stat.pzxid,
    )


def _texts(texts: Sequence[str]) -> bytes:
    return _INT.pack(len(texts)) + b"".join(map(_text, texts))


def _text(text: str) -> bytes:
    return _buffer(text.encode())


def _buffer(data: bytes | None) -> bytes:
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data


def _framed(body: bytes) -> bytes:
    return _INT.pack(len(body)) + body
