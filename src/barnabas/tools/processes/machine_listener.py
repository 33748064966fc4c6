"""The HTTP listener of a machine as one: /health/live, /health/ready and /metrics of all its broker processes together.

It has the port of metrics.listener, which probes know; the brokers have the ports after it, with everything that a single broker shows.
"""

from __future__ import annotations

import errno
import json
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from barnabas.endpoint import host_and_port
from barnabas.tools.processes.machine import Machine
from barnabas.tools.processes.process_life import LifeState

if TYPE_CHECKING:
    from barnabas.broker.config.metrics_listener import MetricsListener
    from barnabas.broker.exposition.http_server import HttpRequest, HttpResponse

PORTS_TRIED: Final = 100
_JSON: Final = "application/json"
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_log = logging.getLogger(__name__)


class MachineListener:
    """`start` never stops the machine from starting: a listener that cannot be bound is a warning."""

    def __init__(self, machine: Machine, listener: MetricsListener) -> None:
        from barnabas.broker.exposition.http_server import HttpServer

        self.address: str | None = None  # http://HOST:PORT, once it is bound
        self._machine = machine
        self._listener = listener
        self._http = HttpServer(self._answer)

    async def start(self) -> None:
        """Binds the port or, if it is taken, the next one that is not."""
        host, first = self._listener.host, self._listener.port
        for port in range(first, min(first + PORTS_TRIED, 65_536) if first else 1):
            try:
                await self._http.start(host, port)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                _log.warning("The machine has no health: metrics.listener cannot be bound to %s: %s", host_and_port(host, port), error)
                return
            self.address = f"http://{host_and_port(host or 'localhost', self._http.port)}"
            return
        _log.warning("The machine has no health: port %d of metrics.listener and the %d after it are taken", first, PORTS_TRIED - 1)

    async def stop(self) -> None:
        await self._http.stop()

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        from barnabas.broker.exposition.http_server import HttpResponse

        match request.path:
            case "/health/live":
                return HttpResponse(HTTPStatus.OK, json.dumps({"status": "good"}) + "\n", _JSON)
            case "/health/ready":
                body = readiness(self._machine)
                status = HTTPStatus.OK if body["status"] == "good" else HTTPStatus.SERVICE_UNAVAILABLE
                return HttpResponse(status, json.dumps(body) + "\n", _JSON)
            case "/metrics":
                return HttpResponse(HTTPStatus.OK, metrics_text(self._machine), _METRICS_TYPE)
            case "/":
                return HttpResponse(HTTPStatus.OK, "/metrics\n/health/live\n/health/ready\n")
            case _:
                return HttpResponse(HTTPStatus.NOT_FOUND, "Not Found\n")


def readiness(machine: Machine) -> dict[str, object]:
    """Good if each broker is ready, by its last report."""
    problems = machine.problems()
    brokers = {str(life.node_id): life.problem for life in machine.lives.values()}
    return {"status": "bad" if problems else "good", "problems": problems, "brokers": brokers}


def metrics_text(machine: Machine) -> str:
    lives = machine.lives.values()
    families = (
        ("barnabas_process_ready", "gauge", "1 if the broker process is ready for clients.", lambda life: int(not life.problem)),
        ("barnabas_process_up", "gauge", "1 if the broker process runs.", lambda life: int(life.state in _RUNS)),
        ("barnabas_process_restarts_total", "counter", "How often the broker process was started again.", lambda life: life.restarts),
    )
    lines = []
    for name, kind, meaning, read in families:
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        lines += [f'{name}{{node_id="{life.node_id}"}} {read(life)}' for life in lives]
    return "\n".join(lines) + "\n"


_RUNS: Final = (LifeState.STARTING, LifeState.READY)
