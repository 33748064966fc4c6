"""Two brokers, ours and an Apache Kafka, that ask no coordinator before they take the records of a transaction, and that soon forget
producers whose records are a day old."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import broker, kafka_server
from tests.integration.idempotence.walk import Teller

SETTINGS = {
    "transaction.partition.verification.enable": "false",
    "producer.id.expiration.ms": "86400000",
    "producer.id.expiration.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "500",
}
HOUR_MS = 3_600_000

Tellers = Callable[..., tuple[Teller, Teller]]


@pytest.fixture(scope="session")
def start_ms() -> int:
    """When the records were made: a while ago, and for both brokers at the same time."""
    return time.time_ns() // 1_000_000 - HOUR_MS


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, str], None, None]:
    """The addresses, ours first."""
    data: Path = tmp_path_factory.mktemp("idempotence")
    options = [word for key, value in SETTINGS.items() for word in ("--override", f"{key}={value}")]
    with (
        kafka_server.running(data, 1, SETTINGS) as kafka,
        broker.running(data / "ours", options, broker.CRASH) as ours,
    ):
        yield ours, kafka


@pytest.fixture
def tellers(both: tuple[str, str], start_ms: int, worker_id: str) -> Generator[Tellers, None, None]:
    """Those who tell both brokers, ours first, about a new topic."""
    with ExitStack() as open_ones:

        def make(hint: str, config: Mapping[str, str] | None = None) -> tuple[Teller, Teller]:
            ours, kafka = (Teller(bootstrap, f"{hint}-{worker_id}", start_ms, config) for bootstrap in both)
            for teller in (ours, kafka):
                open_ones.callback(teller.close)
            return ours, kafka

        yield make
