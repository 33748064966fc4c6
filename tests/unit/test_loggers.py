"""The table between Python's loggers and Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

import barnabas
from barnabas import loggers

SOURCE = Path(barnabas.__file__).parent


@pytest.mark.parametrize("module", loggers.MODULES)
def test_every_row_names_a_module_or_a_package(module: str) -> None:
    path = SOURCE.joinpath(*module.split(".")[1:])
    assert path.is_dir() or path.with_suffix(".py").exists() or list(path.parent.glob(f"{path.name}.*"))


@pytest.mark.parametrize(
    ("logger", "name"),
    [
        ("barnabas.controller.changes.reassignments", "kafka.controller.KafkaController"),
        ("barnabas.broker.replication.follower_fetch", "kafka.server.ReplicaFetcherThread"),
        ("barnabas.brokers", "kafka"),  # a prefix ends at a dot
        ("kafka.request.logger.Fetch", "kafka.request.logger.Fetch"),
        ("asyncio", "asyncio"),
    ],
)
def test_a_logger_has_kafkas_name(logger: str, name: str) -> None:
    assert loggers.kafka_name(logger) == name


def test_the_loggers_of_kafkas_settings_are_known() -> None:
    of_kafka = {"kafka", "org.apache.kafka", "kafka.controller", "kafka.log.LogCleaner", "kafka.request.logger", "state.change.logger"}
    assert of_kafka | {"kafka.authorizer.logger"} <= loggers.KNOWN
