"""The embedded tree against a small model of ZooKeeper, in random histories of writes, sessions, watches and restarts."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.metadata.embedded import open_embedded
from barnabas.metadata.tree import Check, Create, CreateMode, Delete, Exists, GetChildren, GetData, Multi, Operation, SetData
from tests.unit.metadata.sessions import Client

PATHS = ["/a", "/b", "/a/c", "/a/d", "/a/c/e", "/b/f"]
SESSIONS = 3

versions = st.sampled_from([-1, -1, 0, 1, 2])
data = st.sampled_from([None, b"", b"x", b"yy"])
operations = st.one_of(
    st.builds(Create, st.sampled_from(PATHS), data, st.sampled_from(CreateMode)),
    st.builds(SetData, st.sampled_from(PATHS), data, versions),
    st.builds(Delete, st.sampled_from(PATHS), versions),
    st.builds(Check, st.sampled_from(PATHS), versions),
)


@dataclass
class ModelNode:
    data: bytes | None
    owner: int | None  # number of the session
    version: int = 0
    creates: int = 0
    deletes: int = 0


@dataclass
class Model:
    """Nodes by path, and for each session the watches it left: ("data" or "child", path)."""

    nodes: dict[str, ModelNode] = field(default_factory=lambda: {"/": ModelNode(None, None)})
    watches: list[set[tuple[str, str]]] = field(default_factory=lambda: [set() for _ in range(SESSIONS)])

    def copied(self) -> dict[str, ModelNode]:
        return {path: ModelNode(**vars(node)) for path, node in self.nodes.items()}

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted(
            other[len(prefix) :] for other in self.nodes if other.startswith(prefix) and other != "/" and "/" not in other[len(prefix) :]
        )

    def write(self, session: int, operations: Sequence[Operation]) -> tuple[str | None, list[tuple[str, str]]]:
        """The name of the error or None, and the changes made."""
        before = self.copied()
        changes: list[tuple[str, str]] = []
        for operation in operations:
            error = self._apply(session, operation, changes)
            if error is not None:
                self.nodes = before
                return error, []
        return None, changes

    def _apply(self, session: int, operation: Operation, changes: list[tuple[str, str]]) -> str | None:
        path = operation.path
        if isinstance(operation, Create):
            parent = self.nodes.get(parent_of(path))
            if parent is None:
                return "NoNode"
            if operation.mode.is_sequential:
                path += f"{parent.creates:010d}"
            if parent.owner is not None:
                return "NoChildrenForEphemerals"
            if path in self.nodes:
                return "NodeExists"
            parent.creates += 1
            self.nodes[path] = ModelNode(operation.data, session if operation.mode.is_ephemeral else None)
            changes.append(("NodeCreated", path))
            return None
        node = self.nodes.get(path)
        if node is None:
            return "NoNode"
        if operation.version not in (-1, node.version):
            return "BadVersion"
        if isinstance(operation, SetData):
            node.data = operation.data
            node.version += 1
            changes.append(("NodeDataChanged", path))
        elif isinstance(operation, Delete):
            if self.children(path):
                return "NotEmpty"
            self.delete(path, changes)
        return None

    def delete(self, path: str, changes: list[tuple[str, str]]) -> None:
        del self.nodes[path]
        self.nodes[parent_of(path)].deletes += 1
        changes.append(("NodeDeleted", path))

    def fire(self, changes: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
        """By session, what it hears."""
        heard: list[list[tuple[str, str]]] = [[] for _ in range(SESSIONS)]
        for kind, path in changes:
            parent = parent_of(path)
            for watches, events in zip(self.watches, heard, strict=True):
                mine = {("data", path)} | ({("child", path)} if kind == "NodeDeleted" else set())
                if watches & mine:
                    watches -= mine
                    events.append((kind, path))
                if kind != "NodeDataChanged" and ("child", parent) in watches:
                    watches.remove(("child", parent))
                    events.append(("NodeChildrenChanged", parent))
        return heard


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class TreeMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.model = Model()
        self.open()

    def open(self) -> None:
        self.tree = open_embedded(str(Path(self.directory.name) / "metadata.db"), now_ms=lambda: 1)
        self.clients = [Client(self.tree) for _ in range(SESSIONS)]

    def teardown(self) -> None:
        if hasattr(self, "tree"):
            self.tree.close_now()
            self.directory.cleanup()

    @rule(session=st.integers(0, SESSIONS - 1), wanted=st.lists(operations, min_size=1, max_size=6), as_multi=st.booleans())
    def write(self, session: int, wanted: list[Operation], as_multi: bool) -> None:
        requests = [Multi(wanted)] if as_multi else wanted
        expected: list[str | None] = []
        changes: list[tuple[str, str]] = []
        for group in [wanted] if as_multi else [[operation] for operation in wanted]:
            error, made = self.model.write(session, group)
            expected.append(error)
            changes += made
        responses = self.clients[session].session.handle_now(requests)
        assert [type(response.error).__name__ if response.error is not None else None for response in responses] == expected
        self.expect_events(changes)

    @rule(session=st.integers(0, SESSIONS - 1), path=st.sampled_from(["/", *PATHS]), kind=st.sampled_from(["get", "exists", "children"]))
    def watch(self, session: int, path: str, kind: str) -> None:
        request = {"get": GetData, "exists": Exists, "children": GetChildren}[kind](path, watch=True)
        self.clients[session].session.handle_now([request])
        if kind == "exists" or path in self.model.nodes:
            self.model.watches[session].add(("child" if kind == "children" else "data", path))

    @rule(session=st.integers(0, SESSIONS - 1), expired=st.booleans())
    def end_session(self, session: int, expired: bool) -> None:
        client = self.clients[session]
        self.model.watches[session].clear()
        changes: list[tuple[str, str]] = []
        for path in [path for path, node in self.model.nodes.items() if node.owner == session]:
            self.model.delete(path, changes)
        client.session.expire() if expired else client.session.close_now()
        assert client.take_events() == ([("SessionExpired", "")] if expired else [])
        self.expect_events(changes, in_order=False)
        self.clients[session] = Client(self.tree)

    @rule()
    def restart(self) -> None:
        self.tree.close_now()
        for path in [path for path, node in self.model.nodes.items() if node.owner is not None]:
            self.model.delete(path, [])
        self.model.watches = [set() for _ in range(SESSIONS)]
        self.open()

    @invariant()
    def the_tree_is_the_model(self) -> None:
        if not hasattr(self, "tree"):
            return
        assert self.tree.node_count == len(self.model.nodes)
        for path, node in self.model.nodes.items():
            held, stat = self.clients[0].ask(GetData(path))
            assert (held, stat.version, stat.cversion) == (node.data, node.version, node.creates + node.deletes)
            owner = 0 if node.owner is None else self.clients[node.owner].session.session_id
            assert stat.ephemeral_owner == owner
            assert self.clients[0].ask(GetChildren(path)).names == self.model.children(path)

    @invariant()
    def no_watch_is_kept_that_was_not_asked_for(self) -> None:
        if hasattr(self, "tree"):
            assert self.tree.watch_count == sum(map(len, self.model.watches))

    def expect_events(self, changes: list[tuple[str, str]], in_order: bool = True) -> None:
        for client, heard in zip(self.clients, self.model.fire(changes), strict=True):
            events = client.take_events()
            assert (events, heard) == (heard, heard) if in_order else sorted(events) == sorted(heard)


TestTree = TreeMachine.TestCase
TestTree.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
