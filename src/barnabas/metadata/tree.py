"""The metadata tree: what the controller and the brokers may ask of it, and what they get back.

It is ZooKeeper's model, as Kafka uses it: versioned nodes, ephemeral and sequential ones, one-shot watches, atomic multis with checks,
and sessions that take their ephemerals with them. Nothing here knows where the nodes are kept.

Why `handle(requests)` and why awaited: there will be two kinds of store. The embedded one answers from memory at once; ZooKeeper answers
over a network, and at a failover the controller reads thousands of nodes, which must travel pipelined and not one by one. So every call
takes a list of requests and gives the responses in the same order, as Kafka's ZooKeeperClient.handleRequests does, and it is awaited.
On the embedded store the coroutine never suspends: it costs a fraction of a microsecond, makes no task, and behaves under the simulator
like a plain call. A refused request is a value in its response and does not stop the others; only a multi stands and falls as one.

What a store promises
- The writes of one `handle` are made in order. Each is atomic; they are durable when `handle` returns, those in a row at one sync.
- A session sees an event before it sees, in any response, the change that caused it.
- A watch is one-shot and belongs to its session; `client.TreeClient` has the handlers that outlive the event.
- ZooKeeper's access lists do not appear: a store that has them derives them from the path (`paths.is_sensitive`), as Kafka does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, Generic, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from barnabas.metadata.errors import TreeError

R_co = TypeVar("R_co", covariant=True)

MATCH_ANY_VERSION: Final = -1  # as expected version: whatever it is


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
    """A node's history. A zxid numbers a committed write; it grows over the whole life of the tree, restarts included."""

    czxid: int  # the write that created the node; of /brokers/ids/N it is the broker epoch
    mzxid: int  # the write that last set its data
    pzxid: int  # the write that last created or deleted a child
    ctime: int
    mtime: int
    version: int  # how often the data was set
    cversion: int  # how often a child was created or deleted
    ephemeral_owner: int  # the session it vanishes with; 0 = none
    num_children: int


class Created(NamedTuple):
    path: str  # with the ten digits, if it is sequential
    stat: Stat


class NodeData(NamedTuple):
    data: bytes | None  # None and b"" are different, as in ZooKeeper
    stat: Stat


class Children(NamedTuple):
    names: list[str]  # sorted, so that two runs see the same order
    stat: Stat


class Request(Generic[R_co]):
    """One question or change; R is what a good response holds."""

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
    """That a node exists and has this version. Kafka's guard: the controller checks its epoch with every write."""

    path: str
    version: int = MATCH_ANY_VERSION


Operation = Create | SetData | Delete | Check


@dataclass(frozen=True, slots=True)
class Multi(Request["list[Created | Stat | None]"]):
    """All operations or none. When one is refused the error says which (`operation`). Of a node made in a multi only path and zxids
    are sure to be told."""

    operations: Sequence[Operation]


@dataclass(frozen=True, slots=True)
class Exists(Request["Stat | None"]):
    """The stat, or None. A watch stays also on a node that is not there yet."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetData(Request[NodeData]):
    """On a missing node NoNode, and no watch."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetChildren(Request[Children]):
    """On a missing node NoNode, and no watch."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Response(Generic[R_co]):
    request: Request[R_co]
    result: R_co | None
    error: TreeError | None = None

    @property
    def value(self) -> R_co:
        """What was asked for; raises the error if the request was refused."""
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
    """One broker's standing with the tree. Its ephemerals vanish when it is closed or expires."""

    @property
    def session_id(self) -> int: ...

    @property
    def is_alive(self) -> bool: ...

    async def handle(self, requests: Sequence[Request[R_co]]) -> list[Response[R_co]]:
        """The responses in the order of the requests. After the session's end each is SessionExpired."""
        ...

    async def close(self) -> None: ...


class StoreTrouble(NamedTuple):
    """Why the last change could not be kept, and in which file."""

    path: str
    reason: str


@runtime_checkable
class Kept(Protocol):
    """A tree that is kept on a disk of this machine."""

    @property
    def trouble(self) -> StoreTrouble | None:
        """None while changes can be kept."""


class Tree(Protocol):
    async def open_session(self, watcher: Watcher) -> Session:
        """`watcher` gets every event of this session, in order, one at a time; what it raises is logged."""
        ...

    async def close(self) -> None:
        """Ends all sessions and lets go of the store."""
        ...
