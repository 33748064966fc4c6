"""What every test shares: hypothesis profiles, tests of Linux's features, the division between processes, and CI's rule against skips."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings
from xdist.remote import Producer

from barnabas import system
from tests.scheduling import ByFolder, FolderTimes

settings.register_profile("barnabas", deadline=None, print_blob=True)
settings.load_profile("barnabas")

_folder_times = FolderTimes()


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    """Restores the umask, which commands that make files set for their whole process."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests of Linux's features where these are missing or switched off."""
    if sys.platform != "linux" or system.PORTABLE:
        left_out = [item for item in items if item.get_closest_marker("linux")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFolder | None:
    """`-n` divides by folder; another `--dist` is left to pytest-xdist."""
    return ByFolder(config, log) if config.getvalue("dist") == "load" else None


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


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    process = getattr(report, "node", None)
    _folder_times.took(report.nodeid.split("::")[0], report.duration, "" if process is None else process.gateway.id, report.stop)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Beside the slowest tests, the folders: a test of a folder may be fast because another has started its broker."""
    if config.getoption("durations"):
        terminalreporter.section("time by folder")
        for line in _folder_times.lines():
            terminalreporter.write_line(line)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """On CI a skipped test is a failed one: what could not be checked there was not checked at all."""
    if report.skipped and os.environ.get("CI"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: {reason}, and CI allows no skips"
