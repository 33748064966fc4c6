"""A change leaves a sentence for the page that it leads to."""

from __future__ import annotations

from starlette.requests import Request

from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.failures import Failure
from barnabas.console.web.events import EventStreams
from barnabas.console.web.sessions import Visitors
from barnabas.console.web.visit import House, Visit

NOTICE = "The topic orders is created."


def test_a_notice_is_for_a_whole_page_and_a_live_part_leaves_it() -> None:
    visitors = Visitors(lambda: 0)
    house = House(ConsoleConfig((ClusterConfig("down", {"bootstrap.servers": "127.0.0.1:1"}),)), visitors, EventStreams())
    request = Request({"type": "http", "path": "/", "query_string": b"", "headers": []})
    visit = Visit(request, house, visitor=visitors.new(), cluster_name="down", prefix="", session=None, user=None, parameters={})
    visitors.leave_notice(visit.visitor, NOTICE)
    failure = Failure(404, "Nothing", "There is nothing.", "Go on.")
    assert NOTICE not in visit.text("failure.html", failure=failure)  # the event of a page that is left
    assert NOTICE.encode() in visit.failed(failure).body
    assert NOTICE.encode() not in visit.failed(failure).body
