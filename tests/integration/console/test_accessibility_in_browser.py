"""axe-core finds no serious fault of accessibility, on any page and in both themes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import clients
from tests.integration.console.pages import WITH_SPARK, WITHOUT_SPARK, pipeline_of
from tests.integration.console.person import Person
from tests.kafka import available

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

SERIOUS = {"serious", "critical"}
# Dark differs from light in colours only: there the rules about colours are checked.
RULES = {"light": None, "dark": ["color-contrast", "link-in-text-block"]}
RUN = """const [rules, done] = arguments, options = {resultTypes: ["violations"]};
    if (rules) options.runOnly = {type: "rule", values: rules};
    axe.run(document, options).then((found) => done(found.violations.map((one) => ({
        id: one.id, impact: one.impact, nodes: one.nodes.slice(0, 3).map((node) => node.html.slice(0, 300))}))));"""


@pytest.fixture(scope="module")
def axe() -> str:
    return (available(clients.axe_core) / "axe-core" / "axe.min.js").read_text()


def test_no_page_has_a_serious_fault(admin: Person, axe: str, query: StreamingQuery) -> None:
    pages = {**WITHOUT_SPARK, **WITH_SPARK, "pipeline": pipeline_of(admin)}
    faults = {name: found for name, path in pages.items() if (found := _faults(admin, path, axe))}
    admin.browser.messages()  # of the page that is not there
    assert not faults


def test_the_login_has_no_serious_fault(admin: Person, axe: str) -> None:
    admin.browser.forget()
    assert _faults(admin, "/login", axe) == []


def _faults(person: Person, path: str, axe: str) -> list[dict[str, Any]]:
    browser = person.open(path)
    browser.run(axe)
    faults: list[dict[str, Any]] = []
    for theme, rules in RULES.items():
        browser.theme(theme)
        faults += [{"theme": theme, **fault} for fault in browser.run_async(RUN, rules) if fault["impact"] in SERIOUS]
    browser.theme("light")
    return faults
