"""What our tools write into ZooKeeper, a cluster of our brokers does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas import cli
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import NoAuth, NoNode, TreeError
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from tests import zookeeper
from tests.cluster import Cluster

DEADLINE_S = 60
PAUSE_S = 0.2


class Place(NamedTuple):
    zookeeper: str
    bootstrap: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("cluster")
    (directory / "zookeeper").mkdir()
    with zookeeper.running(directory / "zookeeper") as server:
        address = f"{server.address}/kafka"
        cluster = Cluster(directory, address, brokers=2)
        try:
            cluster.start()
            yield Place(address, cluster.bootstrap)
        finally:
            cluster.end()


def test_who_has_a_password_for_zookeeper_makes_nodes_that_others_may_only_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"{place.zookeeper}-closed"
    create = ["topics", "--zookeeper", address, "--create", "--replica-assignment", "1", "--topic"]

    async def tried() -> tuple[bool, type[Exception] | None]:
        tree = TreeClient(ZooKeeperTree(ZooKeeperOptions(parse(address))), lambda: None)
        await tree.connect()
        try:
            await tree.set_data("/brokers/topics/closed", b"{}")
        except TreeError as error:
            return await tree.exists("/brokers/topics/closed") is not None, type(error)
        finally:
            await tree.close()
        return True, None

    assert asyncio.run(tried()) == (False, NoNode)  # and the path is there now
    monkeypatch.setenv("BARNABAS_ZOOKEEPER_DIGEST", "admin:secret")
    assert cli.main([*create, "closed"]) == 0
    assert asyncio.run(tried()) == (True, NoAuth)
    monkeypatch.delenv("BARNABAS_ZOOKEEPER_DIGEST")
    assert cli.main([*create, "open"]) == 1


def described(place: Place, topic: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the brokers know of it; nothing if they know it not."""
    capsys.readouterr()
    assert cli.main(["topics", "--bootstrap-server", place.bootstrap, "--describe", "--topic", topic, "--if-exists", "--json"]) == 0
    document: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return document[0] if document else {}


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(PAUSE_S)


def replicas(topic: dict[str, Any]) -> list[list[int]]:
    return [partition["replicas"] for partition in topic.get("partitions", ())]


def test_a_topic_is_made_changed_moved_and_deleted_through_zookeeper(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_zookeeper = ["--zookeeper", place.zookeeper]

    def known() -> dict[str, Any]:
        return described(place, "made", capsys)

    assert cli.main(["topics", *with_zookeeper, "--create", "--topic", "made", "--replica-assignment", "1:2,2:1"]) == 0
    until(lambda: [partition["leader"] for partition in known().get("partitions", ())] == [1, 2])

    assert cli.main(["topics", *with_zookeeper, "--alter", "--topic", "made", "--partitions", "3"]) == 0
    until(lambda: len(replicas(known())) == 3)

    assert cli.main(["configs", *with_zookeeper, "--alter", "--topic", "made", "--add-config", "retention.ms=123456"]) == 0
    until(lambda: known()["configs"].get("retention.ms") == "123456")

    assert cli.main(["topics", *with_zookeeper, "--delete", "--topic", "made"]) == 0
    until(lambda: known() == {})


def test_the_metadata_shell_shows_the_tree_of_the_cluster(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["metadata-shell", "--zookeeper", place.zookeeper, "ls", "/brokers/ids"]) == 0
    assert capsys.readouterr().out.split() == ["1", "2"]
    assert cli.main(["metadata-shell", "--zookeeper", place.zookeeper, "cat", "/controller"]) == 0
    assert json.loads(capsys.readouterr().out)["brokerid"] in (1, 2)


@pytest.mark.parametrize(
    "command",
    [
        "topics --create --topic t --replica-assignment 1",
        "configs --alter --client c --add-config producer_byte_rate=1",
        "preferred-replica-election",
        "metadata-shell ls /",
    ],
)
def test_a_mistyped_path_is_told_and_not_made(command: str, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    tool, *words = command.split()
    for _ in range(2):
        assert cli.main([tool, "--zookeeper", f"{place.zookeeper}/mistyped", *words]) == 1
        printed = capsys.readouterr()
        assert "ZooKeeper has no such path; correct it" in printed.out + printed.err


def test_partitions_are_moved_and_led_as_a_plan_in_zookeeper_says(place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_zookeeper = ["--zookeeper", place.zookeeper]
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"moved","partition":0,"replicas":[2,1]}]}')
    move = ["reassign-partitions", *with_zookeeper, "--reassignment-json-file", str(plan)]
    assert cli.main(["topics", *with_zookeeper, "--create", "--topic", "moved", "--replica-assignment", "1"]) == 0
    until(lambda: replicas(described(place, "moved", capsys)) == [[1]])

    def is_complete() -> bool:
        capsys.readouterr()
        assert cli.main([*move, "--verify"]) == 0
        return "Reassignment of partition moved-0 is complete." in capsys.readouterr().out

    assert cli.main([*move, "--execute", "--throttle", "1000000"]) == 0
    until(is_complete)
    assert replicas(described(place, "moved", capsys)) == [[2, 1]]

    assert cli.main(["preferred-replica-election", *with_zookeeper]) == 0
    until(lambda: described(place, "moved", capsys)["partitions"][0]["leader"] == 2)
