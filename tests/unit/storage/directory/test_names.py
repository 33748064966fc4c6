from __future__ import annotations

import pytest

from barnabas.storage.directory import names
from barnabas.storage.directory.names import (
    marked_dir_name,
    offset_of,
    offset_prefix,
    parse_partition_dir,
    partition_dir_name,
    segment_file,
)
from barnabas.topic_partition import TopicPartition

UNIQUE = "0123456789abcdef0123456789abcdef"


def test_an_offset_is_written_with_twenty_digits() -> None:
    assert offset_prefix(12345) == "00000000000000012345"


def test_the_largest_offset_still_has_twenty_digits() -> None:
    assert offset_prefix(2**63 - 1) == "09223372036854775807"


def test_a_segment_file_has_its_kind_and_then_its_suffix() -> None:
    assert segment_file("/data/t-0", 12345, names.LOG_SUFFIX, names.SWAP_SUFFIX) == "/data/t-0/00000000000000012345.log.swap"


@pytest.mark.parametrize(
    "suffix", [".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".log.deleted", ".index.cleaned", ".log.swap"]
)
def test_the_offset_of_a_file_is_read_from_its_name(suffix: str) -> None:
    assert offset_of(f"00000000000000012345{suffix}") == 12345


@pytest.mark.parametrize(
    "name",
    ["leader-epoch-checkpoint", "partition.metadata", "12345.log", "0000000000000001234x.log", "", "٠" * 20 + ".log", "0" * 21 + ".log"],
)
def test_other_files_have_no_offset(name: str) -> None:
    assert offset_of(name) is None


def test_the_directory_of_a_partition_is_named_after_it() -> None:
    assert partition_dir_name(TopicPartition("my-topic", 3)) == "my-topic-3"


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        ("t-0", "t", 0),
        ("my-topic-12", "my-topic", 12),
        ("my.topic-1", "my.topic", 1),
        ("foo.bar.goo-0", "foo.bar.goo", 0),
        ("delete-0", "delete", 0),
        ("my-delete-7", "my-delete", 7),
        (f"t-0.{UNIQUE}-delete", "t", 0),
        (f"a.b-3.{UNIQUE}-future", "a.b", 3),
        (f"my-topic-3.{UNIQUE}-stray", "my-topic", 3),
        ("-topic-5", "-topic", 5),
        ("topic--1", "topic-", 1),
        (f"__consumer_offsets-{2**31 - 1}", "__consumer_offsets", 2**31 - 1),
    ],
)
def test_a_directory_name_gives_back_its_partition(name: str, topic: str, partition: int) -> None:
    assert parse_partition_dir(name) == TopicPartition(topic, partition)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "t",
        "-",
        "-0",
        "t-",
        "lost+found",
        "kafka-1.1",
        "kafka-non-numeric",
        "t-1a",
        "t-²",
        f"t-{2**31}",
        "t-delete",
        "t-0-delete",
        "t-0-future",
        "t-0-stray",
        f"t.{UNIQUE}-delete",
        f"-0.{UNIQUE}-delete",
        f"t-x.{UNIQUE}-delete",
        f"my topic-0.{UNIQUE}-delete",
    ],
)
def test_any_other_directory_is_none_of_ours(name: str) -> None:
    assert parse_partition_dir(name) is None


def test_a_marked_directory_can_be_read_back() -> None:
    partition = TopicPartition("orders.eu-west", 7)
    name = marked_dir_name(partition, UNIQUE, names.DELETE_DIR_SUFFIX)
    assert name == f"orders.eu-west-7.{UNIQUE}-delete"
    assert parse_partition_dir(name) == partition


@pytest.mark.parametrize("suffix", [names.DELETE_DIR_SUFFIX, names.STRAY_DIR_SUFFIX])
def test_a_long_topic_name_is_cut_where_the_file_system_would_refuse_it(suffix: str) -> None:
    name = marked_dir_name(TopicPartition("n" * 249, 1), UNIQUE, suffix)
    assert len(name) == 255
    assert name.endswith(f"n-1.{UNIQUE}{suffix}")
    parsed = parse_partition_dir(name)
    assert parsed is not None and parsed.partition == 1
