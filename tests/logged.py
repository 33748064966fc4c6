"""Log lines of one module. A client that another test of this process left open may log at any time."""

from __future__ import annotations

from types import ModuleType

import pytest


def lines_of(caplog: pytest.LogCaptureFixture, module: ModuleType, level: int = 0) -> list[str]:
    """Messages that `module` logged at `level` or above."""
    return [record.getMessage() for record in caplog.records if record.name == module.__name__ and record.levelno >= level]
