"""inter.broker.protocol.version: the order of the versions, and the requests that follow from one."""

from __future__ import annotations

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.protocol_version import InterBrokerVersions
from barnabas.config_def import InvalidConfig
from barnabas.kafka_version import position


@pytest.mark.parametrize(
    ("version", "same"), [("3.9", "3.9-IV0"), ("3.9.1", "3.9-IV0"), ("0.10.0", "0.10.0-IV1"), ("0.11.0.2", "0.11.0-IV2")]
)
def test_a_release_is_its_last_internal_version(version: str, same: str) -> None:
    assert position(version) == position(same)


def test_versions_have_the_order_of_the_releases() -> None:
    versions = ["0.8.2", "0.9.0", "0.10.0-IV0", "0.10.0", "1.0", "2.0", "2.8-IV0", "2.8-IV1", "3.0", "3.2", "3.7-IV4", "3.8", "3.9"]
    assert versions == sorted(versions, key=position)


@pytest.mark.parametrize("version", ["new", "", "3", "3.10", "3.9-IV1", "4.0", "-1.0"])
def test_other_texts_are_no_versions(version: str) -> None:
    with pytest.raises(ValueError, match="is not a valid version"):
        position(version)


@pytest.mark.parametrize(
    ("version", "requests"),
    [
        ("3.9", InterBrokerVersions(leader_and_isr=7, stop_replica=4, update_metadata=8, fetch=17, list_offsets=9)),
        ("3.8", InterBrokerVersions(leader_and_isr=7, stop_replica=4, update_metadata=8, fetch=16, list_offsets=8)),
        ("3.6", InterBrokerVersions(leader_and_isr=7, stop_replica=4, update_metadata=8, fetch=15, list_offsets=8)),
        ("3.5-IV0", InterBrokerVersions(leader_and_isr=7, stop_replica=4, update_metadata=8, fetch=14, list_offsets=8)),
        ("3.4", InterBrokerVersions(leader_and_isr=7, stop_replica=4, update_metadata=8, fetch=13, list_offsets=7)),
        ("3.2", InterBrokerVersions(leader_and_isr=6, stop_replica=3, update_metadata=7, fetch=13, list_offsets=7)),
    ],
)
def test_the_version_decides_the_versions_of_requests_between_brokers(version: str, requests: InterBrokerVersions) -> None:
    assert InterBrokerVersions.of(version) == requests


def test_a_version_whose_requests_are_not_spoken_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"^inter\.broker\.protocol\.version must be at least 3\.2, not 3\.1-IV0"):
        BrokerConfig.from_properties({"inter.broker.protocol.version": "3.1-IV0"})
