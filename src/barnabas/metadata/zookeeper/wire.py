"""ZooKeeper's protocol in bytes: what a client sends, and what comes back.

Jute, its encoding, has big-endian numbers, and text and arrays behind a 32-bit length where -1 means null. Every frame stands behind its
size. Nothing here waits or keeps anything: requests of `metadata.tree` become frames, frames become its results.
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
    Request,
    SetData,
    Stat,
    WatchedEvent,
)
from barnabas.metadata.zookeeper.access import AccessOf

# Operations by number.
CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_CHILDREN2, CHECK, MULTI, CREATE2 = 1, 2, 3, 4, 5, 12, 13, 14, 15
PING, AUTH, SET_WATCHES, CLOSE = 11, 100, 101, -11
ERROR: Final = -1  # instead of an operation, in the answer to a multi that failed

# Frames that belong to no request have numbers of their own.
NOTIFICATION_XID, PING_XID, AUTH_XID, SET_WATCHES_XID = -1, -2, -4, -8

FRAME_BYTES_MAX: Final = 64 * 1024 * 1024  # a server sends what its jute.maxbuffer allows, 1 MB unless somebody raised it
WATCHES_BYTES_MAX: Final = 128 * 1024  # in one SetWatches, so that it passes any server

_RUNTIME_INCONSISTENCY: Final = -2  # an operation of a multi that was well, had not another failed
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
    each.code: each
    for each in (
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
    """Bytes that are not ZooKeeper's: somebody else answers at that address, or something between changes them."""


class Handshake(NamedTuple):
    """A server's welcome. A session that it does not know any more has no timeout left."""

    timeout_ms: int
    session_id: int
    password: bytes


class ReplyHeader(NamedTuple):
    xid: int
    zxid: int
    error: int
    body: Reader


# What a client sends


def connect(last_zxid: int, timeout_ms: int, session_id: int, password: bytes) -> bytes:
    fixed = struct.pack(">iqiq", 0, last_zxid, timeout_ms, session_id)
    return _framed(fixed + _buffer(password) + b"\0")  # \0: not with a server that may only read


def ping() -> bytes:
    return _framed(_HEADER.pack(PING_XID, PING))


def close(xid: int) -> bytes:
    return _framed(_HEADER.pack(xid, CLOSE))


def auth(scheme: str, credentials: bytes) -> bytes:
    return _framed(_HEADER.pack(AUTH_XID, AUTH) + _INT.pack(0) + _text(scheme) + _buffer(credentials))


def set_watches(last_zxid: int, data: Sequence[str], exist: Sequence[str], child: Sequence[str]) -> bytes:
    """Those of an earlier connection. What happened since `last_zxid` is told at once."""
    lists = b"".join(_INT.pack(len(each)) + b"".join(map(_text, each)) for each in (data, exist, child))
    return _framed(_HEADER.pack(SET_WATCHES_XID, SET_WATCHES) + struct.pack(">q", last_zxid) + lists)


def request(xid: int, asked: Request[Any], chroot: str, access_of: AccessOf) -> bytes:
    if isinstance(asked, Multi):
        body = b"".join(_in_multi(each, chroot, access_of) for each in asked.operations)
        return _framed(_HEADER.pack(xid, MULTI) + body + _MULTI_HEADER.pack(-1, True, -1))
    number, body = _operation(asked, chroot, access_of)
    return _framed(_HEADER.pack(xid, number) + body)


def _in_multi(operation: Operation, chroot: str, access_of: AccessOf) -> bytes:
    """Inside a multi servers tell only the path of a node that was made, some of them also for Create2: so it is not used there."""
    number, body = _operation(operation, chroot, access_of)
    return _MULTI_HEADER.pack(CREATE if number == CREATE2 else number, False, -1) + body


def _operation(asked: Request[Any], chroot: str, access_of: AccessOf) -> tuple[int, bytes]:
    if isinstance(asked, Create):
        access = access_of(asked.path)
        list_of_access = b"".join(_INT.pack(each.permissions) + _text(each.scheme) + _text(each.id) for each in access)
        path = _path(asked.path, chroot)
        return CREATE2, path + _buffer(asked.data) + _INT.pack(len(access)) + list_of_access + _INT.pack(asked.mode)
    if isinstance(asked, SetData):
        return SET_DATA, _path(asked.path, chroot) + _buffer(asked.data) + _INT.pack(asked.version)
    if isinstance(asked, Delete):
        return DELETE, _path(asked.path, chroot) + _INT.pack(asked.version)
    if isinstance(asked, Check):
        return CHECK, _path(asked.path, chroot) + _INT.pack(asked.version)
    if isinstance(asked, Exists):
        return EXISTS, _path(asked.path, chroot) + bytes((asked.watch,))
    if isinstance(asked, GetData):
        return GET_DATA, _path(asked.path, chroot) + bytes((asked.watch,))
    if isinstance(asked, GetChildren):
        return GET_CHILDREN2, _path(asked.path, chroot) + bytes((asked.watch,))
    raise errors.BadArguments("/", f"{type(asked).__name__} is not a request of the metadata tree")


def rooted(path: str, chroot: str) -> str:
    """Where a node of ours stands in the whole tree."""
    return chroot if chroot and path == "/" else chroot + path


def _path(path: str, chroot: str) -> bytes:
    return _text(rooted(path, chroot))


def _text(text: str) -> bytes:
    return _buffer(text.encode())


def _buffer(data: bytes | None) -> bytes:
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data


def _framed(body: bytes) -> bytes:
    return _INT.pack(len(body)) + body


# What a client gets


def handshake(frame: bytes) -> Handshake:
    reader = Reader(frame)
    reader.int32()  # the protocol's version, which never changed
    return Handshake(reader.int32(), reader.int64(), reader.buffer() or b"")


def reply(frame: bytes) -> ReplyHeader:
    reader = Reader(frame)
    xid, zxid, error = reader.unpack(_REPLY)
    return ReplyHeader(xid, zxid, error, reader)


def event(body: Reader, chroot: str) -> WatchedEvent | None:
    """None for those that tell of the connection, and for nodes outside the chroot."""
    kind, _, path = body.int32(), body.int32(), body.text() or ""
    if kind not in _EVENTS or not (path + "/").startswith(chroot + "/"):
        return None
    return WatchedEvent(_EVENTS[kind], path[len(chroot) :] or "/")


def result(asked: Request[Any], answer: ReplyHeader, chroot: str) -> Any:
    """What the request was for; raises the error that it was refused with."""
    if isinstance(asked, Multi):
        return _multi_result(asked, answer, chroot)
    if isinstance(asked, Exists) and answer.error == errors.NoNode.code:
        return None
    if answer.error:
        raise error_of(answer.error, getattr(asked, "path", "/"))
    body = answer.body
    if isinstance(asked, Create):
        return _created(body, chroot)
    if isinstance(asked, GetData):
        return NodeData(body.buffer(), body.stat())
    if isinstance(asked, GetChildren):
        return Children(sorted(body.texts()), body.stat())
    return body.stat() if isinstance(asked, (SetData, Exists)) else None


def error_of(code: int, path: str) -> TreeError:
    kind = _ERRORS.get(code)
    return errors.StoreFailure(path, f"ZooKeeper answered with error {code} for {path}") if kind is None else kind(path)


def _multi_result(asked: Multi, answer: ReplyHeader, chroot: str) -> list[Created | Stat | None]:
    results: list[Created | Stat | None] = []
    refused: TreeError | None = error_of(answer.error, "/") if answer.error else None
    if answer.body.is_at_end and refused is not None:
        raise refused
    for number, operation in enumerate(asked.operations):
        kind, _, _ = answer.body.unpack(_MULTI_HEADER)
        if kind == ERROR:
            code = answer.body.int32()
            if code not in (0, _RUNTIME_INCONSISTENCY) and (refused is None or refused.operation is None):
                refused = error_of(code, operation.path)
                refused.operation = number
        elif kind == CREATE:
            path = answer.body.text() or ""
            results.append(Created(path[len(chroot) :], _new_stat(answer.zxid)))
        else:
            results.append(answer.body.stat() if kind == SET_DATA else None)
    if refused is not None:
        raise refused
    return results


def _new_stat(zxid: int) -> Stat:
    """Of a node made in a multi: what is known of it."""
    return Stat(zxid, zxid, zxid, 0, 0, 0, 0, 0, 0)


def _created(body: Reader, chroot: str) -> Created:
    path = body.text() or ""
    return Created(path[len(chroot) :], body.stat())


class Reader:
    """Takes values from the front of a frame; a frame that is too short is malformed."""

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
