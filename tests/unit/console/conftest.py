"""A console in the test's process, before a broker of the test's process."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from starlette.testclient import TestClient

from barnabas.console.app import make_app
from barnabas.console.cluster import reader, sampler
from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.messages import filters, places, scan
from barnabas.console.pages import dead_letters, messages
from barnabas.console.web import login
from barnabas.testing import EmbeddedBroker, broker

MakeClient = Callable[..., TestClient]
PATIENT = {
    messages: ("LOOK_S",),
    dead_letters: ("LOOK_S", "TOPIC_LOOK_S", "LIST_S"),
    sampler: ("HURRY_S",),
    places: ("WAIT_S",),
    filters: ("MESSAGE_TIME_S_MAX",),
    scan: ("EXAMINE_S_MAX",),
}


@pytest.fixture(scope="package")
def kafka() -> Iterator[EmbeddedBroker]:
    with broker(topics={"orders": 3, "payments": 1}) as running:
        yield running


@pytest.fixture(autouse=True)
def log_levels() -> Iterator[None]:
    """The broker of these tests has the loggers of this process: their levels are restored."""
    before = {name: logger.level for name, logger in logging.root.manager.loggerDict.items() if isinstance(logger, logging.Logger)}
    yield
    for name, logger in logging.root.manager.loggerDict.items():
        if isinstance(logger, logging.Logger):
            logger.setLevel(before.get(name, logging.NOTSET))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page shows when its time is over depends on how busy the machine is: here each look comes to its end."""
    for module, names in PATIENT.items():
        for name in names:
            monkeypatch.setattr(module, name, 60.0)
    monkeypatch.setattr(login, "VERIFY_TIMEOUT_MS", 60_000)
    monkeypatch.setattr(reader, "CLUSTER_TIMEOUT_MS", 60_000)


@pytest.fixture
def console(kafka: EmbeddedBroker) -> Iterator[MakeClient]:
    """Makes clients of a console, by default one that may write."""
    with ExitStack() as cleanup:

        def make(config: ConsoleConfig | None = None, *, may_write: bool = True, **client: str) -> TestClient:
            cluster = ClusterConfig("local", {"bootstrap.servers": kafka.bootstrap_servers, **client})
            app = make_app(config or ConsoleConfig((cluster,), may_write=may_write))
            return cleanup.enter_context(TestClient(app, base_url="http://localhost:8080", follow_redirects=False))

        yield make


def token(text: str) -> str:
    """The CSRF token of a page."""
    match = re.search(r"X-CSRF-Token&#34;: &#34;([0-9a-f]+)", text)
    assert match is not None, text[:2_000]
    return match[1]
