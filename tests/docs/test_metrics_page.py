"""docs/metrics.md has every metric that a broker shows."""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.exposition.reference import BEGIN, table

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_table_of_metrics_is_current() -> None:
    """After a change: python -m barnabas.broker.exposition.reference docs/metrics.md"""
    assert PAGE.read_text().partition(BEGIN)[2] == table()
