"""The one middleware: every request goes through it, and it refuses by default.

It checks in this order: the Host header (with another name, a page of another site uses this address), the site that sends the
request, the origin of a POST, the route, the login, the size and type of a form, the CSRF token, and whether the console may write. Only
then is there a visit, and a page without a visit is never called. Every response gets the headers of `web/headers.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.console.cluster.sessions import ClusterSessions
from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.failures import Failure
from barnabas.console.web.headers import secured
from barnabas.console.web.routes import Match, Route, RouteAccess, RouteTable
from barnabas.console.web.visit import House, Visit, prefix_of

STATIC: Final = "/static/"
VISIT: Final = "barnabas.visit"  # the keys of the scope that the guard sets
MATCH: Final = "barnabas.match"
_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
_EVERY: Final = ("0.0.0.0", "::", "")
BODY_S: Final = 30  # from the header of a form to its end
_FIELDS_MAX: Final = 20_000
_CLUSTERS: Final = "clusters"
_LOGIN: Final = "/login"
_FORM: Final = "application/x-www-form-urlencoded"

_log = logging.getLogger(__name__)


class RequestRefused(Exception):
    def __init__(self, status: int, title: str, text: str, fix: str = "") -> None:
        super().__init__(title)
        self.failure = Failure(status, title, text, fix)


@dataclass(frozen=True)
class _Place:
    """The cluster that a path names, and the rest of the path."""

    cluster: ClusterConfig
    prefix: str
    path: bytes


class Guard:
    """ASGI middleware. `app` answers static files, and calls the handler of `scope[MATCH]` with `scope[VISIT]`."""

    def __init__(self, app: ASGIApp, *, table: RouteTable, house: House, sessions: ClusterSessions) -> None:
        self._app = app
        self._table = table
        self._house = house
        self._sessions = sessions
        self._config = house.config
        self._cookie = f"barnabas_console_{house.config.port}"  # cookies do not know ports
        self._hosts = allowed_hosts(house.config)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no websockets: uvicorn closes the connection
        request = Request(scope, receive)
        is_static = scope["path"].startswith(STATIC)
        cookie: list[tuple[bytes, bytes]] = []

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*secured(list(message.get("headers", ())), is_static=is_static), *cookie]}
            await send(message)

        try:
            self._check_host(request)
            _check_site(request)
            if is_static:
                if request.method not in ("GET", "HEAD"):
                    raise RequestRefused(405, "Not possible here", "Static files can only be read.")
                await self._app(scope, receive, send_secured)
                return
            await self._guarded(request, scope, receive, send_secured, cookie)
        except RequestRefused as refused:
            response = PlainTextResponse(
                f"{refused.failure.title}. {refused.failure.text} {refused.failure.fix}".strip() + "\n", refused.failure.status
            )
            await response(scope, receive, send_secured)
        except ClientDisconnect:
            return

    async def _guarded(self, request: Request, scope: Scope, receive: Receive, send: Send, cookie: list[tuple[bytes, bytes]]) -> None:
        known = self._house.visitors.visitor(request.cookies.get(self._cookie, ""))
        visitor = known or self._house.visitors.new()
        if known is None:
            cookie.append(self._cookie_header(visitor))
        place = self._place(scope)
        match = self._table.match(request.method, place.path)
        visit = self._visit(request, place, visitor, match.parameters if isinstance(match, Match) else {}, (), cookie)
        response: Response | None = None
        try:
            if not isinstance(match, Match):
                response = visit.failed(_unknown(match)) if visit.user is not None or not place.cluster.logs_in else _to_login(visit)
            elif match.route.access is not RouteAccess.PUBLIC and place.cluster.logs_in and visit.user is None:
                response = _to_login(visit)
            elif request.method == "POST":
                form = await self._form(request, match.route, known)
                if match.route.access is RouteAccess.CHANGE and not self._config.may_write:
                    raise RequestRefused(
                        403,
                        "This console only reads",
                        "It was started without --console-write.",
                        "Start it with --console-write to change the cluster.",
                    )
                visit = self._visit(request, place, visitor, match.parameters, form, cookie)
        except RequestRefused as refused:
            if not isinstance(match, Match) or known is None:
                raise
            response = visit.failed(refused.failure)
        if response is not None:
            await response(scope, receive, send)
            return
        scope[VISIT], scope[MATCH] = visit, match
        await self._app(scope, receive, send)

    def _visit(
        self,
        request: Request,
        place: _Place,
        visitor: str,
        parameters: Mapping[str, str],
        form: Sequence[tuple[str, str]],
        cookie: list[tuple[bytes, bytes]],
    ) -> Visit:
        login = self._house.visitors.login(visitor, place.cluster.name) if place.cluster.logs_in else None
        session = None
        if login is not None:
            session = self._sessions.of_user(place.cluster, login.user, login.password)
        elif not place.cluster.logs_in:
            session = self._sessions.of_cluster(place.cluster)
        return Visit(
            request,
            self._house,
            visitor=visitor,
            cluster_name=place.cluster.name,
            prefix=place.prefix,
            session=session,
            user=login.user if login is not None else None,
            parameters=parameters,
            form=form,
            on_new_visitor=lambda new: cookie.__setitem__(slice(None), [self._cookie_header(new)]),
        )

    def _cookie_header(self, visitor: str) -> tuple[bytes, bytes]:
        secure = "; Secure" if self._config.scheme == "https" else ""
        value = f"{self._cookie}={self._house.visitors.cookie(visitor)}; Path=/; HttpOnly; SameSite=Strict{secure}"
        return b"set-cookie", value.encode()

    def _check_host(self, request: Request) -> None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or host_name(hosts[0]) not in self._hosts:
            raise RequestRefused(
                421,
                "This console has another name",
                "The Host header is none of its names.",
                f"Open {self._config.scheme}://localhost:{self._config.port}, or start it with --host-name NAME.",
            )

    def _place(self, scope: Scope) -> _Place:
        path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        parts = path.split(b"/", 3)
        if len(parts) >= 3 and parts[1] == _CLUSTERS.encode():
            cluster = self._config.cluster(parts[2].decode("ascii", "replace"))
            if cluster is None:
                raise RequestRefused(404, "Unknown cluster", "The console has no cluster of this name.", "Open / for the first one.")
            return _Place(cluster, prefix_of(self._config, cluster.name), b"/" + (parts[3] if len(parts) > 3 else b""))
        return _Place(self._config.clusters[0], "", path)

    async def _form(self, request: Request, route: Route, known: str | None) -> list[tuple[str, str]]:
        """The fields of a form. Raises RequestRefused, also without the visitor's CSRF token."""
        origin = request.headers.get("origin")
        if origin is not None and origin != f"{self._config.scheme}://{request.headers['host']}":
            raise RequestRefused(403, "The request comes from another page", f"Its origin is {origin[:100]}.")
        if not _is_own(request):
            raise RequestRefused(403, "The request comes from another page", "The browser says so.")
        if request.headers.get("content-type", _FORM).partition(";")[0].strip().lower() != _FORM:
            raise RequestRefused(415, "Not a form of this console", f"A form is sent as {_FORM}.")
        body = await _body(request, route.form_bytes_max)
        try:
            fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX)
        except ValueError:
            raise RequestRefused(400, "Not a form of this console", f"It must be UTF-8 with at most {_FIELDS_MAX:,} fields.") from None
        token = request.headers.get("x-csrf-token") or next((value for name, value in fields if name == "csrf"), "")
        if known is None or not self._house.visitors.has_token(known, token):
            raise RequestRefused(
                403,
                "This page is too old",
                "The console was started again since, or the cookie is missing.",
                "Load the page again, and repeat.",
            )
        return [(name, value) for name, value in fields if name != "csrf"]


def allowed_hosts(config: ConsoleConfig) -> frozenset[str]:
    """The names that a Host header may have, in lower case, IPv6 in brackets."""
    own = () if config.host in _EVERY else (config.host,)
    return frozenset(
        host_name(f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name) for name in (*_LOCAL, *own, *config.host_names)
    )


def host_name(host: str) -> str:
    """The name in a Host header, without the port."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower().rstrip(".")


def _is_own(request: Request) -> bool:
    """Whether a page of this console sends the request, or a person who enters the address. Old browsers do not say."""
    return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


def _check_site(request: Request) -> None:
    """Refuses what a page of another site loads. A link on such a page may lead here: its reader sees the console, the page does not."""
    if not _is_own(request) and request.headers.get("sec-fetch-dest") != "document":
        raise RequestRefused(
            403, "The request comes from another site", "A page of another site may only link to this console.", "Open the address itself."
        )


async def _body(request: Request, bytes_max: int) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > bytes_max:
                    raise RequestRefused(413, "The form is too large", f"It may have {bytes_max:,} bytes.", "Send less at once.")
    except TimeoutError:
        raise RequestRefused(408, "The form did not arrive in time", f"It may take {BODY_S} seconds.", "Send it again.") from None
    return bytes(body)


def _unknown(methods: frozenset[str]) -> Failure:
    if methods:
        return Failure(
            405, "Not possible here", f"This address takes {' and '.join(sorted(methods))}.", "Go back, and use the page's own buttons."
        )
    return Failure(404, "There is no such page", "The address is none of this console.", "Choose a page from the menu.")


def _to_login(visit: Visit) -> Response:
    path = visit.request.url.path
    following = path if visit.request.method == "GET" and not visit.is_htmx else None
    query = visit.request.url.query
    url = visit.url(_LOGIN, next=f"{following}?{query}" if following and query else following)
    if visit.is_htmx:
        return Response(status_code=401, headers={"HX-Redirect": url})
    if "text/event-stream" in visit.request.headers.get("accept", ""):
        return Response("log in first\n", 401)
    return RedirectResponse(url, 303)


def check_visit(scope: Scope) -> tuple[Visit, Match]:
    """The visit that the guard made. A request that did not go through the guard has none, and gets no page."""
    if VISIT not in scope or MATCH not in scope:
        raise HTTPException(403)
    return scope[VISIT], scope[MATCH]
