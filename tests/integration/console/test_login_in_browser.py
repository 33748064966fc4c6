"""People log in to the console with users of the cluster, and see what the cluster's ACLs let them."""

from __future__ import annotations

from tests.chromium import Browser
from tests.integration.console.person import Person
from tests.integration.console.world import ALICE, CLEAN, ORDERS, PASSWORD, PAYMENTS, STRANGER, World


def test_a_login_leads_to_the_page_that_was_asked_for_and_ends_with_log_out(world: World, browser: Browser) -> None:
    person = Person(browser, world.reading)
    person.log_in("admin", world.admin_password, f"/topics/{ORDERS}/readers?q=bill")
    assert browser.path == f"/topics/{ORDERS}/readers?q=bill"
    person.see("Groups that read this topic", "read-only")
    browser.press("admin · log out", "header")
    browser.wait(lambda: browser.path == "/login", "the login")
    person.open("/topics")
    assert browser.path == "/login?next=%2Ftopics"


def test_a_wrong_password_is_refused(world: World, browser: Browser) -> None:
    person = Person(browser, world.reading)
    person.open("/")
    person.enter("admin", "a guess")
    person.see("The cluster does not accept this user and password.")
    assert browser.value("User") == "admin"
    assert browser.value("Password") == ""
    (message,) = browser.messages()
    assert "401" in message
    person.open("/topics")
    assert browser.path.startswith("/login")


def test_a_user_sees_what_its_acls_allow(world: World, browser: Browser) -> None:
    person = Person(browser, world.writing)
    person.log_in(ALICE, PASSWORD, "/topics")
    person.see(ORDERS, CLEAN)
    assert PAYMENTS not in browser.text("main")
    person.open(f"/topics/{ORDERS}/messages")
    person.see('"customer"')
    person.open(f"/topics/{PAYMENTS}/messages")
    person.see("may not")
    browser.messages()


def test_a_user_without_acls_sees_nothing_of_the_cluster(world: World, browser: Browser) -> None:
    person = Person(browser, world.writing)
    person.log_in(STRANGER, PASSWORD, "/topics")
    person.see("No topics that you may see")
    assert browser.count("main tbody a") == 0
    for path in (f"/topics/{ORDERS}", f"/topics/{ORDERS}/messages", "/access", "/quotas", "/groups"):
        person.open(path)
        assert "A fault in the console" not in browser.text()
        assert '"customer"' not in browser.text()
    browser.messages()


def test_a_console_that_only_reads_has_no_buttons_and_refuses_changes(world: World, browser: Browser) -> None:
    person = Person(browser, world.reading)
    person.log_in("admin", world.admin_password, f"/topics/{ORDERS}")
    assert "Delete the topic" not in browser.text()
    post = """const [path, done] = arguments;
        const form = new URLSearchParams({csrf: document.querySelector("[name=csrf]").value, name: "orders"});
        fetch(path, {method: "POST", body: form}).then((answer) => answer.text().then((text) => done([answer.status, text])));"""
    status, text = browser.run_async(post, f"/topics/{ORDERS}/delete")
    assert status == 403
    assert "This console only reads" in text
    (message,) = browser.messages()
    assert "403" in message
