"""What the tests of the console in a browser share: one cluster with two consoles, one Chromium, and one Spark with a query that runs."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from tests import chromium, spark_session
from tests.chromium import Browser
from tests.integration.console import world as worlds
from tests.integration.console.person import Person
from tests.integration.console.world import World

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LOCAL = {"localhost", "127.0.0.1"}


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World, None, None]:
    with worlds.running(tmp_path_factory.mktemp("world")) as running:
        yield running


@pytest.fixture(scope="session")
def chromium_browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser, None, None]:
    with chromium.running(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="session")
def query(world: World, tmp_path_factory: pytest.TempPathFactory) -> Generator[StreamingQuery, None, None]:
    """A Spark query that reads and writes topics of the cluster, and goes on for as long as tests run."""
    directory = tmp_path_factory.mktemp("spark")
    with spark_session.running(directory, connector=False) as spark:
        started = worlds.start_query(world, spark, directory / "checkpoint")
        yield started
        started.stop()


@pytest.fixture
def browser(chromium_browser: Browser) -> Generator[Browser, None, None]:
    """The browser, logged out. After each test nothing of a page may have run that should not, and no request may have left the machine."""
    chromium_browser.forget()
    chromium_browser.messages(), chromium_browser.requests()
    yield chromium_browser
    assert not chromium_browser.is_asking()
    assert chromium_browser.run("return window.__ran") is None
    assert chromium_browser.messages() == []
    assert chromium.hosts(chromium_browser.requests()) <= LOCAL


@pytest.fixture
def admin(world: World, browser: Browser) -> Person:
    """A super user at the console that may write."""
    person = Person(browser, world.writing)
    person.log_in("admin", world.admin_password)
    return person
