"""The life cycle of a broker in this process: its start, its shutdown, and what it refuses to serve."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.alterations.alter import Operation, OpType
from barnabas.broker.config.alterations.config_alterations import Alteration
from barnabas.broker.environment import Environment
from barnabas.broker.server import server as server_module
from barnabas.broker.server.server import BrokerServer
from barnabas.broker.server.shared_store import SharedStore
from barnabas.broker.topics.features import SUPPORTED
from barnabas.config_def import ConfigResourceType, InvalidConfig
from barnabas.errors import InvalidMetaProperties, KafkaStorageError
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.embedded import STORE_NAME
from barnabas.metadata.local import LocalTree
from barnabas.metadata.tree import CreateMode
from barnabas.metadata.znodes.cluster import (
    BrokerRegistration,
    ControllerZNode,
    FeatureZNode,
    decode_broker,
    encode_controller,
    encode_features,
)
from barnabas.network.event_loop import run
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.security.new_user import NewUser
from barnabas.storage.directory.checkpoints import REPLICATION_OFFSET_CHECKPOINT
from benchmarks.generator import fetch_frame
from benchmarks.wire import Client
from tests.logged import lines_of

T = TypeVar("T")


def properties(data: Path, **settings: str) -> dict[str, str]:
    return {"listeners": "PLAINTEXT://127.0.0.1:0", "broker.id": "5", "log.dirs": str(data), **settings}


def serving(settings: dict[str, str], use: Callable[[BrokerServer], Awaitable[T]]) -> T:
    """Starts a broker, does something to it, stops it cleanly."""

    async def life() -> T:
        server = BrokerServer(BrokerConfig.from_properties(settings))
        await server.start()
        try:
            return await asyncio.wait_for(use(server), 30)
        finally:
            await server.shutdown(1000)

    return run(life())


async def ask(server: BrokerServer, question: Callable[[Client], T]) -> T:
    """From a thread, as the client is a blocking one."""

    def answered() -> T:
        with Client("127.0.0.1", server.endpoints[0].port) as client:
            return question(client)

    return await asyncio.to_thread(answered)


async def create(server: BrokerServer, *names: str) -> None:
    await ask(server, lambda client: client.create_topics(names))


async def topic_names(server: BrokerServer) -> list[str]:
    return [topic.name or "" for topic in (await ask(server, lambda client: client.metadata(None))).topics]


def test_a_broker_knows_itself_when_it_lets_clients_in(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        answer = await ask(server, lambda client: client.metadata(None))
        assert [(broker.node_id, broker.port) for broker in answer.brokers] == [(5, server.endpoints[0].port)]
        assert answer.controller_id == 5

    serving(properties(tmp_path), use)


def test_topics_are_there_again_after_a_restart(tmp_path: Path) -> None:
    serving(properties(tmp_path), lambda server: create(server, "kept"))
    assert serving(properties(tmp_path), topic_names) == ["kept"]


def test_a_clean_end_is_noted_beside_the_logs(tmp_path: Path) -> None:
    serving(properties(tmp_path), lambda server: create(server, "kept"))
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_the_cluster_keeps_its_id(tmp_path: Path) -> None:
    async def cluster_id(server: BrokerServer) -> str:
        return server.broker.cluster_id

    assert serving(properties(tmp_path), cluster_id) == serving(properties(tmp_path), cluster_id)


def test_a_directory_with_logs_and_no_metadata_is_refused_and_adopt_is_named(tmp_path: Path) -> None:
    serving(properties(tmp_path), lambda server: create(server, "orphan"))
    for file in tmp_path.glob(f"{STORE_NAME}*"):
        file.unlink()
    with pytest.raises(InvalidMetaProperties, match="barnabas adopt"):
        serving(properties(tmp_path), topic_names)


def test_the_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    serving(properties(tmp_path), lambda server: create(server, "theirs"))
    with pytest.raises(InvalidMetaProperties, match=r"stored broker\.id 5"):
        serving(properties(tmp_path) | {"broker.id": "6"}, topic_names)


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        second = BrokerServer(BrokerConfig.from_properties(properties(tmp_path)))
        with pytest.raises(KafkaStorageError, match="is using this directory"):
            await second.start()

    serving(properties(tmp_path), use)


def test_a_port_in_use_is_refused_and_the_directory_is_free_again(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        taken = {"listeners": f"PLAINTEXT://127.0.0.1:{server.endpoints[0].port}"}
        second = BrokerServer(BrokerConfig.from_properties(properties(tmp_path / "second") | taken))
        with pytest.raises(OSError, match="stop what listens there"):
            await second.start()
        third = BrokerServer(BrokerConfig.from_properties(properties(tmp_path / "second")))
        await third.start()
        await third.shutdown(0)

    serving(properties(tmp_path / "first"), use)


def test_the_log_of_a_topic_that_the_tree_does_not_know_is_set_aside(tmp_path: Path) -> None:
    async def forget(server: BrokerServer) -> None:
        await create(server, "forgotten", "kept")
        await server.broker.controller.shutdown()  # or it would hear of it and delete the log properly
        await server.broker.tree.delete_recursive(paths.topic("forgotten"))

    serving(properties(tmp_path), forget)
    assert serving(properties(tmp_path), topic_names) == ["kept"]
    assert [path.name.rpartition("-")[2] for path in tmp_path.glob("forgotten-0*")] == ["stray"]


def test_a_start_that_fails_because_the_port_is_taken_renames_nothing(tmp_path: Path) -> None:
    """Nor does it delete what is marked for it: the directory may be the wrong one."""

    async def forget(server: BrokerServer) -> None:
        await create(server, "forgotten", "kept")
        await server.broker.controller.shutdown()
        await server.broker.tree.delete_recursive(paths.topic("forgotten"))

    serving(properties(tmp_path), forget)
    (tmp_path / "old-0.0123-delete").mkdir()
    before = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = properties(tmp_path) | {
            "listeners": f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}",
            "log.segment.delete.delay.ms": "0",
        }
        with pytest.raises(OSError, match="stop what listens there"):
            serving(settings, topic_names)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == before


def test_a_broker_of_a_cluster_renames_nothing_before_the_controller_has_spoken(tmp_path: Path) -> None:
    async def life() -> list[list[str]]:
        tree = LocalTree(lambda: 0)
        config = BrokerConfig.from_properties(properties(tmp_path) | {"controlled.shutdown.enable": "false"})
        server = BrokerServer(config, environment=sharing(tree))
        await server.start()
        await create(server, "forgotten", "kept")
        await server.broker.controller.shutdown()
        await server.broker.tree.delete_recursive(paths.topic("forgotten"))
        await server.shutdown(0)
        silent = TreeClient(tree, lambda: None)  # a controller that says nothing
        await silent.connect()
        await silent.create(paths.CONTROLLER, encode_controller(ControllerZNode(9, 0)), CreateMode.EPHEMERAL)
        again = BrokerServer(config, environment=sharing(tree))
        starting = asyncio.ensure_future(again.start())
        await until(lambda: is_there(silent, paths.broker_id(5)))
        contents = [logs(tmp_path)]
        await silent.close()
        await starting
        await until(lambda: no_longer_there(tmp_path / "forgotten-0"))
        contents.append(logs(tmp_path))
        await again.shutdown(0)
        return contents

    assert run(life()) == [["forgotten-0", "kept-0"], ["forgotten-0-stray", "kept-0"]]


def sharing(tree: LocalTree) -> Environment:
    async def view(_: str) -> SharedStore:
        return SharedStore(tree)

    return Environment(tree=view, is_shared=True)


def logs(data: Path) -> list[str]:
    """Without what makes the name of a stray log unique."""
    return sorted(re.sub(r"\.\w+-stray", "-stray", path.name) for path in data.iterdir() if path.is_dir())


async def is_there(tree: TreeClient, path: str) -> bool:
    return await tree.exists(path) is not None


async def no_longer_there(path: Path) -> bool:
    return not path.exists()


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await is_so():
            await asyncio.sleep(0.01)


def test_a_broker_without_id_is_given_one_above_the_reserved_ones_and_keeps_it(tmp_path: Path) -> None:
    async def broker_id(server: BrokerServer) -> int:
        return server.broker.broker_id

    settings = properties(tmp_path)
    del settings["broker.id"]
    assert [serving(settings, broker_id) for _ in range(2)] == [1001, 1001]


def test_a_dynamic_limit_of_connections_counts_at_once_and_after_a_restart(tmp_path: Path) -> None:
    async def limit(server: BrokerServer) -> int:
        return server.sockets.quotas.max_connections

    async def set_limit(server: BrokerServer) -> int:
        await server.broker.configs._admin.change_broker_config(None, {"max.connections": "77"})
        await server.broker.configs._changes.process()
        return await limit(server)

    assert [serving(properties(tmp_path), set_limit), serving(properties(tmp_path), limit)] == [77, 77]


def test_a_fetch_that_waits_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async def life() -> float:
        server = BrokerServer(BrokerConfig.from_properties(properties(tmp_path)))
        await server.start()
        await create(server, "quiet")
        client = Client("127.0.0.1", server.endpoints[0].port)
        client.socket.sendall(fetch_frame("quiet", 0, 1 << 20, max_wait_ms=60_000))
        while not server.broker.replica_manager.fetch_purgatory.num_delayed:
            await asyncio.sleep(0)
        began = asyncio.get_running_loop().time()
        await server.shutdown(30_000)
        client.socket.close()
        return asyncio.get_running_loop().time() - began

    assert run(life()) < 30


def test_limits_of_hosts_count_for_their_addresses(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        assert server.sockets.config.max_connections_per_ip_overrides["127.0.0.1"] == 3

    serving(properties(tmp_path) | {"max.connections.per.ip.overrides": "localhost:3"}, use)


def test_a_broker_registers_the_levels_of_features_it_supports(tmp_path: Path) -> None:
    async def registered(server: BrokerServer) -> BrokerRegistration:
        node = await server.broker.tree.get(paths.broker_id(5))
        assert node is not None
        return decode_broker(5, node.data)

    assert serving(properties(tmp_path), registered).features == {
        name: {"min_version": levels.lowest, "max_version": levels.highest} for name, levels in SUPPORTED.items()
    }


def test_a_cluster_that_an_older_release_made_gets_the_features_it_did_not_know(tmp_path: Path) -> None:
    async def made_by_an_older_release(server: BrokerServer) -> None:
        await server.broker.tree.set_data(paths.BARNABAS_FEATURES, encode_features(FeatureZNode({"group.version": 1})))

    async def finalized(server: BrokerServer) -> dict[str, int]:
        return dict(server.broker.features.finalized)

    serving(properties(tmp_path), made_by_an_older_release)
    for _ in range(2):
        assert serving(properties(tmp_path), finalized) == {"group.version": 1, "transaction.version": 2}


def test_a_start_that_fails_after_loading_leaves_the_high_watermarks_as_they_are(tmp_path: Path) -> None:
    async def write(server: BrokerServer) -> None:
        await create(server, "orders")
        records = Records(build([(0, None, b"%d" % number, ()) for number in range(5)]))
        data = TopicProduceData("orders", partition_data=[PartitionProduceData(0, records)])
        await ask(server, lambda client: client.ask(ProduceRequest(None, -1, 10_000, [data]), 9))

    serving(properties(tmp_path), write)
    checkpoint = tmp_path / REPLICATION_OFFSET_CHECKPOINT
    before = checkpoint.read_text()
    assert "orders 0 5\n" in before
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listener = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match="in use"):
            serving(properties(tmp_path, listeners=listener), write)
    assert checkpoint.read_text() == before


def test_a_new_user_exists_before_the_first_connection_is_served(tmp_path: Path) -> None:
    user = NewUser.of_password("alice", "secret")

    async def life() -> None:
        server = BrokerServer(BrokerConfig.from_properties(properties(tmp_path)), new_users=[user])
        await server.start()
        try:
            assert server.broker.credentials.user("SCRAM-SHA-512", "alice") == user.credential
        finally:
            await server.shutdown(1000)

    run(life())


def test_a_start_that_takes_too_long_ends_with_the_setting_that_limits_it(tmp_path: Path) -> None:
    async def life() -> None:
        server = BrokerServer(BrokerConfig.from_properties(properties(tmp_path, **{"server.max.startup.time.ms": "0"})))
        with pytest.raises(InvalidConfig, match=r"^The broker did not start within server\.max\.startup\.time\.ms=0: raise it"):
            await server.start()

    run(life())
    serving(properties(tmp_path), lambda server: asyncio.sleep(0))  # the directory is free again


def test_a_dynamic_number_of_recovery_threads_counts_at_once(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        threads = "num.recovery.threads.per.data.dir"
        await server.broker.configs.alter([Alteration(ConfigResourceType.BROKER, "5", (Operation(threads, OpType.SET, "3"),))], False)
        assert server.broker.replica_manager.log_manager.config.num_recovery_threads_per_data_dir == 3

    serving(properties(tmp_path), use)


def test_a_broker_warns_of_settings_without_effect_when_it_starts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    serving(properties(tmp_path, **{"num.io.threads": "4"}), lambda server: asyncio.sleep(0))
    warnings = [line for line in lines_of(caplog, server_module, logging.WARNING) if "has no effect here" in line]
    assert warnings == ["The setting num.io.threads has no effect here, because a broker is one event loop, which has no pools of threads"]
