"""The znodes in data/, as real Kafka clusters of two brokers wrote them: what they held after each step, and every write in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.metadata.tree import Check, Create, CreateMode, Delete, Operation, SetData

DUMPS = sorted((Path(__file__).parent / "data").glob("znodes_kafka-*.txt"))
_LOG_TITLE = "========== ZooKeeper transaction log"
_NODE = re.compile(r"(?P<sign>[+~-] )?(?P<path>/\S*)(?: ver=(?P<version>\d+)(?P<ephemeral> eph=\S+)? data=(?P<data>.*))?")
_ENTRY = re.compile(r"\[(?P<session>s\d+) z(?P<zxid>\d+)\] (?P<what>.*)")
_CREATE = re.compile(r"create (?P<ephemeral>\(ephemeral\) )?(?P<path>/\S*) (?P<data>.*)")
_SET = re.compile(r"set +(?P<path>/\S*) -> v(?P<version>\d+) (?P<data>.*)")
_DELETE = re.compile(r"delete (?P<path>/\S*)")
_CHECK = re.compile(r"check +(?P<path>/\S*) v(?P<version>\d+)")
_SEQUENTIAL = re.compile(r"/[a-z_]+_\d{10}$")


@dataclass
class DumpedNode:
    version: int
    is_ephemeral: bool
    data: bytes | None


@dataclass
class LoggedWrite:
    """One entry of ZooKeeper's log; a refused write has no operations."""

    session: str
    kind: str  # createSession, closeSession, one, multi, error
    operations: list[Operation] = field(default_factory=list)
    results: list[str | int] = field(default_factory=list)  # of a create the path, of a set the version


def znodes(dump: Path) -> Iterator[tuple[str, bytes]]:
    """Every distinct (path, data) that the dump shows anywhere, nodes without data left out."""
    seen: dict[tuple[str, bytes], None] = {}
    for line in _states(dump):
        if line["data"] not in (None, "null"):
            seen[line["path"], line["data"].encode()] = None
    for write in writes(dump):
        for operation, result in zip(write.operations, write.results, strict=True):
            if isinstance(operation, (Create, SetData)) and operation.data is not None:
                path = result if isinstance(operation, Create) else operation.path
                seen[str(path), operation.data] = None
    yield from seen


def final_state(dump: Path) -> dict[str, DumpedNode]:
    state: dict[str, DumpedNode] = {}
    for line in _states(dump):
        if line["sign"] == "- ":
            del state[line["path"]]
        else:
            state[line["path"]] = DumpedNode(int(line["version"]), bool(line["ephemeral"]), _data(line["data"]))
    return state


def writes(dump: Path) -> list[LoggedWrite]:
    writes: list[LoggedWrite] = []
    for line in dump.read_text().split(_LOG_TITLE, 1)[1].splitlines()[1:]:
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            if line.strip():
                _add(writes[-1], line.strip())
            continue
        what = entry["what"]
        kind = what.split()[0]
        writes.append(LoggedWrite(entry["session"], kind if kind in ("createSession", "closeSession", "multi", "error") else "one"))
        if writes[-1].kind == "one":
            _add(writes[-1], what)
    return writes


def _add(write: LoggedWrite, what: str) -> None:
    if what.startswith("error"):
        write.kind = "error"
    elif created := _CREATE.fullmatch(what):
        path = created["path"]
        mode = CreateMode.EPHEMERAL if created["ephemeral"] else CreateMode.PERSISTENT
        if _SEQUENTIAL.search(path):
            mode = CreateMode.PERSISTENT_SEQUENTIAL
        write.operations.append(Create(path[:-10] if mode.is_sequential else path, _data(created["data"]), mode))
        write.results.append(path)
    elif changed := _SET.fullmatch(what):
        write.operations.append(SetData(changed["path"], _data(changed["data"]), int(changed["version"]) - 1))
        write.results.append(int(changed["version"]))
    elif deleted := _DELETE.fullmatch(what):
        write.operations.append(Delete(deleted["path"]))
        write.results.append("")
    elif checked := _CHECK.fullmatch(what):
        # ZooKeeper logs the version after a check as if it had been a change: one more than was asked for.
        write.operations.append(Check(checked["path"], int(checked["version"]) - 1))
        write.results.append("")
    else:
        raise ValueError(f"not understood: {what}")


def _states(dump: Path) -> Iterator[re.Match[str]]:
    for line in dump.read_text().split(_LOG_TITLE, 1)[0].splitlines():
        if match := _NODE.fullmatch(line):
            yield match


def _data(text: str) -> bytes | None:
    return None if text == "null" else text.encode()
