"""Groups in a browser: members and lag, and a reset of offsets whose preview says what it does."""

from __future__ import annotations

from barnabas.client import Admin, OffsetAndMetadata, TopicPartition
from tests.integration.console.person import Person
from tests.integration.console.world import COMMITTED, GROUP, LIVE_GROUP, ORDERS, World


def test_a_group_shows_its_members_and_its_lag(admin: Person) -> None:
    browser = admin.open("/groups")
    browser.press(LIVE_GROUP)
    admin.see("Stable", "shipping-1", f"{ORDERS}-0, {ORDERS}-1, {ORDERS}-2")
    assert "A group with members cannot be deleted" in browser.text("main")


def test_offsets_are_reset_after_a_preview(admin: Person, world: World) -> None:
    browser = admin.open(f"/groups/{GROUP}")
    browser.press("Reset offsets")
    browser.fill("By a number of records", "-5")  # chooses it, too
    browser.press("Preview")
    admin.see("Read again")
    assert browser.texts("main .facts dd")[:3] == ["3 of 3", "0 records", "15 records"]
    browser.press("Reset 3 partitions")
    browser.confirm()
    admin.see(f"The offsets of {GROUP} are reset in 3 partitions.")
    with Admin(world.client) as client:
        offsets = client.list_consumer_group_offsets(GROUP)[GROUP]
    assert offsets[TopicPartition(ORDERS, 0)] == OffsetAndMetadata(COMMITTED - 5)


def test_offsets_of_a_group_with_members_are_not_reset(admin: Person) -> None:
    browser = admin.open(f"/groups/{LIVE_GROUP}/reset")
    admin.see("The group is active")
    browser.press("Preview")
    admin.see("stop them all, wait until the state is Empty, and try again")
    assert browser.count("main [data-confirm]") == 0
    assert "422" in browser.messages()[0]
