"""Apache Kafka's own Java tools print the same against our broker as against Apache Kafka, and end with the same code."""

from __future__ import annotations

import re

import pytest

from tests.integration.tools import acl_requests
from tests.integration.tools.acls import ACLS
from tests.integration.tools.commands import COMMANDS
from tests.integration.tools.elections import ELECTIONS
from tests.integration.tools.quotas import QUOTAS
from tests.integration.tools.reassignments import REASSIGNMENTS
from tests.integration.tools.users import USERS

pytestmark = pytest.mark.java

BROKER_CONFIGS = "configs: all of a broker's are described"
API_VERSIONS = "broker-api-versions"

SAME = [command.name for command in (*COMMANDS, *ACLS, *USERS, *QUOTAS) if command.name not in (BROKER_CONFIGS, API_VERSIONS)]

# What a broker is told about its place, and about a quorum that ours has not.
PLACE = {"listeners", "log.dirs", "process.roles", "controller.listener.names", "controller.quorum.voters"}

# The APIs that a client needs to produce, to consume without a group, and to administer topics.
SERVED = [
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "ApiVersions",
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "ElectLeaders",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "DeleteRecords",
    "DescribeConfigs",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "OffsetForLeaderEpoch",
    "DescribeCluster",
    "DescribeLogDirs",
    "AlterReplicaLogDirs",
    "DescribeTopicPartitions",
    "DescribeProducers",
    "ListConfigResources",
    "FindCoordinator",
    "InitProducerId",
]
ANY_API_LINE = re.compile(r"^\t\w+\(\d+\): (UNSUPPORTED|\d+( to \d+)? \[usable: \d+\]),?\n", re.MULTILINE)
API_LINE = re.compile(r"^\t(\w+)\((\d+)\): (\d+)(?: to (\d+))? \[usable: (\d+)\],?$", re.MULTILINE)


@pytest.mark.parametrize("name", SAME)
def test_a_tool_prints_the_same_as_against_kafka(name: str, printed: dict[str, list[str]]) -> None:
    ours, theirs = printed[name]
    assert ours == theirs


@pytest.mark.parametrize("name", ELECTIONS)
def test_an_election_is_answered_as_kafka_answers_it(name: str, printed: dict[str, list[str]]) -> None:
    ours, theirs = printed[name]
    assert ours == theirs


@pytest.mark.parametrize("name", REASSIGNMENTS)
def test_a_reassignment_is_answered_as_kafka_answers_it(name: str, printed: dict[str, list[str]]) -> None:
    ours, theirs = printed[name]
    assert ours == theirs


@pytest.mark.parametrize("name", acl_requests.REQUESTS)
def test_a_request_about_acls_is_answered_as_kafka_answers_it(name: str, printed: dict[str, list[str]]) -> None:
    ours, theirs = printed[name]
    assert ours == theirs


def test_a_brokers_configs_are_described_as_kafkas_are(printed: dict[str, list[str]]) -> None:
    ours, theirs = map(config_lines, printed[BROKER_CONFIGS])
    assert len(theirs) > 300
    assert {key: ours[key] for key in ours if key not in PLACE} == {key: theirs[key] for key in theirs if key not in PLACE}
    assert set(ours) >= PLACE


def test_the_versions_of_apis_are_listed_in_kafkas_format(printed: dict[str, list[str]]) -> None:
    ours, theirs = printed[API_VERSIONS]
    assert ANY_API_LINE.sub("", ours) == ANY_API_LINE.sub("", theirs)
    assert len(ANY_API_LINE.findall(ours)) == len(ANY_API_LINE.findall(theirs))  # the client's list, with what the broker has of it


def test_an_api_is_usable_in_the_version_in_which_kafkas_is(printed: dict[str, list[str]]) -> None:
    ours, theirs = (
        {name: (key, newest or oldest, usable) for name, key, oldest, newest, usable in API_LINE.findall(text)}
        for text in printed[API_VERSIONS]
    )
    assert {name: ours.get(name) for name in SERVED} == {name: theirs[name] for name in SERVED}


def config_lines(text: str) -> dict[str, str]:
    """`key=value sensitive=… synonyms={…}` by key."""
    return {match[1]: match[0] for match in re.finditer(r"^  ([\w.]+)=.*$", text, re.MULTILINE)}
