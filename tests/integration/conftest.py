"""What the integration tests share: one broker for all of them, and topics that are made for one test each."""

from __future__ import annotations

import itertools
from collections.abc import Generator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests import broker
from tests.broker import TopicMaker


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """host:port of the broker under test: our own in a process, or the one that BARNABAS_TEST_BOOTSTRAP names."""
    given = broker.given_bootstrap()
    if given is not None:
        yield given
        return
    with broker.running(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture(scope="session")
def new_topic(bootstrap: str, worker_id: str) -> TopicMaker:
    """Makes an empty topic with a name of its own: `new_topic("hint", partitions=1, **config)`, dots in config keys written as `_`.

    Records are kept forever, for their timestamps may be of any age.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    numbers = itertools.count()
    names = set(admin.list_topics(timeout=30).topics)

    def make(hint: str, partitions: int = 1, **config: str) -> str:
        name = next(name for number in numbers if (name := f"{hint}-{worker_id}-{number}") not in names)
        settings = {"retention.ms": "-1"} | {key.replace("_", "."): value for key, value in config.items()}
        made = admin.create_topics([NewTopic(name, partitions, replication_factor=1, config=settings)])
        made[name].result(timeout=30)
        return name

    return make
