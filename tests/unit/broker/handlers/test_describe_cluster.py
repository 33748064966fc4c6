from __future__ import annotations

import pytest

from barnabas.broker.broker import Broker
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from tests.unit.broker.handlers.asking import CLUSTER_ID, a_broker, alive, asked, update


def described(broker: Broker, request: DescribeClusterRequest, version: int = 2, listener: str = "PLAINTEXT") -> DescribeClusterResponse:
    return asked(broker, request, DescribeClusterResponse, version, listener)


@pytest.mark.parametrize("version", range(3))
def test_every_version_tells_the_brokers_the_controller_and_the_cluster(version: int) -> None:
    response = described(a_broker(), DescribeClusterRequest(), version)
    assert response == DescribeClusterResponse(cluster_id=CLUSTER_ID, controller_id=0, brokers=[DescribeClusterBroker(0, "host0", 9092)])


@pytest.mark.parametrize("version", range(3))
def test_operations_are_told_to_those_who_ask(version: int) -> None:
    assert described(a_broker(), DescribeClusterRequest(True), version).cluster_authorized_operations == 8096  # as Apache Kafka 4.2


def test_asking_for_fenced_brokers_finds_no_more() -> None:
    assert described(a_broker(), DescribeClusterRequest(include_fenced_brokers=True)) == described(a_broker(), DescribeClusterRequest())


def test_only_brokers_with_the_client_s_listener_are_told_and_only_among_them_is_a_controller() -> None:
    broker = a_broker()
    broker.metadata_cache.update(update(brokers=(alive(0, "IN"), alive(1, "IN", "OUT", rack="r"))))
    inside, outside = (
        described(broker, DescribeClusterRequest(), listener="IN"),
        described(broker, DescribeClusterRequest(), listener="OUT"),
    )
    assert (len(inside.brokers), inside.controller_id) == (2, 0)
    assert (outside.brokers, outside.controller_id) == ([DescribeClusterBroker(1, "host1", 9093, "r")], -1)


@pytest.mark.parametrize(
    ("endpoint_type", "error", "text"),
    [
        (
            2,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 7"),
    ],
)
def test_a_client_that_looks_for_something_else_than_brokers_is_told_so(endpoint_type: int, error: ErrorCode, text: str) -> None:
    response = described(a_broker(), DescribeClusterRequest(endpoint_type=endpoint_type))
    assert response == DescribeClusterResponse(error_code=error, error_message=text)
