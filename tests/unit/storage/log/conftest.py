"""A simulated disk, its host, and a log on it."""

from __future__ import annotations

import pytest

from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log.log import Log
from tests.unit.storage.logs import (
    RecordingHost,
    make_log,
)


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


@pytest.fixture
def host() -> RecordingHost:
    return RecordingHost()


@pytest.fixture
def log(disk: SimulatedFiles, host: RecordingHost) -> Log:
    return make_log(disk, host=host)
