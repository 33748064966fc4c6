"""A broker of Apache Kafka in ZooKeeper mode, in the place of one of ours: same settings, same ZooKeeper, same handling."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests import kafka
from tests.cluster import BrokerProcess

LOGGING = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaServer=info",  # says when it has started
)
PROTOCOL = {"inter.broker.protocol.version": "3.9"}


class ApacheKafka(BrokerProcess):
    READY = "] started\n"

    def __init__(self, number: int, directory: Path, zookeeper: str, settings: Mapping[str, str]) -> None:
        super().__init__(number, directory, zookeeper, {**PROTOCOL, **settings})

    def command(self, properties: Path) -> list[str]:
        jars = kafka.available(kafka.zookeeper_mode)
        return [*kafka.java(jars, "-Xmx384m", *LOGGING), "kafka.Kafka", str(properties)]
