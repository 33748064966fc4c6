"""Topics in a browser: create, search, change, add partitions, move, empty and delete."""

from __future__ import annotations

from barnabas.client import Admin, NewTopic
from tests.integration.console.person import Person
from tests.integration.console.world import ORDERS, PAYMENTS, World

INVOICES = "invoices"


def test_a_topic_is_created_changed_emptied_and_deleted(admin: Person, world: World) -> None:
    browser = admin.open("/topics")
    browser.press("Create a topic")
    browser.fill("Name", "no spaces, please")
    browser.fill("Partitions", "2")
    browser.press("Create")
    admin.see("no spaces, please")
    assert browser.value("Partitions") == "2"  # what was entered is kept
    assert "422" in browser.messages()[0]
    browser.fill("Name", INVOICES)
    browser.fill("Replicas of each partition", "3")
    browser.fill("retention.ms", "3600000")
    browser.press("Create")
    admin.see(f"The topic {INVOICES} is created.")
    assert browser.path == f"/topics/{INVOICES}"

    browser.press("Settings")
    admin.see("1 h")
    browser.press("Change retention.ms")
    browser.fill("Value", "7200000")
    browser.press("Set")
    admin.see("2 h")
    browser.fill("Search in names, values and documentation", "compress")
    browser.wait(lambda: "retention.ms" not in browser.text("#settings"), "the search")
    admin.see("compression.type")

    admin.open(f"/topics/{INVOICES}")
    browser.fill("Partitions altogether", "4")
    browser.press("Add partitions")
    browser.confirm()
    admin.see(f"The topic {INVOICES} now has 4 partitions.")

    browser.press("Elect the preferred leaders")
    admin.see("Nothing to elect")
    assert "409" in browser.messages()[0]
    browser.fill(f"Type {INVOICES} to confirm", "orders")
    browser.press("Delete all records")
    browser.confirm()
    admin.see("Type the name")
    assert "422" in browser.messages()[0]
    browser.fill(f"Type {INVOICES} to confirm", INVOICES)
    browser.press("Delete all records")
    browser.confirm()
    admin.see(f"All records of {INVOICES} are deleted.")

    browser.run("document.getElementById('delete-name').value = arguments[0]", INVOICES)
    browser.press("Delete the topic")
    browser.confirm()
    admin.see(f"The topic {INVOICES} is deleted.")
    with Admin(world.client) as client:
        assert INVOICES not in client.list_topics()
    changes = world.audit_log.read_text()
    assert f"The topic {INVOICES} is created." in changes
    assert f"The topic {INVOICES} is deleted." in changes


def test_topics_are_found_while_people_type_and_have_addresses(admin: Person) -> None:
    browser = admin.open("/topics")
    browser.fill("Search topics", "ord")
    browser.wait(lambda: PAYMENTS not in browser.text("main"), "the search")
    assert ORDERS in browser.text("main")
    browser.wait(lambda: "q=ord" in browser.path, "the address")
    admin.open(browser.path)
    assert browser.value("Search topics") == "ord"
    assert PAYMENTS not in browser.text("main")


def test_replicas_are_moved_with_a_throttle(admin: Person, world: World) -> None:
    with Admin(world.client) as client:
        client.create_topics([NewTopic("moving", 1, 1)]).all()
    browser = admin.open("/topics/moving/move")
    browser.fill("Brokers of partition 0", "1, 2, 3")
    browser.fill("Throttle", "5 MB")
    browser.press("Move")
    browser.confirm()
    admin.see("1 partition of moving is being moved.")
    admin.see("Nothing is being moved")  # live: it ends without a click
    admin.open("/topics/moving")
    browser.wait(lambda: "1, 2, 3" in browser.text("#partitions"), "three replicas")
    admin.open("/reassignments")
    browser.press("Remove the throttle")
    browser.confirm()
    admin.see("The throttle of reassignments is removed.")
