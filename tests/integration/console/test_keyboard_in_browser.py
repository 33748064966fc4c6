"""The keyboard: every shortcut that the help lists."""

from __future__ import annotations

from functools import partial

from tests.chromium import Browser
from tests.integration.console.person import Person
from tests.integration.console.world import ORDERS, PAYMENTS


def test_shortcuts_lead_through_the_console(admin: Person) -> None:
    browser = admin.open("/")
    browser.type_keys("?")
    admin.see("next and previous row of the table")
    assert browser.count("dialog#help[open]") == 1
    browser.type_keys("ESCAPE")
    browser.wait(lambda: not browser.count("dialog#help[open]"), "the end of the help")

    browser.type_keys("g", "t")
    browser.wait(lambda: browser.path == "/topics", "the topics")
    browser.type_keys("/", *ORDERS)
    browser.wait(lambda: browser.value("Search topics") == ORDERS, "what was typed")
    browser.wait(lambda: PAYMENTS not in browser.text("main tbody"), "the search")
    browser.type_keys("ESCAPE", "j", "j", "k", "ENTER")
    browser.wait(lambda: browser.path == f"/topics/{ORDERS}", "the first topic")

    browser.type_keys("g", "o")
    browser.wait(lambda: browser.path == "/", "the overview")
    browser.type_keys("/")  # a page without a search leads to that of the topics
    browser.wait(lambda: browser.path == "/topics?focus=search", "the search")
    assert browser.run("return document.activeElement.type") == "search"


def test_the_menu_names_every_key(admin: Person) -> None:
    browser = admin.open("/")
    keys = browser.run("return [...document.querySelectorAll('.menu a')].map((one) => [one.dataset.key, new URL(one.href).pathname])")
    assert len({key for key, _ in keys}) == len(keys)
    for key, path in keys:
        browser.type_keys("g", key)
        browser.wait(partial(_is_at, browser, path), path)


def _is_at(browser: Browser, path: str) -> bool:
    return browser.path == path
