"""ZooKeeper's protocol in bytes: the frames that a client sends and receives.

Its encoding, Jute, has big-endian numbers; strings and arrays follow a 32-bit length, where -1 means null. Every frame follows its size.
Nothing here waits or keeps state: requests of `metadata.tree` become frames, frames become results.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from barnabas.metadata import errors
from barnabas.metadata.errors import TreeError
from barnabas.metadata.tree import (
    Check,
    Children,
    Create,
    Created,
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
    WatchedEvent,
)
from barnabas.metadata.zookeeper.access import AccessOf

# Operations by number.
CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_CHILDREN2, CHECK, MULTI, CREATE2 = 1, 2, 3, 4, 5, 12, 13, 14, 15
PING, AUTH, SET_WATCHES, SASL, CLOSE = 11, 100, 101, 102, -11
ERROR: Final = -1  # in place of an operation, in the response to a failed multi

# Frames that belong to no request have reserved xids.
NOTIFICATION_XID, PING_XID, AUTH_XID, SET_WATCHES_XID = -1, -2, -4, -8

FRAME_BYTES_MAX: Final = 64 * 1024 * 1024  # a server sends up to its jute.maxbuffer, 1 MB by default
WATCHES_BYTES_MAX: Final = 128 * 1024  # in one SetWatches, so that every server accepts it

_RUNTIME_INCONSISTENCY: Final = -2  # an operation of a multi that would have succeeded, had another not failed
_HEADER: Final = struct.Struct(">ii")
_REPLY: Final = struct.Struct(">iqi")
_STAT: Final = struct.Struct(">qqqqiiiqiiq")
_INT: Final = struct.Struct(">i")
_MULTI_HEADER: Final = struct.Struct(">i?i")
_EVENTS: Final = {
    1: EventType.NODE_CREATED,
    2: EventType.NODE_DELETED,
    3: EventType.NODE_DATA_CHANGED,
    4: EventType.NODE_CHILDREN_CHANGED,
}
_ERRORS: Final[dict[int, type[TreeError]]] = {
    error.code: error
    for error in (
        errors.StoreFailure,
        errors.ConnectionLoss,
        errors.BadArguments,
        errors.NoNode,
        errors.NoAuth,
        errors.BadVersion,
        errors.NoChildrenForEphemerals,
        errors.NodeExists,
        errors.NotEmpty,
        errors.SessionExpired,
        errors.AuthFailed,
        errors.QuotaExceeded,
    )
}


class Malformed(Exception):
    """Bytes that are not ZooKeeper's: another program listens at that address, or a proxy changes the bytes."""


class ConnectResponse(NamedTuple):
    """The first response of a server. A timeout of 0 means that the session has expired."""

    timeout_ms: int
    session_id: int
    password: bytes


class ReplyHeader(NamedTuple):
    xid: int
    zxid: int
    error: int
    body: JuteReader


# Frames of a client


def connect(last_zxid: int, timeout_ms: int, session_id: int, password: bytes) -> bytes:
    fixed = struct.pack(">iqiq", 0, last_zxid, timeout_ms, session_id)
    return _framed(fixed + _buffer(password) + b"\0")  # \0: do not accept a read-only server


def ping() -> bytes:
    return _framed(_HEADER.pack(PING_XID, PING))


def close(xid: int) -> bytes:
    return _framed(_HEADER.pack(xid, CLOSE))


def auth(scheme: str, credentials: bytes) -> bytes:
    return _framed(_HEADER.pack(AUTH_XID, AUTH) + _INT.pack(0) + _text(scheme) + _buffer(credentials))


def sasl(xid: int, token: bytes) -> bytes:
    """One token of a SASL exchange. The body of the reply is the server's token."""
    return _framed(_HEADER.pack(xid, SASL) + _buffer(token))


def set_watches(last_zxid: int, data: Sequence[str], exist: Sequence[str], child: Sequence[str]) -> bytes:
    """Registers the watches of an earlier connection. The server sends missed events since `last_zxid` at once."""
    lists = b"".join(_INT.pack(len(node_paths)) + b"".join(map(_text, node_paths)) for node_paths in (data, exist, child))
    return _framed(_HEADER.pack(SET_WATCHES_XID, SET_WATCHES) + struct.pack(">q", last_zxid) + lists)


def request(xid: int, operation_request: TreeRequest[Any], chroot: str, access_of: AccessOf) -> bytes:
    if isinstance(operation_request, Multi):
        body = b"".join(_in_multi(operation, chroot, access_of) for operation in operation_request.operations)
        return _framed(_HEADER.pack(xid, MULTI) + body + _MULTI_HEADER.pack(-1, True, -1))
    number, body = _operation(operation_request, chroot, access_of)
    return _framed(_HEADER.pack(xid, number) + body)


def _in_multi(operation: Operation, chroot: str, access_of: AccessOf) -> bytes:
    """Inside a multi servers return only the path of a created node, some of them also for Create2: so Create2 is not used there."""
    number, body = _operation(operation, chroot, access_of)
    return _MULTI_HEADER.pack(CREATE if number == CREATE2 else number, False, -1) + body


def _operation(operation: TreeRequest[Any], chroot: str, access_of: AccessOf) -> tuple[int, bytes]:
    if isinstance(operation, Create):
        access = access_of(operation.path)
        list_of_access = b"".join(_INT.pack(entry.permissions) + _text(entry.scheme) + _text(entry.id) for entry in access)
        path = _path(operation.path, chroot)
        return CREATE2, path + _buffer(operation.data) + _INT.pack(len(access)) + list_of_access + _INT.pack(operation.mode)
    if isinstance(operation, SetData):
        return SET_DATA, _path(operation.path, chroot) + _buffer(operation.data) + _INT.pack(operation.version)
    if isinstance(operation, Delete):
        return DELETE, _path(operation.path, chroot) + _INT.pack(operation.version)
    if isinstance(operation, Check):
        return CHECK, _path(operation.path, chroot) + _INT.pack(operation.version)
    if isinstance(operation, Exists):
        return EXISTS, _path(operation.path, chroot) + bytes((operation.watch,))
    if isinstance(operation, GetData):
        return GET_DATA, _path(operation.path, chroot) + bytes((operation.watch,))
    if isinstance(operation, GetChildren):
        return GET_CHILDREN2, _path(operation.path, chroot) + bytes((operation.watch,))
    raise errors.BadArguments("/", f"{type(operation).__name__} is not a request of the metadata tree")


def rooted(path: str, chroot: str) -> str:
    """The path of a node in the whole tree of the ensemble."""
    return chroot if chroot and path == "/" else chroot + path


def _path(path: str, chroot: str) -> bytes:
    return _text(rooted(path, chroot))


def _text(text: str) -> bytes:
    return _buffer(text.encode())


def _buffer(data: bytes | None) -> bytes:
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data


def _framed(body: bytes) -> bytes:
    return _INT.pack(len(body)) + body


# Frames of a server


def handshake(frame: bytes) -> ConnectResponse:
    reader = JuteReader(frame)
    reader.int32()  # the protocol version, which has never changed
    return ConnectResponse(reader.int32(), reader.int64(), reader.buffer() or b"")


def reply(frame: bytes) -> ReplyHeader:
    reader = JuteReader(frame)
    xid, zxid, error = reader.unpack(_REPLY)
    return ReplyHeader(xid, zxid, error, reader)


def event(body: JuteReader, chroot: str) -> WatchedEvent | None:
    """None for events of the connection, and for nodes outside the chroot."""
    kind, _, path = body.int32(), body.int32(), body.text() or ""
    if kind not in _EVENTS or not (path + "/").startswith(chroot + "/"):
        return None
    return WatchedEvent(_EVENTS[kind], path[len(chroot) :] or "/")


def result(request: TreeRequest[Any], reply: ReplyHeader, chroot: str) -> Any:
    """The result of the request; raises its error."""
    if isinstance(request, Multi):
        return _multi_result(request, reply, chroot)
    if isinstance(request, Exists) and reply.error == errors.NoNode.code:
        return None
    if reply.error:
        raise error_of(reply.error, getattr(request, "path", "/"))
    body = reply.body
    if isinstance(request, Create):
        return _created(body, chroot)
    if isinstance(request, GetData):
        return NodeData(body.buffer(), body.stat())
    if isinstance(request, GetChildren):
        return Children(sorted(body.texts()), body.stat())
    return body.stat() if isinstance(request, (SetData, Exists)) else None


def error_of(code: int, path: str) -> TreeError:
    kind = _ERRORS.get(code)
    return errors.StoreFailure(path, f"ZooKeeper answered with error {code} for {path}") if kind is None else kind(path)


def _multi_result(request: Multi, reply: ReplyHeader, chroot: str) -> list[Created | Stat | None]:
    results: list[Created | Stat | None] = []
    refused: TreeError | None = error_of(reply.error, "/") if reply.error else None
    if reply.body.is_at_end and refused is not None:
        raise refused
    for number, operation in enumerate(request.operations):
        kind, _, _ = reply.body.unpack(_MULTI_HEADER)
        if kind == ERROR:
            code = reply.body.int32()
            if code not in (0, _RUNTIME_INCONSISTENCY) and (refused is None or refused.operation is None):
                refused = error_of(code, operation.path)
                refused.operation = number
        elif kind == CREATE:
            path = reply.body.text() or ""
            results.append(Created(path[len(chroot) :], _new_stat(reply.zxid)))
        else:
            results.append(reply.body.stat() if kind == SET_DATA else None)
    if refused is not None:
        raise refused
    return results


def _new_stat(zxid: int) -> Stat:
    """The known part of the stat of a node created in a multi."""
    return Stat(zxid, zxid, zxid, 0, 0, 0, 0, 0, 0)


def _created(body: JuteReader, chroot: str) -> Created:
    path = body.text() or ""
    return Created(path[len(chroot) :], body.stat())


class JuteReader:
    """Reads values from the front of a frame; a frame that is too short is malformed."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._data)

    def unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        try:
            values = form.unpack_from(self._data, self._at)
        except struct.error as error:
            raise Malformed(f"A frame of {len(self._data)} bytes ends too early") from error
        self._at += form.size
        return values

    def int32(self) -> int:
        value: int = self.unpack(_INT)[0]
        return value

    def int64(self) -> int:
        value: int = self.unpack(_LONG)[0]
        return value

    def buffer(self) -> bytes | None:
        size = self.int32()
        if size < 0:
            return None
        start = self._at
        if size > len(self._data) - start:
            raise Malformed(f"A frame of {len(self._data)} bytes ends too early")
        self._at = start + size
        return self._data[start : self._at]

    def flag(self) -> bool:
        value: bool = self.unpack(_FLAG)[0]
        return value

    def text(self) -> str | None:
        data = self.buffer()
        return None if data is None else data.decode(errors="replace")

    def texts(self) -> list[str]:
        count = self.int32()
        if count * _INT.size > len(self._data) - self._at:
            raise Malformed(f"A frame of {len(self._data)} bytes cannot have a list of {count}")
        return [self.text() or "" for _ in range(count)]

    def stat(self) -> Stat:
        czxid, mzxid, ctime, mtime, version, cversion, _, owner, _, children, pzxid = self.unpack(_STAT)
        return Stat(czxid, mzxid, pzxid, ctime, mtime, version, cversion, owner, children)


_LONG: Final = struct.Struct(">q")
_FLAG: Final = struct.Struct(">?")
