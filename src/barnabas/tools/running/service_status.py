"""What systemd shows of a running broker, by the same facts as /health: whether it is ready, and that its event loop runs.

`systemctl status` shows the problems of /health/ready. With WatchdogSec in the unit, a broker whose event loop does not run any more, which
/health/live could not answer either, is restarted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.server.server import BrokerServer

INTERVAL_S: Final = 10.0


async def report_status(server: BrokerServer, notify: Callable[[str], None], interval_s: float = INTERVAL_S) -> None:
    """Runs until it is cancelled."""
    while True:
        await asyncio.sleep(interval_s)
        notify(f"WATCHDOG=1\nSTATUS={status_of(server)}")


def status_of(server: BrokerServer) -> str:
    problem = problem_of(server)
    return f"Not ready: {problem}" if problem else "Ready"


def problem_of(server: BrokerServer) -> str:
    """Why the broker is not ready; empty if it is."""
    from barnabas.broker.exposition.health import readiness

    return "; ".join(check.problem for check in readiness(server.observed) if not check.is_good)
