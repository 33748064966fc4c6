"""The metrics of our brokers beside the MBeans of Apache Kafka 3.9.1 and 4.2 after the same workload: the same names, types and counts.

`make kafka-metrics` plays the workload on both versions of Apache Kafka and records their MBeans anew.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from barnabas.metrics.registry import Kind
from tests.integration.metrics import ours
from tests.integration.metrics.beans import OWN, Beans, name_of, our_families
from tests.integration.metrics.differences import ABSENT, NEW, NOT_EQUAL, OLD, OURS, SHARES, reason_for
from tests.integration.metrics.record import KRAFT, ZOOKEEPER, file_of

pytestmark = pytest.mark.timeout(600)


@cache
def recorded(version: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(file_of(version).read_text())
    return record


@pytest.mark.parametrize("version", [ZOOKEEPER, KRAFT])
def test_every_mbean_of_kafka_is_shown_or_its_absence_is_explained(version: str) -> None:
    shown = {name_of(family) for family in our_families()}
    absent = {name for name in recorded(version)["beans"] if name not in shown}
    assert sorted(name for name in absent if reason_for(name, ABSENT) is None) == []


def test_metrics_have_the_types_and_labels_of_kafkas_mbeans() -> None:
    wrong = {}
    for family in our_families():
        kinds, labels = set(), set()
        for version in (ZOOKEEPER, KRAFT):
            kind, names = recorded(version)["beans"].get(name_of(family), (None, ()))
            kinds |= set() if kind is None else {kind}
            labels |= {name.replace("-", "_") for name in names}
        if not kinds:
            if name_of(family) not in OURS:
                wrong[name_of(family)] = "is not in Kafka"
        elif kinds not in ({OWN}, {family.kind.value}) and not (name_of(family) in SHARES and family.kind is Kind.GAUGE):
            wrong[name_of(family)] = f"{family.kind} for {kinds}"
        elif not labels <= set(family.labels):
            wrong[name_of(family)] = f"{family.labels} for {labels}"
    assert wrong == {}


def test_each_difference_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "differences.md").read_text()
    reasons = {reason for table in (ABSENT, NOT_EQUAL, OLD, NEW) for reason in table.values()}
    assert sorted(reason for reason in reasons if reason not in page) == []


@pytest.mark.java
def test_one_broker_counts_as_kafka_42_does_after_the_same_workload(tmp_path: Path) -> None:
    compare(KRAFT, ours.of_one(tmp_path), NEW)


@pytest.mark.java
def test_three_brokers_count_as_kafka_39_does_after_the_same_workload(tmp_path: Path) -> None:
    """Which has failures, elections, a reassignment and a deletion. ZooKeeper needs Java."""
    compare(ZOOKEEPER, ours.of_cluster(tmp_path), OLD)


def compare(version: str, played: dict[str, Beans], also: dict[str, str]) -> None:
    """A series at 0 may be on one side only: Kafka makes some with their first event, ours begin with the first request or replica."""
    names = {name_of(family) for family in our_families()} & recorded(version)["beans"].keys()
    different, compared = {}, 0
    for snapshot, beans in played.items():
        kafka = recorded(version)["values"][snapshot]
        for series in {*beans.values, *kafka}:
            if series.partition("{")[0] not in names or reason_for(series, NOT_EQUAL, also) is not None:
                continue
            compared += 1
            if (value := beans.values.get(series, 0)) != kafka.get(series, 0):
                different[f"{snapshot} {series}"] = f"{value} instead of {kafka.get(series, 0)}"
    assert not different, "\n".join(f"{series}: {value}" for series, value in sorted(different.items()))
    assert compared > 150
