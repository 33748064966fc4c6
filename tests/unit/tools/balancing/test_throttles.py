"""The throttle of a plan, and the traffic that is measured for it."""

from __future__ import annotations

import pytest

from barnabas.administration.copy_progress import CopiedBytes
from barnabas.tools.balancing.cluster_load import BrokerPlace, ClusterLoad, PartitionLoad
from barnabas.tools.balancing.plan import Plan
from barnabas.tools.balancing.plan_text import plan_json, plan_screen, progress_line
from barnabas.tools.balancing.sampling import LogSample, broker_place, rate_between
from barnabas.tools.balancing.throttles import RATE_DEFAULT, parse_rate, rate_for
from barnabas.tools.command_line.failures import ToolError
from barnabas.topic_partition import TopicPartition

MB = 2**20


def plan(rate: int) -> Plan:
    load = ClusterLoad((BrokerPlace(1), BrokerPlace(2, "a")), (PartitionLoad(TopicPartition("t", 0), (1,), 1, 3 * MB, rate),))
    return Plan.between(load, {TopicPartition("t", 0): (2,)})


@pytest.mark.parametrize("text", ["0", "-5", "1023", "fast", "1e9", "١٠٢٤", ""])
def test_a_throttle_below_a_kilobyte_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match=r"--throttle takes bytes a second, at least 1024, not .*; without it copies get 52428800"):
        parse_rate(text)


def test_a_throttle_leaves_room_for_what_producers_write() -> None:
    assert rate_for(plan(0), None) == RATE_DEFAULT
    assert rate_for(plan(100 * MB), None) == 200 * MB
    assert rate_for(plan(MB), 5 * MB) == 5 * MB
    with pytest.raises(ToolError, match=r"--throttle 1024 is not more than the 1048576 bytes a second .* broker 2.* take at least 2097152"):
        rate_for(plan(MB), 1024)


@pytest.mark.parametrize(
    ("first", "last", "rate"),
    [
        (LogSample(1000, 0, 10), LogSample(2000, 0, 20), 100),
        (LogSample(1000, 0, 10), LogSample(1000, 0, 10), 0),
        (LogSample(1000, 0, 10), LogSample(500, 15, 20), 100),  # a segment was deleted: ten records of 100 bytes
        (None, LogSample(1000, 0, 10), 0),
    ],
)
def test_traffic_is_the_growth_of_the_log(first: LogSample | None, last: LogSample, rate: int) -> None:
    assert rate_between(first, last, 10.0) == rate


def test_a_plan_is_a_table_of_brokers_and_of_moves() -> None:
    assert plan_screen(plan(MB)).splitlines() == [
        "BROKER  RACK  REPLICAS  LEADERS  SIZE           TRAFFIC",
        "1       -     1 -> 0    1 -> 0   3.0 MB -> 0 B  1.0 MB/s -> 0 B/s",
        "2       a     0 -> 1    0 -> 1   0 B -> 3.0 MB  0 B/s -> 1.0 MB/s",
        "",
        "PARTITION  REPLICAS  TO  SIZE",
        "t-0        1         2   3.0 MB",
        "",
        "1 replica to copy (3.0 MB), 1 preferred leader to change.",
    ]


def test_a_plan_names_cordoned_brokers() -> None:
    load = ClusterLoad((BrokerPlace(1), BrokerPlace(2, is_cordoned=True), BrokerPlace(3, is_cordoned=True)), ())
    assert "Cordoned, get no replicas: 2, 3." in plan_screen(Plan.between(load, {})).splitlines()


@pytest.mark.parametrize(
    ("cordons", "free", "is_cordoned"),
    [
        ((), 30, False),
        (("/a",), 20, False),
        (("/a", "/b"), 20, False),  # /b and /c are on one volume
        (("/a", "/b", "/c"), 0, True),
        (("*",), 0, True),
    ],
)
def test_cordoned_directories_have_no_room(cordons: tuple[str, ...], free: int, is_cordoned: bool) -> None:
    disks = {"/a": (100, 10), "/b": (200, 20), "/c": (200, 20)}
    assert broker_place(1, "r", disks, cordons) == BrokerPlace(1, "r", free, is_cordoned)


def test_the_json_of_a_plan_is_what_reassign_partitions_takes() -> None:
    made = plan_json(plan(MB))
    assert made["reassignment"] == {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [2], "log_dirs": ["any"]}]}
    assert made["brokers"][1]["after"] == {"replicas": 1, "leaders": 1, "bytes": 3 * MB, "traffic": MB}


def test_progress_is_one_line() -> None:
    line = progress_line(CopiedBytes(2**20, 4 * 2**20, 1, 3, 90.0))
    assert line == "Moving ████████······················  25% 1.0 MB of 4.0 MB, 1 of 3 replicas, 34.1 KB/s, 1 min 30 s left"
