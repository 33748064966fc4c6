"""The metadata tree of a data directory or of ZooKeeper, read only. Of an embedded store a copy is read, so that a running broker is not
disturbed.

A znode may have data and children at once, unlike what Kafka's shell shows of a Raft log; a node with children, or without data, is a
directory here, and a directory may have contents too.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from barnabas.metadata.embedded import APPLICATION_ID, STORE_NAME
from barnabas.tools.command_line.failures import ToolError

_COPIES_MAX: Final = 20  # the copy is repeated if the broker compacted its store in the meantime
_SQLITE_HEADER: Final = b"SQLite format 3\0"
_SPECIAL: Final = frozenset("*?{")


@dataclass(frozen=True)
class NodeStat:
    """The Stat of a node, as ZooKeeper names its fields."""

    version: int
    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int


@dataclass
class MetadataNode:
    data: bytes = b""
    stat: NodeStat | None = None
    children: dict[str, MetadataNode] = field(default_factory=dict)

    @property
    def is_directory(self) -> bool:
        return bool(self.children) or not self.data

    def child_names(self) -> list[str]:
        return sorted(self.children)

    def descend(self, components: list[str]) -> MetadataNode | None:
        node: MetadataNode | None = self
        for component in components:
            node = None if node is None else node.children.get(component)
        return node


def load_from_zookeeper(address: str) -> MetadataNode:
    """The current tree of a cluster, below the chroot of the address."""
    from barnabas.tools.tree.zookeeper_tree import ZooKeeperCluster, on_cluster

    root = MetadataNode()

    async def read(cluster: ZooKeeperCluster) -> None:
        for path, node in await cluster.nodes():
            stat = node.stat
            _put(root, path, node.data, NodeStat(stat.version, stat.czxid, stat.mzxid, stat.pzxid, stat.ctime, stat.mtime))

    on_cluster(address, read)
    return root


def _put(root: MetadataNode, path: str, data: bytes | None, stat: NodeStat) -> None:
    node = root
    for component in split_path(path):
        node = node.children.setdefault(component, MetadataNode())
    node.data, node.stat = bytes(data or b""), stat


def load(place: str) -> MetadataNode:
    """The root of the tree in a store; `path` is its file or the directory that contains it."""
    path = Path(place, STORE_NAME) if os.path.isdir(place) else Path(place)
    if not path.is_file():
        raise ToolError(f"{place}: there is no metadata store ({STORE_NAME}) here; name the data directory of a broker with --data")
    with path.open("rb") as file:
        if file.read(len(_SQLITE_HEADER)) != _SQLITE_HEADER:
            raise ToolError(
                f"{path} is not a metadata store; snapshots of Kafka's Raft log are shown by dump-log --cluster-metadata-decoder"
            )
    with tempfile.TemporaryDirectory(prefix="barnabas-metadata-shell-") as directory:
        copy = copy_store(path, Path(directory))
        try:
            return _read(copy, path)
        except sqlite3.Error as error:
            raise ToolError(f"{path} cannot be read: {error}") from None


def copy_store(path: Path, directory: Path) -> Path:
    """Copies the store and its journal consistently: while the file does not change, the journal only grows, and a torn end of it is
    ignored."""
    copy = directory / STORE_NAME
    journal = path.with_name(path.name + "-wal")
    for _ in range(_COPIES_MAX):
        before = path.stat()
        shutil.copyfile(path, copy)
        try:
            shutil.copyfile(journal, copy.with_name(copy.name + "-wal"))
        except FileNotFoundError:
            copy.with_name(copy.name + "-wal").unlink(missing_ok=True)
        after = path.stat()
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
            return copy
    raise ToolError(f"{path} changes faster than it can be read; try again when the broker is less busy")


def _read(copy: Path, original: Path) -> MetadataNode:
    database = sqlite3.connect(copy)
    try:
        (application_id,) = database.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID:
            raise ToolError(f"{original} is an SQLite file of another program")
        root = MetadataNode()
        for path, data, *numbers in database.execute(
            "SELECT path, data, version, czxid, mzxid, pzxid, ctime, mtime FROM node ORDER BY path"
        ):
            _put(root, path, data, NodeStat(*numbers))
        return root
    finally:
        database.close()


@dataclass
class ShellState:
    """The current directory of a shell."""

    root: MetadataNode
    working_directory: str = "/"

    def absolute(self, path: str) -> list[str]:
        """The components of a path, without dots."""
        return strip_dots(split_path(path if path.startswith("/") else f"{self.working_directory}/{path}"))

    def find(self, glob: str) -> Iterator[tuple[str, MetadataNode]]:
        """The nodes of a path with `*`, `?` and `{a,b}`, by their absolute paths."""
        matching = [("", self.root)]
        for component in self.absolute(glob):
            matches = _matcher(component)
            matching = [(f"{path}/{name}", node.children[name]) for path, node in matching for name in node.child_names() if matches(name)]
        for path, node in matching:
            yield path or "/", node


def split_path(path: str) -> list[str]:
    return [component for component in path.split("/") if component]


def strip_dots(components: list[str]) -> list[str]:
    kept: list[str] = []
    for component in components:
        if component == "..":
            kept[-1:] = []
        elif component != ".":
            kept.append(component)
    return kept


def glob_to_regex(glob: str) -> str | None:
    """The regular expression of a glob; None for a plain name, or one whose braces do not match up."""
    if not _SPECIAL & set(re.sub(r"\\.", "", glob)):
        return None
    parts: list[str] = []
    in_group = False
    characters = iter(glob)
    for character in characters:
        if character == "\\":
            parts.append(re.escape(next(characters, "\\")))
        elif character == "{":
            if in_group:
                return None
            in_group = True
            parts.append("(?:(?:")
        elif character == "}" and in_group:
            in_group = False
            parts.append("))")
        elif character == "," and in_group:
            parts.append(")|(?:")
        else:
            parts.append({"?": ".", "*": ".*"}.get(character) or re.escape(character))
    return None if in_group else "".join(parts)


def _matcher(component: str) -> Callable[[str], bool]:
    regex = glob_to_regex(component)
    if regex is None:
        plain = re.sub(r"\\(.)", r"\1", component)
        return lambda name: name == plain
    pattern = re.compile(regex)
    return lambda name: pattern.fullmatch(name) is not None
