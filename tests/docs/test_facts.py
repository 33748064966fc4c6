"""What the pages name exists: pages and sections, files, commands, targets of make, settings."""

from __future__ import annotations

import re
from functools import cache

import pytest

from barnabas import loggers
from barnabas.cli import tool_names
from tests.documentation import PAGES, ROOT, prose, text

CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FILE = re.compile(r"(?:tests|src|benchmarks|deploy|docs)/[\w./-]+")
MAKE = re.compile(r"`make ([a-z][a-z-]*)")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
ROW_OF_A_COMMAND = re.compile(r"^\| `([a-z0-9-]+)` \| ", re.MULTILINE)
DOTTED = re.compile(r"[a-z][a-z0-9]*(?:\.[a-z0-9]+)+")
QUOTED = re.compile(rf"[\"']({DOTTED.pattern})[\"']")
# What looks like a setting and is not in the sources as it stands.
MADE_OF_PARTS = {
    "default.list.value.serde.inner",
    "key.serializer.encoding",
    "key.subject.name.strategy",
    "listener.name.ssl.ssl.keystore.location",
}
OF_SPARK = {"emit.default.values", "enums.as.ints"}
NO_SETTINGS = {
    *("a.b", "server.properties"),
    *("server.log", "controller.log", "log4j.properties", "barnabas.storage.log.loader", *loggers.KNOWN),
    *("barnabas.client", "barnabas.client.serialization", "error.retriable", "spark.read.csv", "spark.read.json", "str.encode"),
}
every_page = pytest.mark.parametrize("page", PAGES)


@pytest.mark.parametrize("page", (*PAGES, "ARCHITECTURE.md"))
def test_every_link_leads_somewhere(page: str) -> None:
    links = [(number, link) for number, line in prose(page) for link in LINK.findall(CODE.sub("", line)) if "://" not in link]
    broken = [f"{page}:{number}: {link}" for number, link in links if not _exists(page, link)]
    assert broken == []


@every_page
def test_every_file_of_the_project_that_is_named_exists(page: str) -> None:
    named = [(number, code) for number, line in prose(page) for code in CODE.findall(line) if FILE.fullmatch(code)]
    assert [f"{page}:{number}: {code}" for number, code in named if not (ROOT / code).exists()] == []


def _exists(page: str, link: str) -> bool:
    name, _, section = link.partition("#")
    target = (ROOT / page).parent / name if name else ROOT / page
    return target.exists() and (not section or section in {_anchor(heading) for heading in HEADING.findall(target.read_text())})


def _anchor(heading: str) -> str:
    """As on GitHub: lower case, spaces as dashes, without punctuation."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_command_has_one_line_in_the_page_of_tools() -> None:
    section = text("docs/tools.md").partition("## Which one")[2].partition("\n## ")[0]
    assert sorted(ROW_OF_A_COMMAND.findall(section)) == tool_names()


@every_page
def test_every_target_of_make_that_is_named_exists(page: str) -> None:
    assert set(MAKE.findall(text(page))) <= set(TARGET.findall((ROOT / "Makefile").read_text()))


@every_page
def test_every_setting_that_is_named_exists(page: str) -> None:
    """The tables of docs/clients.md have settings of other clients, and a test of their own (test_docs_names.py)."""
    lines = [(number, line) for number, line in prose(page) if page != "docs/clients.md" or not line.startswith("|")]
    named = [(number, code.partition("=")[0]) for number, line in lines for code in CODE.findall(line)]
    unknown = [f"{page}:{number}: {name}" for number, name in named if DOTTED.fullmatch(name) and not _is_known(name)]
    assert unknown == []


def _is_known(name: str) -> bool:
    bare = name.removeprefix("kafka.").removeprefix("value.")  # prefixes of options of the Spark source
    return bool({name, bare} & (_names_in_the_sources() | MADE_OF_PARTS | OF_SPARK | NO_SETTINGS))


@cache
def _names_in_the_sources() -> frozenset[str]:
    return frozenset(name for path in (ROOT / "src").rglob("*.py") for name in QUOTED.findall(path.read_text()))
