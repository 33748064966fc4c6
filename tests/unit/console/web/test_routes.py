"""Paths: names of topics and groups as segments, whatever is in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response

from barnabas.console.web.routes import Match, Route, RouteTable, get, name_of, post, segment
from barnabas.console.web.visit import Visit


async def handler(visit: Visit) -> Response:
    raise NotImplementedError


TABLE = RouteTable([get("/", handler), get("/groups", handler), get("/groups/{name}", handler), post("/groups/{name}", handler)])


@given(st.text(st.characters(codec="utf-8")))
def test_a_name_survives_its_path(name: str) -> None:
    match = TABLE.match("GET", f"/groups/{segment(name)}".encode())
    assert isinstance(match, Match)
    assert match.parameters == {"name": name}


@pytest.mark.parametrize("name", ["", ".", "..", "~", "~~a", "a/b", "a b", "%2F", "\udcff"])
def test_a_name_that_a_browser_would_change_is_kept(name: str) -> None:
    assert name_of(segment(name)) == name
    assert segment(name) not in ("", ".", "..")


def test_a_literal_segment_is_preferred_to_a_parameter() -> None:
    table = RouteTable([get("/a/{name}", handler), Route("/a/all", handler)])
    match = table.match("GET", b"/a/all")
    assert isinstance(match, Match)
    assert match.route.path == "/a/all"


def test_the_methods_of_a_path_are_known() -> None:
    assert TABLE.match("DELETE", b"/groups/a") == frozenset({"GET", "POST"})
    assert TABLE.match("GET", b"/groups/a/b") == frozenset()
    assert isinstance(TABLE.match("HEAD", b"/"), Match)


def test_two_routes_of_one_pattern_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="two routes"):
        RouteTable([get("/a/{name}", handler), get("/a/{other}", handler)])
