"""Pipelines and dead letters in a browser, with a Spark query that runs."""

from __future__ import annotations

import json

from pyspark.sql.streaming.query import StreamingQuery

from barnabas.client import Producer
from tests.integration.console.pages import pipeline_of
from tests.integration.console.person import Person
from tests.integration.console.world import CLEAN, DEAD, ORDERS, QUERY, RETURNS, World, order


def test_a_running_query_is_shown_with_its_topics_and_batches(admin: Person, world: World, query: StreamingQuery) -> None:
    with Producer(world.client) as producer:  # a query without a batch for five minutes is idle
        producer.send(RETURNS, json.dumps(order(1)).encode())
    path = pipeline_of(admin)
    assert path == f"/pipelines/{query.id}"
    admin.reload_until("/pipelines", CLEAN)  # the sink publishes after the source
    admin.reload_until("/pipelines", "running")
    admin.see(QUERY, ORDERS)
    browser = admin.browser
    browser.press(QUERY)
    admin.see(f"writes to {CLEAN}", f"It reads {ORDERS}", "Last batches", str(query.id))
    assert browser.count("svg .box") == 4


def test_a_dead_letter_is_sent_back_and_comes_back_with_a_mark(admin: Person, query: StreamingQuery) -> None:
    """The record is still broken, so the query sends it to the dead letters once more."""
    browser = admin.browser
    admin.reload_until(f"/dead-letters/{DEAD}", "1 dead letter")  # the query reads it when it starts
    admin.see("it ends too soon", RETURNS, '{"id": 7, "total":')
    browser.check("[data-check-all]")
    browser.press("Send back the selected")
    browser.confirm()
    admin.see("1 of 1 dead letter was sent back.")
    admin.reload_until(f"/dead-letters/{DEAD}", "came back")
    assert browser.count("main tbody tr") == 2
    admin.open("/dead-letters")
    browser.press(DEAD)
    admin.see("2 dead letters")
