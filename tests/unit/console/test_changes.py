"""What holds for every change that the console offers, by its table of routes."""

from __future__ import annotations

import inspect

import pytest

from barnabas.console.app import make_app
from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.web.routes import Route, RouteAccess

CONFIG = ConsoleConfig((ClusterConfig("none", {"bootstrap.servers": "127.0.0.1:1"}),))
CHANGES = [route for route in make_app(CONFIG).state.routes if route.access is RouteAccess.CHANGE]


@pytest.mark.parametrize("route", CHANGES, ids=lambda route: route.path)
def test_a_change_leaves_a_line_in_the_audit_log(route: Route) -> None:
    """`visit.changed` writes the line; a handler that responds in another way writes it itself. Refusals are logged for all routes."""
    source = inspect.getsource(route.handler)
    assert "visit.changed(" in source or "visit.audit(" in source
