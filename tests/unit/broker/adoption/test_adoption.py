"""The decisions of `barnabas adopt` about log directories of Apache Kafka, and the metadata store that it writes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.adoption.adoption import Adoption, plan, require_complete, write_store
from barnabas.broker.adoption.inventory import KafkaInventory, NotAdoptable, take_inventory
from barnabas.metadata import paths
from barnabas.metadata.embedded import open_embedded
from barnabas.metadata.tree import GetChildren, GetData, NodeData
from barnabas.metadata.znodes import cluster, configs, topics
from barnabas.properties import format_properties
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.files import Files
from barnabas.uuid import Uuid
from tests import golden

KRAFT = golden.LOGS / "kafka-4.2.0" / "first"
ZOOKEEPER = golden.LOGS / "kafka-2.8.2" / "first"


@pytest.fixture
def kraft(tmp_path: Path) -> Path:
    return Path(shutil.copytree(KRAFT, tmp_path / "kraft"))


@pytest.fixture
def zookeeper(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ZOOKEEPER, tmp_path / "zookeeper"))


@contextmanager
def locked(*directories: Path) -> Iterator[list[LogDir]]:
    log_dirs = [LogDir(Files(), str(directory)) for directory in directories]
    try:
        yield log_dirs
    finally:
        for log_dir in log_dirs:
            log_dir.release()


def inventory_of(*directories: Path) -> KafkaInventory:
    with locked(*directories) as log_dirs:
        return take_inventory(Files(), log_dirs, str(directories[0]))


def plan_of(*directories: Path, broker_retention: bool = False) -> Adoption:
    return plan(inventory_of(*directories), Random(1), broker_retention=broker_retention)


def settings_of(adoption: Adoption) -> dict[str, dict[str, str]]:
    return {topic.name: dict(topic.configs) for topic in adoption.topics}


def write(adoption: Adoption, path: Path) -> list[str]:
    return asyncio.run(write_store(adoption, str(path), lambda: 1_700_000_000_000))


def read(store: Path, path: str) -> NodeData:
    async def reading() -> NodeData:
        tree = open_embedded(str(store), lambda: 0)
        try:
            session = await tree.open_session(lambda event: None)
            (response,) = await session.handle([GetData(path)])
            return response.value
        finally:
            await tree.close()

    return asyncio.run(reading())


def children(store: Path, path: str) -> list[str]:
    async def reading() -> list[str]:
        tree = open_embedded(str(store), lambda: 0)
        try:
            session = await tree.open_session(lambda event: None)
            (response,) = await session.handle([GetChildren(path)])
            return response.value.names
        finally:
            await tree.close()

    return asyncio.run(reading())


def topic_dirs(directory: Path) -> set[str]:
    return {each.name.rpartition("-")[0] for each in directory.iterdir() if each.is_dir() and each.name != "__cluster_metadata-0"}


def files_of(directory: Path) -> dict[str, bytes]:
    kept = (each for each in directory.rglob("*") if each.is_file() and each.name != ".lock")
    return {str(each.relative_to(directory)): each.read_bytes() for each in kept}


def test_every_topic_of_a_kraft_directory_is_found(kraft: Path) -> None:
    assert {topic.name for topic in plan_of(kraft).topics} == topic_dirs(kraft)


def test_internal_topics_are_adopted_too(kraft: Path) -> None:
    assert {"__consumer_offsets", "__transaction_state"} <= {topic.name for topic in plan_of(kraft).topics}


def test_the_metadata_log_is_not_taken_for_a_topic(kraft: Path) -> None:
    assert "__cluster_metadata" not in {topic.name for topic in plan_of(kraft).topics}


def test_cluster_and_node_are_those_of_meta_properties(kraft: Path) -> None:
    adoption = plan_of(kraft)
    assert (adoption.cluster_id, adoption.node_id) == ("MkU3OEVBNTcwNTJENDM2Qg", 1)


def test_topic_ids_are_those_of_partition_metadata(kraft: Path) -> None:
    said = {line.split(": ")[1] for line in (kraft / "g-none-0" / "partition.metadata").read_text().splitlines() if "topic_id" in line}
    assert {str(topic.topic_id) for topic in plan_of(kraft).topics if topic.name == "g-none"} == said


def test_settings_of_topics_come_from_the_metadata_log(kraft: Path) -> None:
    settings = settings_of(plan_of(kraft, broker_retention=True))
    assert settings["g-multi"] == {"segment.ms": "10000", "index.interval.bytes": "300"}
    assert settings["g-none"] == {}


def test_settings_of_brokers_come_from_the_metadata_log(kraft: Path) -> None:
    assert plan_of(kraft).broker_configs == {"<default>": {"min.insync.replicas": "1"}}


def test_leader_epochs_are_at_least_those_that_kraft_had_given_out(kraft: Path) -> None:
    assert {epoch for topic in plan_of(kraft).topics for epoch in topic.leader_epochs.values()} == {1}


def test_a_leader_epoch_in_the_log_counts_where_it_is_the_highest(kraft: Path) -> None:
    (kraft / "g-none-0" / "leader-epoch-checkpoint").write_text("0\n1\n7 0\n")
    assert {topic.name: topic.leader_epochs[0] for topic in plan_of(kraft).topics}["g-none"] == 7


def test_producer_ids_go_on_above_those_that_kraft_had_given_out(kraft: Path) -> None:
    assert plan_of(kraft).next_producer_id == 1000


def test_without_a_metadata_log_producer_ids_go_on_above_those_in_the_logs(kraft: Path) -> None:
    shutil.rmtree(kraft / "__cluster_metadata-0")
    assert 0 < plan_of(kraft).next_producer_id < 1000


def test_after_a_crash_producer_ids_are_found_in_the_batches(kraft: Path) -> None:
    shutil.rmtree(kraft / "__cluster_metadata-0")
    with_snapshots = plan_of(kraft).next_producer_id
    (kraft / ".kafka_cleanshutdown").unlink()
    for snapshot in kraft.rglob("*.snapshot"):
        snapshot.unlink()
    assert plan_of(kraft).next_producer_id >= with_snapshots


def test_topics_without_retention_keep_their_data_until_told_otherwise(kraft: Path) -> None:
    settings = settings_of(plan_of(kraft))
    assert settings["g-none"]["retention.ms"] == "-1"
    assert "retention.ms" not in settings["g-compact"]


def test_a_zookeeper_directory_gives_topics_new_ids(zookeeper: Path) -> None:
    adoption = plan_of(zookeeper)
    assert all(topic.has_new_id for topic in adoption.topics)
    assert len({topic.topic_id for topic in adoption.topics}) == len(adoption.topics) == 16


def test_a_compacted_topic_stays_compacted_though_nothing_says_so_but_the_cleaner(zookeeper: Path) -> None:
    assert settings_of(plan_of(zookeeper))["m082-compact"] == {"cleanup.policy": "compact"}


def test_that_settings_are_not_in_a_zookeeper_directory_is_said(zookeeper: Path) -> None:
    assert any("kafka-configs" in remark for remark in plan_of(zookeeper).remarks)


def test_two_directories_of_one_node_are_adopted_together(kraft: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    shutil.copy(kraft / "meta.properties", second)
    shutil.move(kraft / "g-gzip-0", second / "g-gzip-0")
    assert {topic.name for topic in plan_of(kraft, second).topics} == topic_dirs(kraft) | {"g-gzip"}


def test_directories_of_two_nodes_are_refused(kraft: Path, zookeeper: Path) -> None:
    with pytest.raises(NotAdoptable, match="one node at a time"):
        inventory_of(kraft, zookeeper)


def test_a_directory_without_meta_properties_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAdoptable, match="no log directory of Apache Kafka"):
        inventory_of(tmp_path)


def test_a_partition_that_is_there_twice_is_refused(kraft: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    shutil.copy(kraft / "meta.properties", second)
    shutil.copytree(kraft / "g-gzip-0", second / "g-gzip-0")
    with pytest.raises(NotAdoptable, match="g-gzip-0 is in"):
        inventory_of(kraft, second)


def test_a_gap_in_the_partitions_is_refused_with_the_partition_that_is_missing(kraft: Path) -> None:
    (kraft / "g-none-0").rename(kraft / "g-none-2")
    with pytest.raises(NotAdoptable, match=r"g-none-0, g-none-1; name all log\.dirs"):
        require_complete(plan_of(kraft))


def test_a_partition_that_only_the_metadata_log_knows_is_missing(kraft: Path) -> None:
    inventory = inventory_of(kraft)
    assert inventory.kraft is not None
    known = inventory.kraft.topic_named("g-none")
    assert known is not None
    known.partitions[1] = known.partitions[0]
    assert [str(each) for each in plan(inventory, Random(1)).missing] == ["g-none-1"]


def test_a_topic_that_this_node_held_and_that_is_not_here_is_missing(kraft: Path) -> None:
    shutil.rmtree(kraft / "g-gzip-0")
    assert [str(each) for each in plan_of(kraft).missing] == ["g-gzip-0"]


def test_a_topic_of_other_nodes_only_is_left_to_them(kraft: Path) -> None:
    shutil.rmtree(kraft / "g-gzip-0")
    inventory = inventory_of(kraft)
    assert inventory.kraft is not None
    known = inventory.kraft.topic_named("g-gzip")
    assert known is not None
    known.partitions[0].replicas = (2, 3)
    adoption = plan(inventory, Random(1))
    assert list(adoption.missing) == []
    assert any("other nodes held replicas of g-gzip" in remark for remark in adoption.remarks)


def test_a_missing_partition_begins_with_no_state_so_that_the_controller_elects_its_leader(kraft: Path) -> None:
    shutil.rmtree(kraft / "g-gzip-0")
    write(plan_of(kraft), kraft / "store.db")
    assert children(kraft / "store.db", paths.topic_partitions("g-gzip")) == []


def test_directories_of_a_deleted_topic_are_left_out(kraft: Path) -> None:
    inventory = inventory_of(kraft)
    assert inventory.kraft is not None
    known = inventory.kraft.topic_named("g-none")
    assert known is not None
    del inventory.kraft.topics[known.topic_id]
    adoption = plan(inventory, Random(1))
    assert "g-none" not in {topic.name for topic in adoption.topics}
    assert any("g-none" in remark and "left out" in remark for remark in adoption.remarks)


def test_directories_of_two_topics_of_one_name_are_refused(kraft: Path) -> None:
    shutil.copytree(kraft / "g-none-0", kraft / "g-none-1")
    (kraft / "g-none-1" / "partition.metadata").write_text(f"version: 0\ntopic_id: {Uuid(bytes(range(16)))}")
    with pytest.raises(NotAdoptable, match="different topics of that name"):
        plan_of(kraft)


def test_a_partition_marked_for_deletion_is_passed_over(kraft: Path) -> None:
    (kraft / "g-none-0").rename(kraft / f"g-none-0.{'a' * 32}-delete")
    inventory = inventory_of(kraft)
    assert [Path(path).name for path in inventory.passed_over] == [f"g-none-0.{'a' * 32}-delete"]
    assert "g-none" not in {partition.topic for partition in inventory.partitions}


def test_what_stays_behind_is_said(kraft: Path) -> None:
    inventory = inventory_of(kraft)
    assert inventory.kraft is not None
    inventory.kraft.left_behind["access control entries"] = 3
    assert "not taken over: 3 access control entries" in plan(inventory, Random(1)).remarks


def test_a_version_0_directory_without_a_cluster_gets_a_new_id(zookeeper: Path) -> None:
    (zookeeper / "meta.properties").write_text(format_properties({"version": "0", "broker.id": "3"}, 0))
    adoption = plan_of(zookeeper)
    assert adoption.node_id == 3
    assert Uuid.from_string(adoption.cluster_id)


def test_a_topic_in_the_tree_has_its_partitions_its_id_and_this_node(kraft: Path) -> None:
    adoption = plan_of(kraft)
    write(adoption, kraft / "store.db")
    written = topics.decode_topic("g-none", read(kraft / "store.db", paths.topic("g-none")).data)
    assert dict(written.partitions) == {0: topics.ReplicaAssignment((1,))}
    assert written.topic_id == next(topic.topic_id for topic in adoption.topics if topic.name == "g-none")


def test_a_partition_in_the_tree_is_led_by_this_node_at_its_old_epoch(kraft: Path) -> None:
    write(plan_of(kraft), kraft / "store.db")
    state = topics.decode_partition_state("g-none", 0, read(kraft / "store.db", paths.topic_partition_state("g-none", 0)).data)
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1,), 1)


def test_settings_are_in_the_tree(kraft: Path) -> None:
    write(plan_of(kraft), kraft / "store.db")
    found = configs.decode_config("topics/g-recompress", read(kraft / "store.db", paths.config_entity("topics/g-recompress")).data)
    assert found == {"compression.type": "gzip", "retention.ms": "-1"}


def test_the_next_block_of_producer_ids_begins_above_those_in_use(kraft: Path) -> None:
    write(plan_of(kraft), kraft / "store.db")
    assert cluster.decode_producer_id_block(read(kraft / "store.db", paths.PRODUCER_ID_BLOCK).data).last == 999


def test_adopting_again_changes_nothing(kraft: Path) -> None:
    assert len(write(plan_of(kraft), kraft / "store.db")) == 16
    before = read(kraft / "store.db", paths.topic("g-none"))
    assert write(plan_of(kraft), kraft / "store.db") == []
    assert read(kraft / "store.db", paths.topic("g-none")) == before


def test_adopting_again_keeps_the_new_ids_of_topics_that_had_none(zookeeper: Path) -> None:
    write(plan_of(zookeeper), zookeeper / "store.db")
    before = read(zookeeper / "store.db", paths.topic("m28-none"))
    assert write(plan(inventory_of(zookeeper), Random(2)), zookeeper / "store.db") == []
    assert read(zookeeper / "store.db", paths.topic("m28-none")) == before


def test_adopting_again_adds_a_topic_that_was_not_there(kraft: Path, tmp_path: Path) -> None:
    shutil.rmtree(kraft / "__cluster_metadata-0")
    shutil.move(kraft / "g-gzip-0", tmp_path / "g-gzip-0")
    write(plan_of(kraft), kraft / "store.db")
    shutil.move(tmp_path / "g-gzip-0", kraft / "g-gzip-0")
    assert write(plan_of(kraft), kraft / "store.db") == ["g-gzip"]


def test_a_store_of_another_cluster_is_refused(kraft: Path, zookeeper: Path) -> None:
    write(plan_of(kraft), kraft / "store.db")
    with pytest.raises(NotAdoptable, match="is of cluster MkU3OEVBNTcwNTJENDM2Qg"):
        write(plan_of(zookeeper), kraft / "store.db")


def test_a_store_that_knows_another_topic_of_the_name_is_refused(kraft: Path) -> None:
    write(plan_of(kraft), kraft / "store.db")
    shutil.rmtree(kraft / "__cluster_metadata-0")
    (kraft / "g-none-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {Uuid(bytes(range(16)))}")
    with pytest.raises(NotAdoptable, match="has another topic g-none"):
        write(plan_of(kraft), kraft / "store.db")


def test_the_id_of_the_cluster_is_written_last(kraft: Path, zookeeper: Path) -> None:
    write(plan_of(kraft), kraft / "store.db")
    assert read(kraft / "store.db", paths.CLUSTER_ID).stat.czxid > max(
        read(kraft / "store.db", paths.topic(name)).stat.czxid for name in children(kraft / "store.db", paths.TOPICS)
    )


def test_no_file_of_the_directory_is_changed(kraft: Path, tmp_path: Path) -> None:
    before = files_of(kraft)
    write(plan_of(kraft), tmp_path / "store.db")
    assert files_of(kraft) == before
