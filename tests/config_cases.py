"""Questions about configs, asked in this order of a broker with id 1 that has the topic `orders` and nothing else.

`python -m tests.config_cases HOST:PORT SERVER.PROPERTIES` asks them of a running broker and prints questions and answers. Those of Apache
Kafka 4.2.0 are kept in tests/data/kafka-config-answers-4.2.0.json, and the handlers are held against them.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

from barnabas.properties import parse_properties
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages import (
    alter_configs_request,
    create_topics_request,
    describe_configs_request,
    incremental_alter_configs_request,
    list_config_resources_request,
)
from barnabas.protocol.registry import APIS

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
BROKER_ID = 1

APIS_BY_NAME = {api.name: api for api in APIS.values()}


def incremental(*resources: tuple[int, str, list[list[Any]]], validate_only: bool = False) -> dict[str, Any]:
    return {"api": "IncrementalAlterConfigs", "version": 1, "resources": list(resources), "validate_only": validate_only}


def replace(*resources: tuple[int, str, list[list[Any]]], validate_only: bool = False) -> dict[str, Any]:
    return {"api": "AlterConfigs", "version": 2, "resources": list(resources), "validate_only": validate_only}


def describe(*resources: tuple[int, str, list[str] | None], synonyms: bool = True, version: int = 4) -> dict[str, Any]:
    return {"api": "DescribeConfigs", "version": version, "resources": list(resources), "synonyms": synonyms}


def listing(*types: int, version: int = 1) -> dict[str, Any]:
    return {"api": "ListConfigResources", "version": version, "types": list(types)}


def one(kind: int, name: str, key: str, operation: int, value: str | None) -> dict[str, Any]:
    return incremental((kind, name, [[key, operation, value]]))


CASES: list[dict[str, Any]] = [
    # -- topics: what may be set
    one(TOPIC, "orders", "retention.ms", SET, "5000"),
    describe((TOPIC, "orders", ["retention.ms"])),
    describe((TOPIC, "orders", ["retention.ms"]), synonyms=False, version=3),
    describe((TOPIC, "orders", ["retention.ms", "no.such"]), synonyms=False, version=1),
    one(TOPIC, "orders", "retention.ms", SET, "x"),
    one(TOPIC, "orders", "retention.ms", SET, "-2"),
    one(TOPIC, "orders", "retention.ms", SET, ""),
    one(TOPIC, "orders", "retention.ms", SET, None),
    one(TOPIC, "orders", "no.such", SET, "x"),
    one(TOPIC, "orders", "no.such", DELETE, None),
    one(TOPIC, "orders", "no.such", APPEND, "x"),
    one(TOPIC, "orders", "retention.ms", APPEND, "x"),
    one(TOPIC, "orders", "retention.ms", SUBTRACT, "x"),
    one(TOPIC, "orders", "cleanup.policy", APPEND, "compact"),
    describe((TOPIC, "orders", ["cleanup.policy"])),
    one(TOPIC, "orders", "cleanup.policy", APPEND, "compact,delete"),
    describe((TOPIC, "orders", ["cleanup.policy"])),
    one(TOPIC, "orders", "cleanup.policy", SUBTRACT, "compact,nothing"),
    describe((TOPIC, "orders", ["cleanup.policy"])),
    one(TOPIC, "orders", "cleanup.policy", SUBTRACT, "delete"),
    describe((TOPIC, "orders", ["cleanup.policy"])),
    one(TOPIC, "orders", "cleanup.policy", SET, "shred"),
    one(TOPIC, "orders", "cleanup.policy", SET, "delete,delete"),
    one(TOPIC, "orders", "cleanup.policy", SET, "compact,,delete"),
    one(TOPIC, "orders", "cleanup.policy", APPEND, None),
    one(TOPIC, "orders", "cleanup.policy", DELETE, None),
    one(TOPIC, "orders", "cleanup.policy", DELETE, "ignored"),
    one(TOPIC, "orders", "retention.ms", 9, "x"),
    one(TOPIC, "orders", "leader.replication.throttled.replicas", APPEND, "0:1"),
    one(TOPIC, "orders", "leader.replication.throttled.replicas", APPEND, "1:1"),
    describe((TOPIC, "orders", ["leader.replication.throttled.replicas"])),
    one(TOPIC, "orders", "leader.replication.throttled.replicas", SET, "a:b"),
    one(TOPIC, "orders", "leader.replication.throttled.replicas", SUBTRACT, "0:1,1:1"),
    describe((TOPIC, "orders", ["leader.replication.throttled.replicas"])),
    one(TOPIC, "orders", "leader.replication.throttled.replicas", DELETE, None),
    one(TOPIC, "orders", "remote.storage.enable", SET, "true"),
    one(TOPIC, "orders", "min.compaction.lag.ms", SET, "9223372036854775807"),
    incremental((TOPIC, "orders", [["min.compaction.lag.ms", SET, "10"], ["max.compaction.lag.ms", SET, "5"]])),
    one(TOPIC, "orders", "segment.bytes", SET, "5"),
    one(TOPIC, "orders", "segment.bytes", SET, "99999999999"),
    one(TOPIC, "orders", "min.insync.replicas", SET, "0"),
    one(TOPIC, "orders", "compression.type", SET, "best"),
    one(TOPIC, "orders", "compression.gzip.level", SET, "10"),
    one(TOPIC, "orders", "preallocate", SET, "yes"),
    one(TOPIC, "orders", "message.timestamp.type", SET, "Never"),
    one(TOPIC, "orders", "min.cleanable.dirty.ratio", SET, "1.5"),
    one(TOPIC, "orders", "internal.segment.bytes", SET, "1000"),
    describe((TOPIC, "orders", ["internal.segment.bytes"])),
    one(TOPIC, "orders", "internal.segment.bytes", DELETE, None),
    one(TOPIC, "orders", "retention.ms", DELETE, None),
    describe((TOPIC, "orders", ["retention.ms"])),
    # -- topics: which there are, and requests that say something twice
    one(TOPIC, "nowhere", "retention.ms", SET, "5000"),
    one(TOPIC, "nowhere", "retention.ms", SET, "x"),
    one(TOPIC, "", "retention.ms", SET, "5000"),
    one(TOPIC, "a/b", "retention.ms", SET, "5000"),
    one(TOPIC, "..", "retention.ms", SET, "5000"),
    describe((TOPIC, "nowhere", None)),
    describe((TOPIC, "", None)),
    describe((TOPIC, "a/b", None)),
    incremental((TOPIC, "orders", [["retention.ms", SET, "1"], ["retention.ms", SET, "2"]])),
    incremental((TOPIC, "orders", [["retention.ms", SET, None], ["segment.ms", SET, None]])),
    incremental((TOPIC, "orders", [["retention.ms", SET, "1"]]), (TOPIC, "orders", [["segment.ms", SET, "2"]])),
    incremental((TOPIC, "orders", [["retention.ms", SET, "x"]]), (TOPIC, "nowhere", [["segment.ms", SET, "2"]])),
    incremental((TOPIC, "orders", [])),
    incremental((TOPIC, "orders", [["retention.ms", SET, "77"]]), validate_only=True),
    incremental((TOPIC, "orders", [["retention.ms", SET, "x"]]), validate_only=True),
    describe((TOPIC, "orders", ["retention.ms"])),
    incremental((5, "orders", [["a", SET, "x"]])),
    incremental((0, "orders", [["a", SET, "x"]])),
    incremental(),
    # -- the older way: all at once
    replace((TOPIC, "orders", [["segment.ms", "60000"], ["retention.ms", "1000"]])),
    replace((TOPIC, "orders", [["flush.ms", "7"]]), validate_only=True),
    replace((TOPIC, "orders", [["flush.ms", "9"]])),
    describe((TOPIC, "orders", ["segment.ms", "retention.ms", "flush.ms"])),
    replace((TOPIC, "orders", [["flush.ms", "9"], ["flush.ms", "8"]])),
    replace((TOPIC, "orders", [["flush.ms", None]])),
    replace((TOPIC, "orders", [["flush.ms", "x"]])),
    replace((TOPIC, "orders", [["no.such", "x"]])),
    replace((TOPIC, "nowhere", [["flush.ms", "9"]])),
    replace((TOPIC, "orders", [["flush.ms", "9"]]), (TOPIC, "orders", [["flush.ms", "9"]])),
    replace((LOGGER, "1", [["root", "INFO"]])),
    replace((9, "1", [["root", "INFO"]])),
    replace((TOPIC, "orders", [])),
    describe((TOPIC, "orders", ["flush.ms"])),
    # -- brokers
    one(BROKER, "1", "log.retention.ms", SET, "86400000"),
    describe((BROKER, "1", ["log.retention.ms", "log.retention.hours"])),
    one(BROKER, "", "log.retention.ms", SET, "172800000"),
    describe((BROKER, "", None)),
    describe((BROKER, "1", ["log.retention.ms"])),
    describe((TOPIC, "orders", ["retention.ms"])),
    one(BROKER, "1", "log.retention.ms", DELETE, None),
    describe((TOPIC, "orders", ["retention.ms"])),
    one(BROKER, "", "log.retention.ms", DELETE, None),
    one(BROKER, "2", "log.retention.ms", SET, "1"),
    one(BROKER, "one", "log.retention.ms", SET, "1"),
    one(BROKER, "-1", "log.retention.ms", SET, "1"),
    one(BROKER, "<default>", "log.retention.ms", SET, "1"),
    one(BROKER, "1", "log.retention.ms", SET, "x"),
    one(BROKER, "1", "log.retention.ms", SET, None),
    one(BROKER, "1", "log.dirs", SET, "/x"),
    one(BROKER, "1", "broker.id", SET, "5"),
    one(BROKER, "1", "log.retention.ms", APPEND, "5"),
    one(BROKER, "1", "log.retention.ms", SUBTRACT, "5"),
    one(BROKER, "1", "log.retention.ms", 7, "5"),
    one(BROKER, "1", "log.cleanup.policy", APPEND, "compact"),
    describe((BROKER, "1", ["log.cleanup.policy"])),
    one(BROKER, "1", "log.cleanup.policy", SUBTRACT, "delete"),
    describe((BROKER, "1", ["log.cleanup.policy"])),
    one(BROKER, "1", "log.cleanup.policy", SET, "shred"),
    one(BROKER, "1", "log.cleanup.policy", DELETE, None),
    one(BROKER, "1", "some.plugin.setting", SET, "secret"),
    one(BROKER, "1", "some.plugin.setting", APPEND, "secret"),
    describe((BROKER, "1", ["some.plugin.setting"])),
    one(BROKER, "1", "some.plugin.setting", DELETE, None),
    one(BROKER, "", "listeners", SET, "PLAINTEXT://:1"),
    one(BROKER, "1", "ssl.keystore.location", SET, "/x"),
    one(BROKER, "", "listener.name.a.ssl.keystore.location", SET, "/x"),
    one(BROKER, "1", "log.cleaner.threads", SET, "1000"),
    one(BROKER, "1", "num.io.threads", SET, "0"),
    one(BROKER, "1", "num.io.threads", SET, "100"),
    one(BROKER, "1", "num.io.threads", SET, "1"),
    one(BROKER, "1", "num.replica.fetchers", SET, "3"),
    one(BROKER, "", "num.replica.fetchers", SET, "3"),
    one(BROKER, "1", "num.network.threads", SET, "40"),
    one(BROKER, "1", "background.threads", SET, "21"),
    one(BROKER, "1", "num.recovery.threads.per.data.dir", SET, "9"),
    one(BROKER, "1", "log.cleaner.threads", SET, "3"),
    one(BROKER, "1", "log.cleaner.threads", SET, "0"),
    one(BROKER, "1", "log.cleaner.threads", SET, "2"),
    one(BROKER, "1", "log.cleaner.threads", DELETE, None),
    one(BROKER, "1", "log.cleaner.io.buffer.size", SET, "5"),
    one(BROKER, "1", "log.cleaner.io.buffer.size", DELETE, None),
    one(BROKER, "1", "log.cleaner.dedupe.buffer.size", SET, "5"),
    one(BROKER, "1", "listener.name.plaintext.num.network.threads", SET, "40"),
    one(BROKER, "1", "listener.name.plaintext.max.connections", SET, "40"),
    describe((BROKER, "1", ["listener.name.plaintext.max.connections"])),
    one(BROKER, "1", "listener.name.plaintext.max.connections", DELETE, None),
    one(BROKER, "1", "message.max.bytes", SET, "-1"),
    one(BROKER, "1", "log.retention.ms", SET, "0"),
    one(BROKER, "1", "log.roll.ms", SET, "0"),
    one(BROKER, "1", "max.connections.per.ip", SET, "0"),
    one(BROKER, "1", "max.connections.per.ip.overrides", SET, "a:b"),
    one(BROKER, "1", "max.connections.per.ip.overrides", SET, "10.0.0.1:5"),
    one(BROKER, "1", "max.connections.per.ip.overrides", DELETE, None),
    one(BROKER, "1", "metric.reporters", SET, "no.Such"),
    one(BROKER, "1", "log.message.timestamp.type", SET, "LogAppendTime"),
    describe((TOPIC, "orders", ["message.timestamp.type"])),
    one(BROKER, "1", "log.message.timestamp.type", DELETE, None),
    one(BROKER, "1", "connections.max.idle.ms", SET, "50"),
    one(BROKER, "1", "num.partitions", SET, "50"),
    one(BROKER, "1", "auto.create.topics.enable", SET, "false"),
    one(BROKER, "1", "compression.type", SET, "zstd"),
    describe((BROKER, "1", ["compression.type"]), (TOPIC, "orders", ["compression.type"])),
    one(BROKER, "1", "compression.type", DELETE, None),
    one(BROKER, "1", "transaction.partition.verification.enable", SET, "false"),
    describe((BROKER, "1", ["transaction.partition.verification.enable"])),
    one(BROKER, "1", "transaction.partition.verification.enable", DELETE, None),
    one(BROKER, "1", "producer.id.expiration.ms", SET, "1000"),
    one(BROKER, "1", "producer.id.expiration.ms", DELETE, None),
    one(BROKER, "1", "advertised.listeners", SET, "PLAINTEXT://elsewhere:9092"),
    one(BROKER, "1", "listeners", SET, "EXTRA://127.0.0.1:9750"),
    one(BROKER, "1", "listener.security.protocol.map", SET, "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"),
    one(BROKER, "1", "listener.name.nowhere.max.connections", SET, "50"),
    one(BROKER, "1", "listener.name.nowhere.max.connections", DELETE, None),
    one(BROKER, "1", "num.network.threads", SET, "4"),
    describe((BROKER, "1", ["num.network.threads"])),
    one(BROKER, "1", "num.network.threads", DELETE, None),
    one(BROKER, "1", "max.connections", SET, "50"),
    describe((BROKER, "1", ["max.connections"])),
    one(BROKER, "1", "max.connections", DELETE, None),
    one(BROKER, "1", "leader.replication.throttled.rate", SET, "1000"),
    describe((BROKER, "1", ["leader.replication.throttled.rate"])),
    one(BROKER, "1", "leader.replication.throttled.rate", DELETE, None),
    one(BROKER, "", "unclean.leader.election.enable", SET, "true"),
    describe((TOPIC, "orders", ["unclean.leader.election.enable"])),
    one(BROKER, "", "unclean.leader.election.enable", DELETE, None),
    incremental((BROKER, "1", [["log.retention.ms", SET, "5"]]), validate_only=True),
    describe((BROKER, "1", ["log.retention.ms"])),
    replace((BROKER, "1", [["log.segment.bytes", "2000000"]])),
    describe((BROKER, "1", ["log.segment.bytes"])),
    replace((BROKER, "1", [])),
    describe((BROKER, "1", ["log.segment.bytes"])),
    replace((BROKER, "2", [["log.segment.bytes", "2000000"]])),
    replace((BROKER, "1", [["log.segment.bytes", "2"]])),
    describe((BROKER, "2", None)),
    describe((BROKER, "one", None)),
    describe((BROKER, "", ["log.retention.ms"])),
    describe((BROKER, "1", ["ssl.key.password", "ssl.keystore.type"])),
    describe((TOPIC, "orders", None), (5, "x", None)),
    # -- what the log says
    describe((LOGGER, "1", ["root"])),
    describe((LOGGER, "", None)),
    describe((LOGGER, "2", None)),
    describe((LOGGER, "one", None)),
    one(LOGGER, "1", "root", SET, "LOUD"),
    one(LOGGER, "1", "root", SET, "info"),
    one(LOGGER, "1", "root", DELETE, None),
    one(LOGGER, "1", "root", APPEND, "INFO"),
    one(LOGGER, "1", "root", SUBTRACT, "INFO"),
    one(LOGGER, "1", "root", 7, "INFO"),
    one(LOGGER, "1", "no.such.logger", SET, "INFO"),
    one(LOGGER, "1", "no.such.logger", DELETE, None),
    one(LOGGER, "2", "root", SET, "INFO"),
    one(LOGGER, "one", "root", SET, "INFO"),
    one(LOGGER, "", "root", SET, "INFO"),
    # -- subscriptions to the metrics of clients
    one(METRICS, "sub", "interval.ms", SET, "1000"),
    describe((METRICS, "sub", None)),
    one(METRICS, "sub", "interval.ms", SET, "5"),
    one(METRICS, "sub", "interval.ms", SET, "x"),
    one(METRICS, "sub", "interval.ms", SET, "9999999"),
    one(METRICS, "sub", "metrics", APPEND, "a.b"),
    one(METRICS, "sub", "metrics", APPEND, "c"),
    one(METRICS, "sub", "metrics", SUBTRACT, "c"),
    one(METRICS, "sub", "match", SET, "client_id=a.*"),
    one(METRICS, "sub", "match", SET, "client_id"),
    one(METRICS, "sub", "match", SET, "colour=a"),
    one(METRICS, "sub", "match", SET, "client_id=["),
    one(METRICS, "sub", "no.such", SET, "x"),
    one(METRICS, "", "interval.ms", SET, "1000"),
    describe((METRICS, "sub", None)),
    describe((METRICS, "sub", ["match"])),
    describe((METRICS, "nosub", None)),
    describe((METRICS, "", None)),
    replace((METRICS, "sub", [["interval.ms", "2000"]])),
    describe((METRICS, "sub", None)),
    # -- groups
    one(GROUP, "g", "consumer.session.timeout.ms", SET, "50000"),
    describe((GROUP, "g", None)),
    describe((GROUP, "other", None)),
    describe((GROUP, "", None)),
    one(GROUP, "g", "consumer.session.timeout.ms", SET, "5"),
    one(GROUP, "g", "consumer.session.timeout.ms", SET, "60001"),
    one(GROUP, "g", "consumer.session.timeout.ms", SET, "x"),
    one(GROUP, "g", "consumer.session.timeout.ms", SET, "0"),
    one(GROUP, "g", "consumer.heartbeat.interval.ms", SET, "1"),
    one(GROUP, "g", "consumer.heartbeat.interval.ms", SET, "15001"),
    one(GROUP, "g", "share.session.timeout.ms", SET, "1"),
    one(GROUP, "g", "share.session.timeout.ms", SET, "60001"),
    one(GROUP, "g", "share.heartbeat.interval.ms", SET, "1"),
    one(GROUP, "g", "share.heartbeat.interval.ms", SET, "15001"),
    one(GROUP, "g", "share.record.lock.duration.ms", SET, "999"),
    one(GROUP, "g", "share.record.lock.duration.ms", SET, "1001"),
    one(GROUP, "g", "share.record.lock.duration.ms", SET, "60001"),
    one(GROUP, "g", "share.auto.offset.reset", SET, "earliest"),
    one(GROUP, "g", "share.auto.offset.reset", SET, "Latest"),
    one(GROUP, "g", "share.auto.offset.reset", SET, "never"),
    one(GROUP, "g", "share.auto.offset.reset", SET, "by_duration:PT1H"),
    one(GROUP, "g", "share.auto.offset.reset", SET, "by_duration:-PT1H"),
    one(GROUP, "g", "share.auto.offset.reset", SET, "by_duration:1h"),
    one(GROUP, "g", "share.auto.offset.reset", SET, "by_duration:"),
    one(GROUP, "g", "share.isolation.level", SET, "read_committed"),
    one(GROUP, "g", "share.isolation.level", SET, "READ_COMMITTED"),
    one(GROUP, "g", "share.isolation.level", SET, "read_all"),
    one(GROUP, "g", "streams.session.timeout.ms", SET, "1"),
    one(GROUP, "g", "streams.session.timeout.ms", SET, "60001"),
    one(GROUP, "g", "streams.heartbeat.interval.ms", SET, "1"),
    one(GROUP, "g", "streams.heartbeat.interval.ms", SET, "15001"),
    one(GROUP, "g", "streams.num.standby.replicas", SET, "-1"),
    one(GROUP, "g", "streams.num.standby.replicas", SET, "3"),
    one(GROUP, "g", "streams.initial.rebalance.delay.ms", SET, "-1"),
    one(GROUP, "g", "streams.initial.rebalance.delay.ms", SET, "0"),
    one(GROUP, "g", "no.such", SET, "1"),
    one(GROUP, "g", "no.such", APPEND, "1"),
    one(GROUP, "", "consumer.session.timeout.ms", SET, "50000"),
    one(GROUP, "g h/i", "consumer.session.timeout.ms", SET, "50000"),
    describe((GROUP, "g", None)),
    # -- which resources there are
    listing(),
    listing(version=0),
    listing(TOPIC),
    listing(BROKER, LOGGER),
    listing(GROUP, METRICS),
    listing(GROUP, GROUP),
    listing(7),
    listing(0),
    one(METRICS, "sub", "interval.ms", DELETE, None),
    one(GROUP, "g h/i", "consumer.session.timeout.ms", DELETE, None),
    listing(GROUP, METRICS),
    describe((TOPIC, "orders", None), (BROKER, "1", ["num.io.threads"]), (TOPIC, "nowhere", None)),
    describe((GROUP, "g", ["share.isolation.level", "x"]), synonyms=False, version=1),
    describe((BROKER, "1", ["num.io.threads", "broker.id"]), synonyms=False, version=0),
    describe((BROKER, "1", None)),
]


def message_of(case: dict[str, Any]) -> Message:
    """The request that a case stands for."""
    if case["api"] == "IncrementalAlterConfigs":
        return incremental_alter_configs_request.IncrementalAlterConfigsRequest(
            [
                incremental_alter_configs_request.AlterConfigsResource(
                    kind, name, [incremental_alter_configs_request.AlterableConfig(key, op, value) for key, op, value in configs]
                )
                for kind, name, configs in case["resources"]
            ],
            case["validate_only"],
        )
    if case["api"] == "AlterConfigs":
        return alter_configs_request.AlterConfigsRequest(
            [
                alter_configs_request.AlterConfigsResource(
                    kind, name, [alter_configs_request.AlterableConfig(key, value) for key, value in configs]
                )
                for kind, name, configs in case["resources"]
            ],
            case["validate_only"],
        )
    if case["api"] == "ListConfigResources":
        return list_config_resources_request.ListConfigResourcesRequest(case["types"])
    return describe_configs_request.DescribeConfigsRequest(
        [describe_configs_request.DescribeConfigsResource(kind, name, keys) for kind, name, keys in case["resources"]], case["synonyms"]
    )


def shown(message: Any) -> Any:
    """A response as JSON, in an order of its own where Kafka's is that of a hash map."""
    if isinstance(message, Message):
        return {name: shown(getattr(message, name)) for name in message.field_names()}
    if isinstance(message, list):
        entries = [shown(entry) for entry in message]
        named = all(isinstance(entry, dict) and ("resource_name" in entry or "read_only" in entry) for entry in entries)
        return (
            sorted(entries, key=lambda entry: (entry.get("resource_type", 0), entry.get("resource_name", entry.get("name"))))
            if named
            else entries
        )
    return message


def ask(connection: socket.socket, request: Message, name: str, version: int) -> Message:
    api = APIS_BY_NAME[name]
    connection.sendall(b"".join(bytes(part) for part in request_frame(request, api, version, 7, "config-cases")))
    size = int.from_bytes(_receive(connection, 4), "big")
    _, reader = parse_response_header(_receive(connection, size), api.response_header_version(version))
    return api.response.read(reader, version)


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("The broker has closed the connection")
        data += part
    return data


def main() -> None:
    host, port = sys.argv[1].rsplit(":", 1)
    address = (host, int(port))
    answers: list[Any] = []
    topic = create_topics_request.CreateTopicsRequest([create_topics_request.CreatableTopic("orders", 1, 1)], 30_000)
    with socket.create_connection(address, 10) as connection:
        ask(connection, topic, "CreateTopics", 5)
    for case in CASES:
        with socket.create_connection(address, 10) as connection:
            try:
                answer = shown(ask(connection, message_of(case), case["api"], case["version"]))
            except (ConnectionError, TimeoutError) as error:
                answer = "closed" if isinstance(error, ConnectionError) else "none"
        answers.append({"question": case, "answer": answer})
        if "Alter" in case["api"]:
            time.sleep(0.4)  # a broker of Kafka hears of a change some time after the client was told that it is made
    properties = parse_properties(Path(sys.argv[2]).read_text())
    lines = ",\n".join(json.dumps(answer) for answer in answers)
    print(f'{{"server_properties": {json.dumps(properties)},\n"answers": [\n{lines}\n]}}')


if __name__ == "__main__":
    main()
