"""Requests for the whole cluster: reassignments, elections, log directories and lists of configs need a permission of the cluster."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from barnabas.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from barnabas.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas.protocol.registry import BY_NAME
from barnabas.security.operations import AclOperation
from tests.unit.broker.handlers.asking import a_broker, ask
from tests.unit.broker.handlers.granting import granting

DENIED = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
ELECTION = ElectLeadersRequest(0, [TopicPartitions("orders", [3])])
REASSIGNMENT = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("orders", [ReassignablePartition(3, [0])])])
REASSIGNMENTS = ListPartitionReassignmentsRequest(topics=[ListPartitionReassignmentsTopics("orders", [3])])
MOVE = AlterReplicaLogDirsRequest([AlterReplicaLogDir("/data", [AlterReplicaLogDirTopic("orders", [3])])])
LOG_DIRS = DescribeLogDirsRequest(None)
CONFIG_RESOURCES = ListConfigResourcesRequest([])


def sent(request: Message, *grants: str, version: int | None = None, served: list[str] | None = None) -> Any:
    """The answer of a broker whose parts serve nothing: `served` gets a line for a request that has passed the authorization."""

    def serve(*_: object) -> Any:
        if served is not None:
            served.append(type(request).__name__)
        raise KafkaError("not served")

    part = SimpleNamespace(
        elect_leaders=serve, alter_reassignments=serve, list_reassignments=serve, alter_replica_log_dirs=serve, describe_log_dirs=serve
    )
    broker = a_broker(access=granting(*grants), admin=part, replica_manager=part, configs=SimpleNamespace(entities=serve))
    api = BY_NAME[type(request).__name__.removesuffix("Request")]
    return asyncio.run(ask(broker, request, api.response, api.stable_version if version is None else version))


@pytest.mark.parametrize(
    ("request_", "operation"),
    [
        (ELECTION, AclOperation.ALTER),
        (REASSIGNMENT, AclOperation.ALTER),
        (REASSIGNMENTS, AclOperation.DESCRIBE),
        (MOVE, AclOperation.ALTER),
        (LOG_DIRS, AclOperation.DESCRIBE),
        (CONFIG_RESOURCES, AclOperation.DESCRIBE_CONFIGS),
    ],
)
def test_exactly_one_operation_is_needed(request_: Message, operation: AclOperation) -> None:
    served: list[str] = []
    others = (AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.CLUSTER_ACTION)
    sent(request_, *(f"{other.name} cluster" for other in others if other is not operation), served=served)
    assert not served
    with suppress(KafkaError):
        sent(request_, f"{operation.name} cluster", served=served)
    assert served


def test_a_denied_election_has_the_error_in_each_partition_and_from_version_1_of_the_whole() -> None:
    for version in (0, 1, 2):
        answer = sent(ELECTION, version=version)
        assert answer.error_code == (DENIED if version else 0)
        assert [
            partition_result.error_code for topic in answer.replica_election_results for partition_result in topic.partition_result
        ] == [DENIED]
    assert sent(ElectLeadersRequest(0, [])).error_code == DENIED


def test_a_denied_reassignment_has_the_error_of_the_whole_and_in_each_partition() -> None:
    answer = sent(REASSIGNMENT)
    assert (answer.error_code, answer.error_message) == (DENIED, answer.responses[0].partitions[0].error_message)
    assert [partition.error_code for topic in answer.responses for partition in topic.partitions] == [DENIED]


def test_a_denied_list_of_reassignments_repeats_the_request() -> None:
    answer = sent(REASSIGNMENTS)
    assert answer.error_code == DENIED
    assert [(topic.name, [partition.partition_index for partition in topic.partitions]) for topic in answer.topics] == [("orders", [3])]


def test_a_denied_move_to_another_directory_has_the_error_in_each_partition() -> None:
    assert [partition.error_code for topic in sent(MOVE).results for partition in topic.partitions] == [DENIED]


def test_denied_log_directories_are_an_empty_list() -> None:
    for version in (1, 3, 4):
        answer = sent(LOG_DIRS, version=version)
        assert (answer.error_code, answer.results) == (DENIED if version >= 3 else 0, [])


def test_a_denied_list_of_configs_is_empty() -> None:
    answer = sent(CONFIG_RESOURCES)
    assert (answer.error_code, answer.config_resources) == (DENIED, [])
