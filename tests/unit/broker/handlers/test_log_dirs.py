"""DescribeLogDirs and AlterReplicaLogDirs: what is told of the directories, and what can be moved. The codes are those of Kafka 4.2."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.tree import StoreTrouble
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.unit.broker.handlers.leader import Leader


def with_leader(directory: Path, scenario: Callable[[Leader], Awaitable[Any]]) -> Any:
    """A broker with topic t of two partitions, of which the second holds some records, and topic u."""

    async def run() -> Any:
        leader = Leader(directory)
        try:
            leader.create_topic("t", 2)
            leader.create_topic("u")
            leader.produce("t", 1, count=3)
            return await scenario(leader)
        finally:
            leader.close()

    return asyncio.run(run())


def describe(directory: Path, topics: list[DescribableLogDirTopic] | None, version: int = 4) -> Any:
    async def scenario(leader: Leader) -> Any:
        return await leader.ask(api_keys.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics), version).answer()

    (result,) = with_leader(directory, scenario).results
    return result


def alter(directory: Path, *wanted: tuple[str, str, int], version: int = 2) -> set[tuple[str, int, int]]:
    async def scenario(leader: Leader) -> Any:
        dirs = [AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [partition])]) for path, topic, partition in wanted]
        return await leader.ask(api_keys.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsRequest(dirs), version).answer()

    response = with_leader(directory, scenario)
    return {
        (topic.topic_name, partition.partition_index, partition.error_code) for topic in response.results for partition in topic.partitions
    }


def sizes(result: Any) -> dict[tuple[str, int], int]:
    return {(topic.name, partition.partition_index): partition.partition_size for topic in result.topics for partition in topic.partitions}


def test_null_topics_ask_for_all_replicas(tmp_path: Path) -> None:
    result = describe(tmp_path, None)
    assert (result.error_code, result.log_dir) == (0, str(tmp_path))
    assert set(sizes(result)) == {("t", 0), ("t", 1), ("u", 0)}


def test_the_size_of_a_replica_is_that_of_its_records(tmp_path: Path) -> None:
    directories = sizes(describe(tmp_path, None))
    assert directories["t", 0] == 0
    assert directories["t", 1] == (tmp_path / "t-1" / f"{0:020d}.log").stat().st_size > 0


def test_a_replica_that_leads_has_no_lag_and_is_no_copy(tmp_path: Path) -> None:
    result = describe(tmp_path, None)
    assert {(partition.offset_lag, partition.is_future_key) for topic in result.topics for partition in topic.partitions} == {(0, False)}


def test_only_what_is_asked_for_and_here_is_told(tmp_path: Path) -> None:
    result = describe(tmp_path, [DescribableLogDirTopic("t", [1, 7]), DescribableLogDirTopic("nope", [0])])
    assert set(sizes(result)) == {("t", 1)}


@pytest.mark.parametrize("topics", [[], [DescribableLogDirTopic("nope", [0])]])
def test_a_directory_is_told_also_if_nothing_in_it_was_asked_for(tmp_path: Path, topics: list[DescribableLogDirTopic]) -> None:
    result = describe(tmp_path, topics)
    assert (result.error_code, result.log_dir, result.topics) == (0, str(tmp_path), [])


def test_the_volume_is_told_with_its_size_and_its_free_space(tmp_path: Path) -> None:
    result = describe(tmp_path, [])
    assert 0 < result.usable_bytes <= result.total_bytes


@pytest.mark.parametrize("version", range(5))
def test_every_version_is_answered(tmp_path: Path, version: int) -> None:
    assert set(sizes(describe(tmp_path, [DescribableLogDirTopic("u", [0])], version))) == {("u", 0)}


def test_a_directory_whose_disk_failed_is_told_with_nothing_but_the_error(tmp_path: Path) -> None:
    (tmp_path / "ok").mkdir()

    async def scenario() -> Any:
        leader = Leader(tmp_path / "ok", {"log.dirs": f"{tmp_path}/ok,{tmp_path}/broken"})
        try:
            return await leader.ask(api_keys.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(None), 4).answer()
        finally:
            leader.close()

    _, broken = asyncio.run(scenario()).results
    assert (broken.error_code, broken.log_dir) == (ErrorCode.KAFKA_STORAGE_ERROR, f"{tmp_path}/broken")
    assert (broken.topics, broken.total_bytes, broken.usable_bytes) == ([], -1, -1)


def test_a_metadata_store_that_fails_is_told_as_a_directory(tmp_path: Path) -> None:
    async def scenario(leader: Leader) -> Any:
        leader.tree.trouble = StoreTrouble("/data/barnabas.db", "disk I/O error")
        return await leader.ask(api_keys.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(None), 4).answer()

    whole, store = with_leader(tmp_path, scenario).results
    assert whole.error_code == 0
    assert (store.error_code, store.log_dir, store.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, "/data/barnabas.db", [])


def test_a_replica_may_stay_where_it_is(tmp_path: Path) -> None:
    assert alter(tmp_path, (str(tmp_path), "t", 0)) == {("t", 0, 0)}


def test_a_directory_that_is_not_one_of_log_dirs_is_not_found(tmp_path: Path) -> None:
    nowhere = ErrorCode.LOG_DIR_NOT_FOUND
    assert alter(tmp_path, ("/nope", "t", 0), ("relative", "t", 1)) == {("t", 0, nowhere), ("t", 1, nowhere)}


def test_a_replica_that_is_not_here_cannot_be_moved(tmp_path: Path) -> None:
    codes = alter(tmp_path, (str(tmp_path), "t", 7), (str(tmp_path), "nope", 0))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {("t", 7, unknown), ("nope", 0, unknown)}


def test_a_name_that_is_too_long_for_a_copy_cannot_be_moved(tmp_path: Path) -> None:
    name = "x" * 249
    assert alter(tmp_path, (str(tmp_path), name, 0)) == {(name, 0, ErrorCode.INVALID_TOPIC_EXCEPTION)}


def test_of_two_directories_for_a_partition_the_last_counts(tmp_path: Path) -> None:
    assert alter(tmp_path, (str(tmp_path), "t", 0), ("/nope", "t", 0)) == {("t", 0, ErrorCode.LOG_DIR_NOT_FOUND)}


@pytest.mark.parametrize("version", range(3))
def test_every_version_of_altering_is_answered(tmp_path: Path, version: int) -> None:
    assert alter(tmp_path, (str(tmp_path), "t", 0), version=version) == {("t", 0, 0)}
