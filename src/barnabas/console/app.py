"""The console as an ASGI application: the routes of all pages behind one guard."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.routing import Route as StarletteRoute
from starlette.staticfiles import StaticFiles

from barnabas.client.clock import SystemClock
from barnabas.console.cluster.sessions import ClusterSessions
from barnabas.console.config import ConsoleConfig
from barnabas.console.failures import Failure, failure_of
from barnabas.console.messages.places import all_closed
from barnabas.console.pages import (
    access,
    broker,
    brokers,
    dead_letters,
    message_files,
    messages,
    overview,
    pipelines,
    quotas,
    send_message,
    telemetry,
    transactions,
    users,
)
from barnabas.console.pages.groups import group, group_reset, groups
from barnabas.console.pages.topics import reassignments, topic, topic_clients, topic_settings, topics
from barnabas.console.web.events import EventStreams
from barnabas.console.web.guard import Guard, check_visit
from barnabas.console.web.login import LoginPages
from barnabas.console.web.menu import MENU
from barnabas.console.web.routes import Match, Route, RouteAccess, RouteTable
from barnabas.console.web.sessions import Login, Visitors
from barnabas.console.web.visit import House, Visit
from barnabas.errors import KafkaError

# One line for each page.
PAGES: Final[tuple[tuple[Route, ...], ...]] = (
    overview.ROUTES,
    brokers.ROUTES,
    broker.ROUTES,
    messages.ROUTES,
    message_files.ROUTES,
    send_message.ROUTES,
    dead_letters.ROUTES,
    pipelines.ROUTES,
    transactions.ROUTES,
    access.ROUTES,
    users.ROUTES,
    quotas.ROUTES,
    telemetry.ROUTES,
    topics.ROUTES,
    topic.ROUTES,
    topic_settings.ROUTES,
    topic_clients.ROUTES,
    groups.ROUTES,
    group.ROUTES,
    group_reset.ROUTES,
    reassignments.ROUTES,
)
_FAULT: Final = Failure(
    500,
    "A fault in the console",
    "The console made a mistake; its log has the details.",
    "Load the page again. If it happens again, please report it.",
)
_NO_NAME: Final = Failure(404, "There is no such name", "The address is not UTF-8, as all names are.", "Choose a page from the menu.")
_STATUS_FAILED: Final = 400

_log = logging.getLogger(__name__)


def make_app(config: ConsoleConfig) -> Starlette:
    """The application of these clusters. It opens no connection before a page needs it."""
    clock = SystemClock()
    sessions = ClusterSessions(clock.monotonic_ms)

    def on_end(login: Login) -> None:
        if not any((other.cluster, other.user) == (login.cluster, login.user) for other in visitors.logins):
            sessions.forget(login.cluster, login.user, login.password)

    visitors = Visitors(clock.monotonic_ms, on_end)
    table = RouteTable([*(route for routes in PAGES for route in routes), *LoginPages().routes])
    menu = tuple(entry for entry in MENU if isinstance(table.match("GET", entry[0].encode()), Match))
    house = House(config, visitors, EventStreams(), menu)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        sweeps = [asyncio.create_task(sessions.sweep()), asyncio.create_task(visitors.sweep())]
        yield
        for sweep in sweeps:
            sweep.cancel()
            with suppress(asyncio.CancelledError):
                await sweep
        await all_closed()
        await sessions.close()

    app = Starlette(
        routes=[
            Mount("/static", StaticFiles(packages=[("barnabas.console", "static")])),
            StarletteRoute("/{path:path}", _page, methods=["GET", "HEAD", "POST"]),
        ],
        middleware=[Middleware(Guard, table=table, house=house, sessions=sessions)],
        lifespan=lifespan,
    )
    app.state.routes = table.routes  # for tests that try every route
    return app


async def _page(request: Request) -> Response:
    visit, match = check_visit(request.scope)
    response = await _answer(request, visit, match)
    if match.route.access is RouteAccess.CHANGE and response.status_code >= _STATUS_FAILED:
        visit.audit("change-failed", f"{request.url.path}: status {response.status_code}, made perhaps in part")
    return response


async def _answer(request: Request, visit: Visit, match: Match) -> Response:
    try:
        return await match.route.handler(visit)
    except KafkaError as error:
        return visit.failed(failure_of(error))
    except UnicodeEncodeError:
        return visit.failed(_NO_NAME)
    except Exception:
        _log.exception("%s %s failed", request.method, match.route.path)
        return visit.failed(_FAULT)
