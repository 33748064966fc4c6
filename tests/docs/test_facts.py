"""What the pages name exists: pages and sections, commands, targets of make, settings."""

from __future__ import annotations

import re

import pytest

from barnabas.cli import tool_names
from tests.documentation import PAGES, ROOT, prose, text

CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MAKE = re.compile(r"`make ([a-z][a-z-]*)")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
ROW_OF_A_COMMAND = re.compile(r"^\| `([a-z0-9-]+)` \| ", re.MULTILINE)
every_page = pytest.mark.parametrize("page", PAGES)


@every_page
def test_every_link_leads_somewhere(page: str) -> None:
    links = [(number, link) for number, line in prose(page) for link in LINK.findall(CODE.sub("", line)) if "://" not in link]
    broken = [f"{page}:{number}: {link}" for number, link in links if not _exists(page, link)]
    assert broken == []


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
