"""A visit: one request, its user, and the cluster with the rights of that user. A page's handler receives it, and it makes the
responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from barnabas.console.cluster.session import ClusterSession
from barnabas.console.config import ConsoleConfig
from barnabas.console.failures import STATUS_REFUSED, Failure
from barnabas.console.web import rendering
from barnabas.console.web.audit import audit
from barnabas.console.web.events import EventStreams
from barnabas.console.web.menu import section
from barnabas.console.web.sessions import Visitors

ARGUMENT_CHARACTERS_MAX: Final = 10_000
ADDRESS_CHARACTERS_MAX: Final = 100


@dataclass(frozen=True)
class House:
    """What all visits of a console share."""

    config: ConsoleConfig
    visitors: Visitors
    streams: EventStreams
    menu: tuple[tuple[str, str, str], ...] = ()


class Visit:
    """`user` is None where nobody logs in. `cluster` may only be used by pages that need no login, or after one.

    The login page calls `on_new_visitor` with the new id of a visitor, whose cookie the guard then sends."""

    def __init__(
        self,
        request: Request,
        house: House,
        *,
        visitor: str,
        cluster_name: str,
        prefix: str,
        session: ClusterSession | None,
        user: str | None,
        parameters: Mapping[str, str],
        form: Sequence[tuple[str, str]] = (),
        on_new_visitor: Callable[[str], None] = lambda visitor: None,
    ) -> None:
        self.request = request
        self.config = house.config
        self.house = house
        self.visitor = visitor
        self.cluster_name = cluster_name
        self.user = user
        self.on_new_visitor = on_new_visitor
        self._prefix = prefix
        self._session = session
        self._parameters = parameters
        self._form = form

    @property
    def cluster(self) -> ClusterSession:
        assert self._session is not None, "the guard lets only logged-in visitors reach a page of the cluster"
        return self._session

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(cluster.name for cluster in self.config.clusters)

    @property
    def menu(self) -> tuple[tuple[str, str, str], ...]:
        """The pages that every page links to."""
        return self.house.menu

    @property
    def section(self) -> str:
        """The entry of the menu that this page belongs to."""
        return section(self.request.url.path.removeprefix(self._prefix))

    @property
    def may_write(self) -> bool:
        return self.config.may_write

    @property
    def csrf_token(self) -> str:
        return self.house.visitors.csrf_token(self.visitor)

    @property
    def is_htmx(self) -> bool:
        return self.request.headers.get("hx-request") == "true" and "hx-boosted" not in self.request.headers

    @property
    def address(self) -> str:
        """Where the request comes from, for the audit log and the throttle of logins. Behind the proxy with HTTPS, the proxy adds it at the
        end of X-Forwarded-For; what is before it was sent by the client, and may be forged."""
        if self.config.scheme == "https":
            forwarded = self.request.headers.getlist("x-forwarded-for")
            address = forwarded[-1].rpartition(",")[2].strip() if forwarded else ""
            if address:
                return address[:ADDRESS_CHARACTERS_MAX]
        return self.request.client.host if self.request.client is not None else ""

    def argument(self, name: str, default: str = "") -> str:
        """An argument of the query; a longer one is cut."""
        return self.request.query_params.get(name, default)[:ARGUMENT_CHARACTERS_MAX]

    def number_argument(self, name: str, default: int, low: int = 0, high: int = 2**63 - 1) -> int:
        """An argument that is a number, within bounds; the default for anything else."""
        text = self.argument(name).strip()
        if not text.isascii() or not text.removeprefix("-").isdigit() or len(text) > 20:
            return default
        return min(max(int(text), low), high)

    async def form(self) -> Mapping[str, str]:
        """The fields of the form, which the guard has read within its bound; the last one of a name that is repeated."""
        return dict(self._form)

    async def form_list(self, name: str) -> list[str]:
        """All values of a field that may be repeated."""
        return [value for field, value in self._form if field == name]

    def path(self, name: str) -> str:
        """A parameter of the path, decoded."""
        return self._parameters[name]

    def url(self, path: str, **query: object) -> str:
        """The address of a page of the same cluster. Arguments that are None or empty are left out."""
        given = {name.rstrip("_"): value for name, value in query.items() if value is not None and value != ""}
        return f"{self._prefix}{path}" + (f"?{urlencode(given, errors='surrogateescape')}" if given else "")

    def url_of_cluster(self, name: str, path: str = "/") -> str:
        """The address of a page of another cluster."""
        return f"{prefix_of(self.config, name)}{path}"

    def page(self, template: str, /, *, status: int = 200, **values: object) -> Response:
        """A whole page; for a request of htmx only its block `content`."""
        given = self._values(values) | {"notice": None if self.is_htmx else self.house.visitors.take_notice(self.visitor)}
        text = rendering.content(template, given) if self.is_htmx else rendering.page(template, given)
        return HTMLResponse(text.encode("utf-8", "replace"), status)

    def fragment(self, template: str, /, **values: object) -> Response:
        """A part of a page."""
        return HTMLResponse(self.text(template, **values).encode("utf-8", "replace"))

    def text(self, template: str, /, **values: object) -> str:
        """A part of a page as a text, for an event. It takes no notice: that is for the page that a change leads to, and a part may be made
        between the two."""
        return rendering.page(template, self._values(values))

    def changed(self, what: str, path: str) -> Response:
        """After a change: a line in the audit log, and the page at `path`, which shows `what` as a sentence."""
        self.audit("change", what)
        self.cluster.changed()
        self.house.visitors.leave_notice(self.visitor, what)
        return self.redirect(path)

    def audit(self, action: str, what: str) -> None:
        """A line in the audit log, for a change that does not end with `changed`."""
        audit(action, cluster=self.cluster_name, user=self.user, address=self.address, what=what)

    def redirect(self, path: str) -> Response:
        url = self.url(path)
        return Response(status_code=204, headers={"HX-Redirect": url}) if self.is_htmx else RedirectResponse(url, 303)

    def refused(self, template: str, error: str, /, *, status: int = STATUS_REFUSED, **values: object) -> Response:
        """The page of a form again, with what is wrong in words. The template gets `error`, and keeps the values that were entered."""
        return self.page(template, status=status, error=error, **values)

    def failed(self, failure: Failure) -> Response:
        """The page of an error; for a request of htmx a fragment in its place."""
        return self.page("failure.html", status=failure.status, failure=failure)

    def events(self, source: AsyncIterator[tuple[str, str]]) -> Response:
        """Server-sent events from pairs of a name and a text; see `web/events.py` for the names."""
        if self.house.streams.is_full:
            return Response("too many live pages are open", 503, {"retry-after": "30"})
        if self.user is None:
            return self.house.streams.response(source)
        visitors = self.house.visitors
        login = visitors.login(self.visitor, self.cluster_name)
        return self.house.streams.response(source, lambda: login is not None and visitors.is_open(login))

    def _values(self, values: Mapping[str, object]) -> dict[str, Any]:
        return {"visit": self, "url": self.url, "notice": None, "error": None, **values}


def prefix_of(config: ConsoleConfig, name: str) -> str:
    """What the addresses of a cluster begin with: nothing for the first."""
    return "" if name == config.clusters[0].name else f"/clusters/{name}"
