"""What every test shares: hypothesis profiles, and CI's rule that nothing may be skipped."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile("barnabas", deadline=None, print_blob=True)
settings.load_profile("barnabas")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """On CI a skipped test is a failed one: what could not be checked there was not checked at all."""
    if report.skipped and os.environ.get("CI"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: {reason}, and CI allows no skips"
