"""The brokers of the cluster with their load, and those that are missing."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from barnabas.console.cluster.broker_load import absent_brokers, broker_loads
from barnabas.console.web.routes import get
from barnabas.console.web.visit import Visit


async def brokers(visit: Visit) -> Response:
    snapshot = await visit.cluster.snapshots.current()
    return visit.page("brokers.html", snapshot=snapshot, brokers=broker_loads(snapshot), absent=absent_brokers(snapshot))


ROUTES: Final = (get("/brokers", brokers),)
