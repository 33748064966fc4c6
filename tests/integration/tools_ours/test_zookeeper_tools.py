"""With --zookeeper our tools print what Kafka 2.8's print, and leave the same nodes behind, to the byte."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.tree import GetChildren, GetData
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from tests import kafka, zookeeper
from tests.integration.tools.runner import Target
from tests.integration.tools_ours.runner import comparable, java, placed, run_java, run_ours
from tests.integration.tools_ours.zookeeper_commands import AFTER_MOVE, BEFORE_MOVE, JAVA, MOVED, SEED
from tests.once import once

pytestmark = pytest.mark.java

COMMANDS = [*BEFORE_MOVE, *AFTER_MOVE]
R = TypeVar("R")
# Our tools have the options and the words of Kafka 4.2 where those of 2.8 have only been polished since.
REPLACEMENTS = [
    (re.compile(r"^OPTIONS .*", re.MULTILINE), "OPTIONS"),
    (re.compile(r"^(java\.lang|kafka\.admin)\.\w+Exception: ", re.MULTILINE), ""),
    (re.compile(r"\[I@\w+|(?<=replication factor: )\[\d+\]"), "REPLICAS"),
    (re.compile(r"duplicate entries: \[?(\d+)\]?"), r"duplicate entries: \1"),
    (re.compile(r"Topic name is invalid: '(\S+)' contains one or more characters"), r'Topic name "\1" is illegal, it contains a character'),
    (re.compile(r"^An entity name", re.MULTILINE), "an entity name"),
    (re.compile(r"required for SCRAM-SHA-256"), "required for SCRAM_SHA_256"),
]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[list[str]]]:
    """By command: what was printed and what the tree held afterwards, of Kafka's tool and of ours."""
    made = once(tmp_path_factory, worker_id, "zookeeper-tools.json", lambda: json.dumps(_run(tmp_path_factory.mktemp("zk"))))
    document: dict[str, list[list[str]]] = json.loads(made)
    return document


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_our_tool_prints_what_kafkas_prints_with_zookeeper(name: str, results: dict[str, list[list[str]]]) -> None:
    theirs, ours = results[name]
    assert ours[0] == theirs[0]


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_our_tool_leaves_the_nodes_that_kafkas_leaves(name: str, results: dict[str, list[list[str]]]) -> None:
    theirs, ours = results[name]
    assert ours[1:] == theirs[1:]


def _run(directory: Path) -> dict[str, list[list[str]]]:
    jars = kafka.available(kafka.zookeeper_tools)
    (directory / "data").mkdir()
    with zookeeper.running(directory / "data") as server, java(jars) as jvm:
        targets = {who: Target(f"{server.address}/{who}", 0, directory) for who in ("theirs", "ours")}
        nodes: Mapping[str, str | None] = dict.fromkeys(paths.PERSISTENT_PATHS, "") | SEED
        outputs: dict[str, list[list[str]]] = {}
        for commands, change in ((BEFORE_MOVE, nodes), (AFTER_MOVE, MOVED)):
            for target in targets.values():
                _on_tree(target.bootstrap, partial(_write, nodes=change))
            for command in commands:
                outcomes = []
                for who, target in targets.items():
                    arguments = placed(command, target, who)
                    text = run_java(jvm, JAVA[command.tool], arguments, target) if who == "theirs" else run_ours(arguments, target)
                    outcomes.append([_settled(comparable(text, command, target)), *_on_tree(target.bootstrap, _dump)])
                outputs[command.name] = outcomes
        return outputs


def _on_tree(address: str, work: Callable[[TreeClient], Awaitable[R]]) -> R:
    async def connected() -> R:
        tree = TreeClient(ZooKeeperTree(ZooKeeperOptions(parse(address))), lambda: None)
        await tree.connect()
        try:
            return await work(tree)
        finally:
            await tree.close()

    return asyncio.run(connected())


async def _write(tree: TreeClient, nodes: Mapping[str, str | None]) -> None:
    for path, data in nodes.items():
        if data is None:
            await tree.delete(path)
        elif data:
            await tree.set_or_create(path, data.encode())
        else:
            await tree.ensure(path)


async def _dump(tree: TreeClient) -> list[str]:
    """All nodes, read level by level."""
    lines: list[str] = []
    level = ["/"]
    while level:
        nodes = await tree.handle([GetData(path) for path in level])
        lines += [f"{path} v{node.value.stat.version} {_shown(path, node.value.data)}" for path, node in zip(level, nodes, strict=True)]
        children = await tree.handle([GetChildren(path) for path in level])
        level = [
            f"{path.rstrip('/')}/{name}" for path, names_below in zip(level, children, strict=True) for name in names_below.value.names
        ]
    return sorted(lines)


def _shown(path: str, data: bytes | None) -> str:
    text = "null" if data is None else data.decode()
    if path.startswith("/brokers/topics/random"):  # the replicas of these were chosen by chance
        return re.sub(r"\[[\d,]+\]", lambda match: f"{match[0].count(',') + 1} replicas", text)
    return _without_chance(text)


def _settled(text: str) -> str:
    """Without what must differ."""
    for pattern, word in REPLACEMENTS:
        text = pattern.sub(word, text)
    return _without_chance(text)


def _without_chance(text: str) -> str:
    return re.sub(r"(salt|stored_key|server_key)=[\w+/=]+", r"\1=SECRET", text)
