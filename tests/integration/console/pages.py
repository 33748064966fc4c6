"""Every page of the console with something on it, for the tests and pictures that go through all of them."""

from __future__ import annotations

from tests.integration.console.person import Person
from tests.integration.console.world import DEAD, GROUP, LIVE_GROUP, ORDERS, PAYMENTS, QUERY, TRANSACTION

FILTERED = f"/topics/{ORDERS}/messages?start=newest&filter=%24.total+%3E+200&kind=path"
WITHOUT_SPARK = {
    "overview": "/",
    "topics": "/topics",
    "create-topic": "/create-topic",
    "topic": f"/topics/{ORDERS}",
    "messages": f"/topics/{ORDERS}/messages",
    "messages-filtered": FILTERED,
    "message": f"/topics/{ORDERS}/messages/0/5",
    "send": f"/topics/{ORDERS}/messages/send",
    "send-copy": f"/topics/{ORDERS}/messages/0/5/send",
    "topic-settings": f"/topics/{ORDERS}/settings",
    "topic-setting": f"/topics/{ORDERS}/settings?edit=retention.ms",
    "topic-readers": f"/topics/{ORDERS}/readers",
    "topic-producers": f"/topics/{PAYMENTS}/producers",
    "topic-move": f"/topics/{ORDERS}/move",
    "groups": "/groups",
    "group": f"/groups/{LIVE_GROUP}",
    "group-reset": f"/groups/{GROUP}/reset",
    "brokers": "/brokers",
    "broker": "/brokers/1",
    "broker-settings": "/brokers/1/settings",
    "broker-setting": "/brokers/1/settings?edit=log.retention.ms",
    "broker-loggers": "/brokers/1/loggers",
    "transactions": "/transactions",
    "transaction": f"/transactions/id/{TRANSACTION}",
    "transactions-hanging": "/transactions/hanging?minutes=0&search=1",
    "acls": "/access",
    "acls-of-user": "/access/user?name=User%3Aalice",
    "acls-of-topic": f"/access/resource?operation=WRITE&type=TOPIC&name={ORDERS}",
    "users": "/access/users",
    "tokens": "/access/tokens",
    "quotas": "/quotas?user=alice&client=app",
    "reassignments": "/reassignments",
    "telemetry": "/telemetry",
    "not-found": "/topics/there-is-no-such-topic",
}
WITH_SPARK = {"pipelines": "/pipelines", "dead-letters": "/dead-letters", "dead-letter-topic": f"/dead-letters/{DEAD}"}


def pipeline_of(person: Person) -> str:
    """The path of the page of the query that runs, once it has published its progress."""
    person.reload_until("/pipelines", QUERY)
    links = "[...document.querySelectorAll('main tbody th a')]"
    return str(person.browser.run(f"return {links}.find((one) => one.text === arguments[0]).getAttribute('href')", QUERY))
