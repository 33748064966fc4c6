"""Every route of the console gets requests of all kinds. `make fuzz-console` sends many more."""

from __future__ import annotations

from barnabas.console.app import make_app
from barnabas.console.config import ClusterConfig, ConsoleConfig
from tests.fuzz.console import campaign

REQUESTS = 1600
SEED = 1


def test_no_request_is_answered_with_500_or_leaves_an_exception_in_the_log() -> None:
    report = campaign.run(SEED, range(REQUESTS))
    assert not report.findings, f"seed {SEED}:\n" + "\n".join(report.findings[:10])
    table = make_app(ConsoleConfig((ClusterConfig("none", {"bootstrap.servers": "127.0.0.1:1"}),))).state.routes
    assert report.routes == {f"{route.method} {route.path}" for route in table}
    assert report.statuses[200] > REQUESTS / 10  # pages are reached behind the checks
    assert report.statuses[303] > 0
    assert report.statuses[422] > 0
