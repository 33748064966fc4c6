"""The interface of the metadata store: the requests of the controller and the brokers, and their responses.

It is ZooKeeper's model, as Kafka uses it: versioned nodes, ephemeral and sequential ones, one-shot watches, atomic multis with checks,
and sessions that end with their ephemeral nodes. Nothing here depends on where the nodes are stored.

Why `handle(requests)` is awaited and takes a list: there are two kinds of store. The embedded one responds from memory at once. ZooKeeper
responds over a network, and at a failover the controller reads thousands of nodes, which must be pipelined. So every call takes a list of
requests and returns the responses in the same order, as Kafka's ZooKeeperClient.handleRequests does, and it is awaited. On the embedded
store the coroutine never suspends: it costs a fraction of a microsecond, creates no task, and behaves under the simulator like a plain
call. A failed request is a value in its response and does not stop the others; only a multi succeeds or fails as a whole.

What a store promises
- The writes of one `handle` are made in order. Each is atomic; all are durable when `handle` returns, consecutive ones with one sync.
- A session receives an event before it sees, in any response, the change that caused it.
- A watch is one-shot and belongs to its session; `client.TreeClient` has the handlers that outlive the event.
- ZooKeeper's ACLs do not appear: a store that has them derives them from the path (`paths.is_sensitive`), as Kafka does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, Generic, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from barnabas.metadata.errors import TreeError

R_co = TypeVar("R_co", covariant=True)

MATCH_ANY_VERSION: Final = -1  # as expected version


class CreateMode(IntEnum):
    """Bits of ZooKeeper's flags: 1 = ephemeral, 2 = sequential."""

    PERSISTENT = 0
    EPHEMERAL = 1
    PERSISTENT_SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3

    @property
    def is_ephemeral(self) -> bool:
        return bool(self & 1)

    @property
    def is_sequential(self) -> bool:
        return bool(self & 2)


class Stat(NamedTuple):
    """The history of a node. A zxid numbers a committed write; it grows over the whole life of the tree, restarts included."""

    czxid: int  # the write that created the node; of /brokers/ids/N it is the broker epoch
    mzxid: int  # the write that last set its data
    pzxid: int  # the write that last created or deleted a child
    ctime: int
    mtime: int
    version: int  # how often the data was set
    cversion: int  # how often a child was created or deleted
    ephemeral_owner: int  # the session whose end deletes the node; 0 = none
    num_children: int


class Created(NamedTuple):
    path: str  # with the ten digits, for a sequential node
    stat: Stat


class NodeData(NamedTuple):
    data: bytes | None  # None and b"" are different, as in ZooKeeper
    stat: Stat


class Children(NamedTuple):
    names: list[str]  # sorted, so that two runs see the same order
    stat: Stat


class Request(Generic[R_co]):
    """One read or write; R is the result of a successful response."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Create(Request[Created]):
    path: str
    data: bytes | None = None
    mode: CreateMode = CreateMode.PERSISTENT


@dataclass(frozen=True, slots=True)
class SetData(Request[Stat]):
    path: str
    data: bytes | None
    version: int = MATCH_ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete(Request[None]):
    path: str
    version: int = MATCH_ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check(Request[None]):
    """Checks that a node exists and has this version. The controller checks its epoch with every write, as in Kafka."""

    path: str
    version: int = MATCH_ANY_VERSION


Operation = Create | SetData | Delete | Check


@dataclass(frozen=True, slots=True)
class Multi(Request["list[Created | Stat | None]"]):
    """All operations or none. On failure the error says which one failed (`operation`). Of a node created in a multi, only path and
    zxids are certain to be returned."""

    operations: Sequence[Operation]


@dataclass(frozen=True, slots=True)
class Exists(Request["Stat | None"]):
    """The stat, or None. A watch is also left on a missing node."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetData(Request[NodeData]):
    """A missing node gives NoNode, and no watch."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetChildren(Request[Children]):
    """A missing node gives NoNode, and no watch."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Response(Generic[R_co]):
    request: Request[R_co]
    result: R_co | None
    error: TreeError | None = None

    @property
    def value(self) -> R_co:
        """The result; raises the error if the request failed."""
        if self.error is not None:
            raise self.error
        return cast("R_co", self.result)


class EventType(Enum):
    NODE_CREATED = "NodeCreated"
    NODE_DELETED = "NodeDeleted"
    NODE_DATA_CHANGED = "NodeDataChanged"
    NODE_CHILDREN_CHANGED = "NodeChildrenChanged"
    SESSION_EXPIRED = "SessionExpired"


class WatchedEvent(NamedTuple):
    type: EventType
    path: str  # empty for SESSION_EXPIRED


Watcher = Callable[[WatchedEvent], None]


class Session(Protocol):
    """One broker's session with the metadata store. Its ephemeral nodes are deleted when it is closed or expires."""

    @property
    def session_id(self) -> int: ...

    @property
    def is_alive(self) -> bool: ...

    async def handle(self, requests: Sequence[Request[R_co]]) -> list[Response[R_co]]:
        """The responses in the order of the requests. After the end of the session each has the error SessionExpired."""
        ...

    async def close(self) -> None: ...


class StoreTrouble(NamedTuple):
    """Why the last change could not be saved, and in which file."""

    path: str
    reason: str


@runtime_checkable
class Kept(Protocol):
    """A store on a disk of this machine."""

    @property
    def trouble(self) -> StoreTrouble | None:
        """None while changes can be saved."""


class Tree(Protocol):
    async def open_session(self, watcher: Watcher) -> Session:
        """`watcher` receives every event of this session, in order, one at a time; its exceptions are logged."""
        ...

    async def close(self) -> None:
        """Ends all sessions and closes the store."""
        ...
