"""Pytest fixtures for tests of Kafka applications: a real broker for the session, brokers for one test, and empty topics.

pytest loads this plugin in every project that has Barnabas installed. So it imports nothing of Barnabas until a test needs a broker, and a
project's own fixture with the same name takes precedence.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from barnabas.testing import EmbeddedBroker

_FIXTURES = frozenset(("broker", "broker_topic", "new_broker"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Imports the broker before the first test that needs it, so that the import does not count as time of that test."""
    if not session.config.option.collectonly and any(_FIXTURES.intersection(getattr(item, "fixturenames", ())) for item in session.items):
        import barnabas.testing  # noqa: F401


@pytest.fixture(scope="session")
def broker_config() -> dict[str, Any]:
    """Settings of the session's broker, by Kafka's names; override it in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def broker_secure() -> bool:
    """Whether the session's broker has TLS, passwords and access lists; override it in conftest.py."""
    return False


@pytest.fixture(scope="session")
def broker(broker_config: dict[str, Any], broker_secure: bool) -> Generator[EmbeddedBroker, None, None]:
    """One broker for all tests of the session: `broker.bootstrap_servers`, or `broker.client_config` if it is secure."""
    from barnabas import testing

    with testing.broker(config=broker_config, secure=broker_secure) as running:
        yield running


@pytest.fixture
def new_broker() -> Generator[Callable[..., EmbeddedBroker], None, None]:
    """Starts a broker for this test only: `new_broker(topics=[…], secure=True, **settings)`, with the arguments of
    `barnabas.testing.broker`."""
    from barnabas import testing

    with ExitStack() as running:
        yield lambda *arguments, **settings: running.enter_context(testing.broker(*arguments, **settings))


_numbers = itertools.count()


@pytest.fixture
def broker_topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    """The name of an empty topic with one partition, created for this test on the session's broker."""
    readable = "".join(
        character if character.isascii() and (character.isalnum() or character in "._-") else "-" for character in request.node.name
    )[:200]
    return broker.create_topic(f"{readable}-{next(_numbers)}")
