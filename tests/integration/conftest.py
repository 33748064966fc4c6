"""What the integration tests share: one broker for all of them, and topics that are made for one test each."""

from __future__ import annotations

from collections.abc import Generator

import pytest

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
    return broker.topic_maker(bootstrap, worker_id)
