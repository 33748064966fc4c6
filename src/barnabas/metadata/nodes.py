"""The znodes in memory: ZooKeeper's rules for creating, setting, deleting and checking, with undo.

A write is decided here before a store makes it durable. A transaction changes the nodes at once and remembers the previous state of each,
so that a failed multi, or a failed commit, can be undone. This module uses no disk, clock or watch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from barnabas.metadata import paths
from barnabas.metadata.errors import (
    BadArguments,
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    QuotaExceeded,
)
from barnabas.metadata.tree import MATCH_ANY_VERSION, Check, Create, Created, CreateMode, Delete, EventType, Operation, SetData, Stat

ROOT: Final = "/"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one tree. ZooKeeper's own limit is jute.maxbuffer, on path and data of a node together."""

    node_bytes_max: int = 0xFFFFF
    operations_max: int = 100_000  # in one multi; with ZooKeeper a multi must also stay below jute.maxbuffer
    nodes_max: int = 1_000_000
    watches_max: int = 1_000_000  # of one session


# The state of a node: data, version, creates, czxid, mzxid, pzxid, ctime, mtime, ephemeral owner.
Image = tuple["bytes | None", int, int, int, int, int, int, int, int]


class ZNode:
    """`creates` counts the children ever created here. It numbers sequential nodes, and the cversion derives from it."""

    __slots__ = ("children", "creates", "ctime", "czxid", "data", "ephemeral_owner", "mtime", "mzxid", "pzxid", "version")

    def __init__(self, image: Image) -> None:
        self.children: dict[str, None] | None = None
        self.restore(image)

    def image(self) -> Image:
        return (
            self.data,
            self.version,
            self.creates,
            self.czxid,
            self.mzxid,
            self.pzxid,
            self.ctime,
            self.mtime,
            self.ephemeral_owner,
        )

    def restore(self, image: Image) -> None:
        (
            self.data,
            self.version,
            self.creates,
            self.czxid,
            self.mzxid,
            self.pzxid,
            self.ctime,
            self.mtime,
            self.ephemeral_owner,
        ) = image

    def stat(self) -> Stat:
        count = len(self.children) if self.children else 0
        # Every child ever created that is missing now was deleted: creates + deletes = creates + (creates - count).
        cversion = 2 * self.creates - count
        return Stat(self.czxid, self.mzxid, self.pzxid, self.ctime, self.mtime, self.version, cversion, self.ephemeral_owner, count)


class ZNodes:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._nodes: dict[str, ZNode] = {ROOT: ZNode((None, 0, 0, 0, 0, 0, 0, 0, 0))}
        self._ephemerals: dict[int, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, path: str) -> ZNode | None:
        return self._nodes.get(path)

    def require(self, path: str) -> ZNode:
        node = self._nodes.get(path)
        if node is None:
            raise NoNode(path)
        return node

    def ephemerals_of(self, session_id: int) -> list[str]:
        return list(self._ephemerals.get(session_id, ()))

    def load(self, path: str, image: Image) -> None:
        """Adds a node that was read from the store; parents come before their children. Raises NoNode if the parent is missing."""
        if path == ROOT:
            self._nodes[ROOT].restore(image)
            return
        self.require(paths.parent(path))
        self.put(path, image)

    def put(self, path: str, image: Image) -> None:
        node = self._nodes[path] = ZNode(image)
        parent_path, _, name = path.rpartition("/")
        parent = self._nodes[parent_path or ROOT]
        if parent.children is None:
            parent.children = {}
        parent.children[name] = None
        if node.ephemeral_owner:
            self._ephemerals.setdefault(node.ephemeral_owner, {})[path] = None

    def remove(self, path: str) -> None:
        node = self._nodes.pop(path)
        parent_path, _, name = path.rpartition("/")
        parent = self._nodes.get(parent_path or ROOT)
        if parent is not None and parent.children is not None:
            parent.children.pop(name, None)
        if node.ephemeral_owner:
            owned = self._ephemerals[node.ephemeral_owner]
            del owned[path]
            if not owned:
                del self._ephemerals[node.ephemeral_owner]


class TreeTransaction:
    """One write: its operations under one zxid. `touched` maps each changed path to its previous state, None if it did not exist."""

    __slots__ = ("_nodes", "_now_ms", "_session_id", "_zxid", "changes", "touched")

    def __init__(self, nodes: ZNodes, session_id: int, zxid: int, now_ms: int) -> None:
        self._nodes = nodes
        self._session_id = session_id
        self._zxid = zxid
        self._now_ms = now_ms
        self.touched: dict[str, Image | None] = {}
        self.changes: list[tuple[EventType, str]] = []

    def apply(self, operation: Operation) -> Created | Stat | None:
        """Applies one operation, or raises ZooKeeper's error and leaves the nodes of this operation unchanged."""
        if isinstance(operation, Create):
            return self._create(operation)
        if isinstance(operation, SetData):
            return self._set_data(operation)
        if isinstance(operation, Delete):
            self._delete(operation)
        else:
            self._check(operation)
        return None

    def close_session(self, session_id: int) -> None:
        for path in self._nodes.ephemerals_of(session_id):
            self._remove(path)

    def undo(self) -> None:
        created = [path for path, before in self.touched.items() if before is None]
        for path in sorted(created, reverse=True):  # children first
            if self._nodes.get(path) is not None:
                self._nodes.remove(path)
        for path, before in sorted(self.touched.items()):  # parents first
            if before is None:
                continue
            node = self._nodes.get(path)
            if node is not None and node.ephemeral_owner == before[-1]:
                node.restore(before)
            else:
                if node is not None:
                    self._nodes.remove(path)
                self._nodes.put(path, before)

    def _create(self, operation: Create) -> Created:
        path, data, mode = operation.path, operation.data, operation.mode
        plain = mode is CreateMode.PERSISTENT  # nearly always, and reading the bits of an enum takes a third of a microsecond
        sequential = not plain and mode.is_sequential
        self._check_path(path + "0" if sequential else path)
        self._check_size(path, data)
        if path == ROOT and not sequential:
            raise NodeExists(path)
        parent_path = paths.parent(path)
        parent = self._nodes.require(parent_path)
        if sequential:
            path = f"{path}{parent.creates:0{paths.SEQUENCE_DIGITS}d}"
        if parent.ephemeral_owner:
            raise NoChildrenForEphemerals(path)
        if self._nodes.get(path) is not None:
            raise NodeExists(path)
        if len(self._nodes) >= self._nodes.limits.nodes_max:
            raise QuotaExceeded(path, f"The metadata tree is full: it holds {len(self._nodes)} nodes, its limit")
        self._remember(parent_path, parent)
        self.touched.setdefault(path, None)
        zxid, now_ms = self._zxid, self._now_ms
        owner = self._session_id if not plain and mode.is_ephemeral else 0
        # A new node has no child yet: its pzxid is its own czxid, as in ZooKeeper.
        self._nodes.put(path, (data, 0, 0, zxid, zxid, zxid, now_ms, now_ms, owner))
        parent.creates += 1
        parent.pzxid = zxid
        self.changes.append((EventType.NODE_CREATED, path))
        return Created(path, Stat(zxid, zxid, zxid, now_ms, now_ms, 0, 0, owner, 0))

    def _set_data(self, operation: SetData) -> Stat:
        node = self._versioned(operation.path, operation.version)
        self._check_size(operation.path, operation.data)
        self._remember(operation.path, node)
        node.data = operation.data
        node.version += 1
        node.mzxid = self._zxid
        node.mtime = self._now_ms
        self.changes.append((EventType.NODE_DATA_CHANGED, operation.path))
        return node.stat()

    def _delete(self, operation: Delete) -> None:
        if operation.path == ROOT:
            raise BadArguments(ROOT, "The root of the metadata tree cannot be deleted")
        node = self._versioned(operation.path, operation.version)
        if node.children:
            raise NotEmpty(operation.path)
        self._remove(operation.path)

    def _check(self, operation: Check) -> None:
        self._versioned(operation.path, operation.version)

    def _remove(self, path: str) -> None:
        parent_path = paths.parent(path)
        parent = self._nodes.require(parent_path)
        self._remember(parent_path, parent)
        self._remember(path, self._nodes.require(path))
        self._nodes.remove(path)
        parent.pzxid = self._zxid
        self.changes.append((EventType.NODE_DELETED, path))

    def _versioned(self, path: str, version: int) -> ZNode:
        self._check_path(path)
        node = self._nodes.require(path)
        if version not in (MATCH_ANY_VERSION, node.version):
            raise BadVersion(path, f"BadVersion for {path}: expected {version}, it is {node.version}")
        return node

    def _remember(self, path: str, node: ZNode) -> None:
        if path not in self.touched:
            self.touched[path] = node.image()

    def _check_path(self, path: str) -> None:
        if self._nodes.get(path) is None:  # an existing path was checked when it was created
            check_path(path)

    def _check_size(self, path: str, data: bytes | None) -> None:
        size = len(path) + (len(data) if data is not None else 0)
        if size > self._nodes.limits.node_bytes_max:
            raise BadArguments(
                path, f"{path[:200]} with its data has {size} bytes, more than the {self._nodes.limits.node_bytes_max} of a node"
            )


def check_path(path: str) -> None:
    fault = paths.fault_in(path)
    if fault is not None:
        raise BadArguments(path, f"Invalid path {path[:200]!r}: {fault}")


def touched_paths(transactions: Iterable[TreeTransaction]) -> list[str]:
    """Every path that the transactions changed, once, in the order of the first change."""
    return list(dict.fromkeys(path for transaction in transactions for path in transaction.touched))
