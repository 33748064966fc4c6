"""The table of routes: which handler answers which path, and what the guard requires before it does.

A path is matched in its encoded form, segment by segment, so that a group called `a/b` is one segment. A literal segment is preferred to a
parameter: below `/topics/{name}` no page may have a name that a topic can have. `segment` writes a name for a path.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, unquote

from starlette.responses import Response

if TYPE_CHECKING:
    from barnabas.console.web.visit import Visit

Handler = Callable[["Visit"], Awaitable[Response]]
Method = Literal["GET", "POST"]


class RouteAccess(Enum):
    """What the guard requires for a route, beside the checks that every request gets."""

    PUBLIC = auto()  # the page to log in
    VISITOR = auto()  # a login, where the cluster has users
    CHANGE = auto()  # also that the console may write


@dataclass(frozen=True)
class Route:
    """`form_bytes_max` bounds the body of a POST."""

    path: str
    handler: Handler
    method: Method = "GET"
    access: RouteAccess = RouteAccess.VISITOR
    form_bytes_max: int = 1 << 20

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/"))


def get(path: str, handler: Handler) -> Route:
    """A page, or a part of one: it changes nothing."""
    return Route(path, handler)


def post(path: str, handler: Handler, *, form_bytes_max: int = 1 << 20) -> Route:
    """A change. The guard requires a CSRF token, and that the console may write."""
    return Route(path, handler, "POST", RouteAccess.CHANGE, form_bytes_max)


def read_post(path: str, handler: Handler, *, form_bytes_max: int = 1 << 20) -> Route:
    """A POST that changes nothing: a long filter, a preview. The guard requires a CSRF token."""
    return Route(path, handler, "POST", RouteAccess.VISITOR, form_bytes_max)


@dataclass(frozen=True)
class Match:
    route: Route
    parameters: Mapping[str, str]


class RouteTable:
    """All routes of the console. Two routes of the same method and pattern are a mistake in the program."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = sorted(routes, key=lambda route: [segment.startswith("{") for segment in route.segments])
        patterns = [(route.method, *("{}" if part.startswith("{") else part for part in route.segments)) for route in self._routes]
        assert len(set(patterns)) == len(patterns), f"two routes for {next(p for p in patterns if patterns.count(p) > 1)}"

    @property
    def routes(self) -> tuple[Route, ...]:
        return tuple(self._routes)

    def match(self, method: str, path: bytes) -> Match | frozenset[str]:
        """The route of an encoded path, or the methods that the path has: none for an unknown path."""
        given = path.decode("ascii", "replace").strip("/").split("/")
        methods: set[str] = set()
        for route in self._routes:
            parameters = _parameters(route.segments, given)
            if parameters is None:
                continue
            if route.method == method or (method == "HEAD" and route.method == "GET"):
                return Match(route, parameters)
            methods.add(route.method)
        return frozenset(methods)


def segment(name: str) -> str:
    """A name as one segment of a path. Browsers remove the segments "." and "..", and empty ones: these get a tilde before them."""
    safe = f"~{name}" if name in ("", ".", "..") or name.startswith("~") else name
    return quote(safe, safe="", errors="surrogateescape")


def name_of(encoded: str) -> str:
    """The name of a segment that `segment` has written."""
    return (
        unquote(encoded, errors="surrogateescape").removeprefix("~")
        if encoded.startswith(("~", "%7E", "%7e"))
        else unquote(encoded, errors="surrogateescape")
    )


def _parameters(pattern: tuple[str, ...], given: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(given):
        return None
    parameters: dict[str, str] = {}
    for expected, encoded in zip(pattern, given, strict=True):
        if expected.startswith("{"):
            if not encoded:
                return None
            parameters[expected.strip("{}")] = name_of(encoded)
        elif expected != encoded:
            return None
    return parameters
