"""The request log: which requests are logged, with which fields and times, and what is hidden."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.broker.requests.request_log import RequestLog, RequestTimes, refresh_all
from barnabas.broker.security.session import Session
from barnabas.network.exchange import Exchange, Peer
from barnabas.protocol.framing import request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_configs_request import AlterableConfig as ReplacedConfig
from barnabas.protocol.messages.alter_configs_request import AlterConfigsRequest
from barnabas.protocol.messages.alter_configs_request import AlterConfigsResource as ReplacedResource
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.registry import BY_NAME
from barnabas.security.principal import ANONYMOUS
from tests.unit.broker.handlers.asking import a_broker, request_of

LOGGER = "kafka.request.logger"
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
MS = 1_000_000


@pytest.fixture(autouse=True)
def kept_levels() -> Iterator[None]:
    logger = logging.getLogger(LOGGER)
    before = logger.level
    yield
    logger.setLevel(before)
    for name in [name for name in logging.Logger.manager.loggerDict if name.startswith(f"{LOGGER}.")]:
        logging.getLogger(name).setLevel(logging.NOTSET)
    refresh_all()


def switched_on(*apis: str, slow_ms: int = 0) -> RequestLog:
    for name in [f"{LOGGER}.{api}" for api in apis] or [LOGGER]:
        logging.getLogger(name).setLevel(logging.DEBUG)
    return RequestLog(lambda: slow_ms)


def times(total_ms: int = 21) -> RequestTimes:
    """1 ms in the queue, 2 local, 4 remote, 3 in the queue of responses, and the rest to send."""
    return RequestTimes(0, 1 * MS, 3 * MS, 7 * MS, 10 * MS, total_ms * MS, 5)


def logged(caplog: pytest.LogCaptureFixture) -> list[Any]:
    found = [record.getMessage() for record in caplog.records if record.name.startswith(LOGGER)]
    caplog.clear()
    assert all(line.startswith("Completed request:{") for line in found)
    return [json.loads(line.removeprefix("Completed request:")) for line in found]


def request(message: Message, version: int) -> Any:
    asked = request_of(message, version)
    peer = cast("Any", asked.connection)
    peer.client_software = ("librdkafka", "2.3.0")
    peer.extra_info = lambda name: None
    return asked


def test_it_is_off_until_the_level_is_debug() -> None:
    logging.getLogger(LOGGER).setLevel(logging.NOTSET)
    log = RequestLog(lambda: 0)
    assert logging.getLogger(LOGGER).level == logging.WARNING
    assert not log.is_on
    logging.getLogger(LOGGER).setLevel(logging.DEBUG)
    refresh_all()
    assert log.is_on


def test_a_request_has_kafkas_fields_and_its_times(caplog: pytest.LogCaptureFixture) -> None:
    log = switched_on()
    log.write(request(HeartbeatRequest("g", 3, "m"), 4), HeartbeatResponse(0, 27), times())
    assert logged(caplog) == [
        {
            "isForwarded": False,
            "requestHeader": {
                "requestApiKey": 12,
                "requestApiVersion": 4,
                "correlationId": 17,
                "clientId": "test",
                "requestApiKeyName": "HEARTBEAT",
            },
            "request": {"groupId": "g", "generationId": 3, "memberId": "m", "groupInstanceId": None},
            "response": {"throttleTimeMs": 0, "errorCode": 27},
            "connection": "test",
            "totalTimeMs": 21.0,
            "requestQueueTimeMs": 1.0,
            "localTimeMs": 2.0,
            "remoteTimeMs": 4.0,
            "throttleTimeMs": 5,
            "responseQueueTimeMs": 3.0,
            "sendTimeMs": 11.0,
            "securityProtocol": "PLAINTEXT",
            "principal": "User:ANONYMOUS",
            "listener": "PLAINTEXT",
            "clientInformation": {"softwareName": "librdkafka", "softwareVersion": "2.3.0"},
        }
    ]


def test_requests_of_an_authentication_are_not_logged() -> None:
    log = switched_on()
    asked = request(HeartbeatRequest("g", 1, "m"), 4)
    log.watch(asked)
    assert asked.exchange.watcher is not None
    authenticating = request(HeartbeatRequest("g", 1, "m"), 4)
    authenticating.connection.session = object()  # as the exchange of SASL is one
    log.watch(authenticating)
    assert authenticating.exchange.watcher is None


def test_each_api_can_be_switched_on(caplog: pytest.LogCaptureFixture) -> None:
    log = switched_on("Heartbeat")
    watched = request(HeartbeatRequest("g", 3, "m"), 4)
    unwatched = request(DescribeClusterRequest(), 1)
    log.watch(watched)
    log.watch(unwatched)
    assert watched.exchange.watcher is not None
    assert unwatched.exchange.watcher is None
    log.write(watched, None, times())
    log.write(unwatched, None, times())
    (line,) = logged(caplog)
    assert (line["requestHeader"]["requestApiKeyName"], line["response"]) == ("HEARTBEAT", "")


def test_with_a_threshold_only_slow_requests_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = switched_on(slow_ms=100)
    log.write(request(HeartbeatRequest("fast"), 4), None, times(99))
    log.write(request(HeartbeatRequest("slow"), 4), None, times(100))
    assert [line["request"]["groupId"] for line in logged(caplog)] == ["slow"]


def test_passwords_in_settings_are_hidden(caplog: pytest.LogCaptureFixture) -> None:
    given = [
        (TOPIC, "retention.ms", True),
        (TOPIC, "no.such.setting", False),
        (BROKER, "log.cleaner.threads", True),
        (BROKER, "listener.name.sasl.ssl.keystore.password", False),
        (BROKER, "my.own.secret", False),
        (BROKER_LOGGER, "kafka.server", True),
        (99, "anything", False),
    ]
    incremental = [AlterConfigsResource(kind, "1", [AlterableConfig(name, 0, "seen?")]) for kind, name, _ in given]
    replaced = [ReplacedResource(kind, "1", [ReplacedConfig(name, "seen?")]) for kind, name, _ in given]
    log = switched_on()
    log.write(request(IncrementalAlterConfigsRequest(incremental), 1), None, times())
    log.write(request(AlterConfigsRequest(replaced), 2), None, times())
    for line in logged(caplog):
        values = [resource["configs"][0]["value"] for resource in line["request"]["resources"]]
        assert values == ["seen?" if is_shown else "[hidden]" for _, _, is_shown in given]


def test_a_request_that_cannot_be_described_does_not_harm_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    log = switched_on()
    asked = request(HeartbeatRequest("g"), 4)
    asked.connection.session = None
    log.write(asked, None, times())
    (record,) = caplog.records
    line = record.getMessage()
    assert "could not be logged: AssertionError" in line and "\n" not in line and record.exc_info is None


def test_a_handler_of_the_logger_that_fails_does_not_harm_the_connection() -> None:
    class Broken(logging.Handler):
        records = 0

        def handle(self, record: logging.LogRecord) -> bool:
            self.records += 1
            raise OSError("the disk is full")

    log, broken = switched_on(), Broken()
    logging.getLogger(LOGGER).addHandler(broken)
    try:
        log.write(request(HeartbeatRequest("g"), 4), None, times())
    finally:
        logging.getLogger(LOGGER).removeHandler(broken)
    assert broken.records == 2, "the request, and that it could not be logged"


def test_passwords_are_hidden_in_requests_of_which_some_elements_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    secret = "ssl.keystore.password"
    log = switched_on()
    many_configs = AlterConfigsRequest([ReplacedResource(BROKER, "1", [ReplacedConfig(secret, "seen?") for _ in range(6000)])])
    many_resources = [AlterConfigsResource(BROKER, "1", [AlterableConfig(secret, 0, "seen?")]) for _ in range(6000)]
    log.write(request(many_configs, 2), None, times())
    log.write(request(IncrementalAlterConfigsRequest(many_resources), 1), None, times())
    configs, resources = (line["request"]["resources"] for line in logged(caplog))
    configs = configs[0]["configs"]
    assert configs[-1].endswith(" more") and {config["value"] for config in configs[:-1]} == {"[hidden]"}
    assert resources[-1].endswith(" more") and {config["value"] for resource in resources[:-2] for config in resource["configs"]} == {
        "[hidden]"
    }


def test_a_request_through_the_dispatcher_is_logged_with_its_response(caplog: pytest.LogCaptureFixture) -> None:
    broker = a_broker()
    dispatcher = RequestDispatcher(broker, request_log=switched_on("DescribeCluster"))

    async def scenario() -> None:
        answered = asyncio.Event()
        peer = SimpleNamespace(
            id="10.0.0.1:9092-10.0.0.2:1-0",
            remote_ip="10.0.0.2",
            session=Session(ANONYMOUS, "10.0.0.2"),
            listener_name="PLAINTEXT",
            client_software=None,
            answered=answered.set,
            request_left_queue=lambda size: None,
            extra_info=lambda name: None,
        )
        exchange = Exchange(cast("Peer", peer), 10, False, 0, 1 * MS)
        frame = b"".join(request_frame(DescribeClusterRequest(), BY_NAME["DescribeCluster"], 1, 17, "me"))[4:]
        dispatcher.dispatch(exchange, frame)
        await answered.wait()
        exchange.dispatched_ns = 2 * MS
        exchange.record(3 * MS, 4 * MS)

    asyncio.run(scenario())
    (line,) = logged(caplog)
    assert line["connection"] == "10.0.0.1:9092-10.0.0.2:1-0"
    assert [broker["brokerId"] for broker in line["response"]["brokers"]] == [0]
    assert line["clientInformation"] == {"softwareName": "unknown", "softwareVersion": "unknown"}
    assert line["totalTimeMs"] == 4.0
