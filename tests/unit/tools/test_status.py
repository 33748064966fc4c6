"""What `barnabas status` finds wrong with a cluster, and how it shows it."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from barnabas.administration.cluster_health import BrokerHealth, GroupHealth, Health, LogDirHealth, PartitionHealth
from barnabas.tools import status
from barnabas.tools.administration.status_text import screen, size_text
from barnabas.tools.connecting.listening import refusing
from barnabas.topic_partition import TopicPartition


def partition(name: str = "t-0", leader: int | None = 1, isr: tuple[int, ...] = (1, 2, 3), min_isr: int = 2) -> PartitionHealth:
    return PartitionHealth(name, leader, (1, 2, 3), isr, min_isr)


def health(*partitions: PartitionHealth, **more: object) -> Health:
    brokers = [BrokerHealth(number, f"host{number}:9092", None, False, 0, 0, 60, "4.2-IV1") for number in (1, 2, 3)]
    return Health("id", 1, brokers, partitions=list(partitions), **more)  # type: ignore[arg-type]


def test_a_cluster_without_problems_is_healthy() -> None:
    assert health(partition()).verdict == "HEALTHY"
    assert health(partition()).problems() == []


def test_a_replica_that_is_behind_is_a_warning() -> None:
    cluster = health(partition(isr=(1, 2)))
    assert cluster.verdict == "WARNING"
    assert cluster.problems()[0].text == "1 partition with replicas that are not in sync: t-0"


def test_too_few_replicas_for_acks_all_are_critical() -> None:
    cluster = health(partition(isr=(1,)))
    assert cluster.verdict == "CRITICAL"
    assert "min.insync.replicas" in cluster.problems()[0].text


def test_a_partition_without_a_leader_is_critical_and_told_first() -> None:
    cluster = health(partition(isr=(1, 2)), partition("u-1", None))
    assert cluster.verdict == "CRITICAL"
    assert cluster.problems()[0].text.startswith("1 partition without a leader")


def test_only_some_names_are_told() -> None:
    cluster = health(*(partition(f"t-{number}", None) for number in range(8)))
    assert cluster.problems()[0].text.endswith("t-0, t-1, t-2, t-3, t-4 and 3 more")


def test_a_partition_with_as_few_replicas_as_it_ever_had_is_not_at_its_minimum() -> None:
    assert not PartitionHealth("t-0", 1, (1,), (1,), 1).is_at_min_isr
    assert partition(isr=(1, 2)).is_at_min_isr


def test_one_replica_is_enough_for_acks_all_where_a_partition_has_one() -> None:
    cluster = health(PartitionHealth("t-0", 1, (1,), (1,), 2))
    assert (cluster.verdict, cluster.problems()) == ("HEALTHY", [])


def test_a_machine_with_several_brokers_is_shown_with_its_parts() -> None:
    cluster = health(partition())
    for number, port in ((0, 9092), (1, 9093)):
        cluster.brokers[number] = BrokerHealth(number + 1, f"host:{port}", "rack", False, 0, 0, 60, None, is_down=number == 1)
    assert "  machine host: 1 of 2 brokers up (1, 2)" in screen(cluster).splitlines()
    assert "machine" not in screen(health(partition()))


def test_a_broker_that_is_down_is_critical_and_shown_as_down() -> None:
    cluster = health(partition())
    cluster.brokers[1] = BrokerHealth(2, "host2:9092", None, False, 3, 5, None, None, is_down=True)
    assert cluster.verdict == "CRITICAL"
    assert cluster.problems()[0].text == (
        "broker 2 is down: host2:9092 refuses connections; it leads 3 partitions until the cluster notices"
    )
    assert "host2:9092  -     down" in screen(cluster)
    assert cluster.as_json()["brokers"][1]["isDown"] is True


def test_a_broker_is_down_as_soon_as_its_port_refuses_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        node = SimpleNamespace(id=7, host="127.0.0.1", port=port)
        assert refusing([node]) == frozenset()
    assert refusing([node]) == {7}


def test_another_leader_than_the_preferred_one_is_counted() -> None:
    assert health(partition(leader=2), partition("u-0")).which("has_other_leader") == ["t-0"]


def test_no_controller_is_critical() -> None:
    cluster = health()
    cluster.controller = None
    assert cluster.verdict == "CRITICAL"


def test_a_full_disk_is_a_warning_and_an_offline_one_critical() -> None:
    full = LogDirHealth(1, "/a", 3, 10, 100, 5, None)
    assert health(log_dirs=[full]).problems()[0].text == "the disk of /a of broker 1 is 95% full"
    assert health(log_dirs=[full, LogDirHealth(2, "/b", 0, 0, None, None, "I/O error")]).verdict == "CRITICAL"


def test_a_metadata_store_that_fails_is_critical() -> None:
    cluster = health(log_dirs=[LogDirHealth(1, "/data/barnabas.db", 0, 0, None, None, "I/O error")])
    assert cluster.verdict == "CRITICAL"
    assert cluster.problems()[0].text.startswith("the metadata store /data/barnabas.db of broker 1 cannot keep changes")


def test_what_could_not_be_asked_is_told() -> None:
    cluster = health(unknown={"groups": "Cluster authorization failed."})
    assert cluster.problems()[0].text == "groups unknown: Cluster authorization failed."


def test_the_screen_shows_all_parts() -> None:
    shown = screen(
        health(
            partition(),
            log_dirs=[LogDirHealth(1, "/data", 3, 1536, 2048, 1024, None)],
            groups=[GroupHealth("g", "Consumer", "Stable", 2, 12345)],
        )
    )
    assert shown.startswith("Cluster id  HEALTHY\n")
    assert "host1:9092" in shown and "/data" in shown and "1.5 KB" in shown and "12,345" in shown
    assert "\x1b" not in shown  # nobody looks: no colours


def test_the_groups_that_are_furthest_behind_come_first() -> None:
    groups = [GroupHealth(f"g{number:02}", "Classic", "Empty", 0, number) for number in range(15)]
    shown = screen(health(groups=groups))
    assert shown.index("g14") < shown.index("g05")
    assert "g04" not in shown and "and 5 more groups" in shown
    assert "g04" in screen(health(groups=groups), all_groups=True)


def test_the_json_names_what_is_wrong() -> None:
    cluster = health(partition(isr=(1,)), log_dirs=[LogDirHealth(1, "/d", 0, 0, 10, 5, None)]).as_json()
    assert cluster["status"] == "CRITICAL"
    assert cluster["underMinIsrPartitions"] == ["t-0"]
    assert cluster["logDirs"][0]["freeBytes"] == 5
    assert cluster["brokers"][0]["isFenced"] is False


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (5 * 1024**3, "5.0 GB"), (500 * 1024**2, "500 MB")]
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert size_text(size) == text


def test_lag_is_what_is_left_to_read() -> None:
    one, two, gone = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)
    offsets = {one: SimpleNamespace(offset=3), two: SimpleNamespace(offset=9), gone: SimpleNamespace(offset=1)}
    assert status.lag(offsets, {one: 10, two: 5}) == 7
    assert status.lag({one: None}, {}) is None


def test_an_interval_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert status.main(["--watch", "0"]) == 1
    assert "greater than 0" in capsys.readouterr().err
