"""Our authorizer and the AclAuthorizer of Apache Kafka 3.9 on one ZooKeeper: what one writes, the other obeys."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from barnabas.broker.security.authorizer.acl_authorizer import AclAuthorizer
from barnabas.metadata.client import TreeClient
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from barnabas.network.event_loop import run
from barnabas.security.acl import AclBinding, AclBindingFilter, AclPermissionType, PatternType, ResourceType
from barnabas.security.operations import AclOperation
from tests import kafka, zookeeper
from tests.unit.broker.security.authorizer.acls import acl, session

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parent / "java" / "AclPeer.java"
TIMEOUT_S = 60
READ, WRITE, DENY = AclOperation.READ, AclOperation.WRITE, AclPermissionType.DENY
VARIED = [
    acl("orders", READ),
    acl("orders", AclOperation.DESCRIBE_CONFIGS, DENY, principal="User:CN=eve,OU=a:b", host="10.0.0.1"),
    acl("*", AclOperation.ALL, principal="User:*"),
    acl("ord", WRITE, pattern_type=PatternType.PREFIXED),
    acl("kafka-cluster", AclOperation.CLUSTER_ACTION, resource_type=ResourceType.CLUSTER),
    acl("txn", WRITE, resource_type=ResourceType.TRANSACTIONAL_ID, pattern_type=PatternType.PREFIXED),
    acl('naïve "quoted" group', READ, resource_type=ResourceType.GROUP),
    acl("token", AclOperation.DESCRIBE, resource_type=ResourceType.DELEGATION_TOKEN),
    acl("User:carol", AclOperation.CREATE_TOKENS, resource_type=ResourceType.USER),
]


class Peer:
    """Kafka's authorizer in a JVM."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, *words: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def create(self, binding: AclBinding) -> None:
        pattern, entry = binding.pattern, binding.entry
        resource = (pattern.resource_type.name, pattern.name, pattern.pattern_type.name)
        assert self.ask("create", *resource, entry.principal, entry.host, entry.operation.name, entry.permission_type.name) == "done"

    def acls(self) -> set[str]:
        return set(self.ask("list").split(";")) - {""}


@pytest.fixture
def address(tmp_path: Path) -> Generator[str, None, None]:
    with zookeeper.running(tmp_path / "zookeeper") as server:
        yield server.address


@pytest.fixture
def peer(address: str) -> Generator[Peer, None, None]:
    command = kafka.source_command(kafka.available(kafka.zookeeper_mode), PROGRAM, address)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield Peer(process)
        finally:
            process.kill()


def test_acls_of_either_are_obeyed_by_the_other(address: str, peer: Peer) -> None:
    run(story(address, peer))


async def story(address: str, peer: Peer) -> None:
    tree = TreeClient(ZooKeeperTree(ZooKeeperOptions(parse(address))), lambda: None)
    await tree.connect()
    peer.create(acl("before", READ))
    ours = AclAuthorizer(tree, lambda: 0)
    ours.configure({})
    await ours.start()
    assert listed(ours) == peer.acls() == {str(acl("before", READ))}
    try:
        await each_sees_the_others(ours, peer)
        await nodes_are_the_same(ours, peer, tree)
        await neither_loses_what_the_other_adds(ours, peer)
        await deletions_are_seen(ours, peer, tree)
    finally:
        await ours.close()
        await tree.close()


async def each_sees_the_others(ours: AclAuthorizer, peer: Peer) -> None:
    assert set(await ours.create_acls(session(), VARIED[::2])) == {None}
    for binding in VARIED[1::2]:
        peer.create(binding)
    everything = {str(binding) for binding in [acl("before", READ), *VARIED]}
    await until(lambda: listed(ours) == everything and peer.acls() == everything)


async def nodes_are_the_same(ours: AclAuthorizer, peer: Peer, tree: TreeClient) -> None:
    await ours.create_acls(session(), [acl("same-1", READ), acl("same-1", READ, pattern_type=PatternType.PREFIXED)])
    peer.create(acl("same-2", READ))
    peer.create(acl("same-2", READ, pattern_type=PatternType.PREFIXED))
    for root in ("/kafka-acl", "/kafka-acl-extended/prefixed"):
        first, second = [await tree.get(f"{root}/Topic/same-{number}") for number in (1, 2)]
        assert first is not None and second is not None
        assert first.data == second.data
    for root in ("/kafka-acl-changes", "/kafka-acl-extended-changes"):
        changes = await tree.children(root)
        assert changes is not None
        first, second = [await tree.get(f"{root}/{name}") for name in changes.names[-2:]]
        assert first is not None and first.data is not None and second is not None
        assert first.data.replace(b"same-1", b"same-2") == second.data


async def neither_loses_what_the_other_adds(ours: AclAuthorizer, peer: Peer) -> None:
    """Both know an older version of the node whenever they write."""
    added = [acl("contended", READ, principal=f"User:u{number}") for number in range(20)]
    for first, second in zip(added[::2], added[1::2], strict=True):
        await ours.create_acls(session(), [first])
        await asyncio.get_running_loop().run_in_executor(None, peer.create, second)
    expected = {str(binding) for binding in added}
    await until(lambda: expected <= listed(ours) and expected <= peer.acls())


async def deletions_are_seen(ours: AclAuthorizer, peer: Peer, tree: TreeClient) -> None:
    assert peer.ask("delete", "TOPIC", "contended", "LITERAL") == "20"
    await until(lambda: not any("contended" in text for text in listed(ours)))
    deletions = await ours.delete_acls(session(), [AclBindingFilter()])
    assert len(deletions[0].deleted) == len(VARIED) + 5
    await until(lambda: peer.acls() == set())
    assert await tree.get("/kafka-acl/Topic/orders") is None


def listed(authorizer: AclAuthorizer) -> set[str]:
    return {str(binding) for binding in authorizer.acls(AclBindingFilter())}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.02)
