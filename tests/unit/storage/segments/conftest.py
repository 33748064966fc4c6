"""A simulated disk for the tests of segments."""

from __future__ import annotations

import pytest

from barnabas.simulation.disk import SimulatedFiles


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()
