"""The facts of /health/ready in `barnabas status` and for systemd."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from barnabas.administration.cluster_health import Health
from barnabas.broker.exposition.observed import BrokerState
from barnabas.broker.server.server import BrokerServer
from barnabas.tools.connecting.readiness import readiness_url, unreadiness
from barnabas.tools.running.service_status import report_status
from tests.unit.broker.exposition.test_metrics_listener import serving


def test_a_broker_that_is_not_ready_says_why_to_status_and_to_systemd(tmp_path: Path) -> None:
    async def use(server: BrokerServer) -> None:
        assert server.metrics is not None
        assert server.metrics.address is not None
        url = readiness_url(server.metrics.address, "elsewhere")
        assert await asyncio.to_thread(unreadiness, url) == ""
        assert await told(server) == "WATCHDOG=1\nSTATUS=Ready"
        server.observed.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        why = await asyncio.to_thread(unreadiness, url)
        assert why == "the broker is pending controlled shutdown"
        assert await told(server) == f"WATCHDOG=1\nSTATUS=Not ready: {why}"
        server.observed.state = BrokerState.RUNNING
        health = Health("c", 5, not_ready={5: why})
        assert [problem.text for problem in health.problems()] == [f"broker 5 is not ready: {why}"]

    async def told(server: BrokerServer) -> str:
        said: asyncio.Queue[str] = asyncio.Queue()
        reporting = asyncio.ensure_future(report_status(server, said.put_nowait, 0.001))
        try:
            return await said.get()
        finally:
            reporting.cancel()

    serving(tmp_path, use)


def test_a_broker_that_cannot_be_asked_from_here_is_no_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    assert unreadiness(f"http://127.0.0.1:{port}/health/ready") == ""


def test_a_listener_on_all_addresses_is_asked_at_the_host_of_its_broker() -> None:
    assert readiness_url("http://:9404", "broker-1") == "http://broker-1:9404/health/ready"
    assert readiness_url("https://metrics:9404", "broker-1") == "https://metrics:9404/health/ready"
