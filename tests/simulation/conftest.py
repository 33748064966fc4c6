"""Mistakes can be put into plain Python only: `make test` looks for them in its uncompiled half."""

from __future__ import annotations

import pytest

import barnabas.broker.partitions.partition

IS_COMPILED = not str(barnabas.broker.partitions.partition.__file__).endswith(".py")

collect_ignore = ["test_known_mistakes.py"] if IS_COMPILED else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests that put a mistake into a class, where it is compiled."""
    left_out = [item for item in items if IS_COMPILED and item.get_closest_marker("plain_python")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
