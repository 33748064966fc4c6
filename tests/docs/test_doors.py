"""CONTRIBUTING.md and its neighbours name files, folders, targets of make and pages that exist; so does the site."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_facts import LINK, MAKE, TARGET, _exists
from tests.documentation import ROOT, text

DOORS = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "docs/README.md", "docs/glossary.md")
FOLDERS = ("src", "tests", "docs", "scripts", "bin", "benchmarks", "requirements")
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[^`\s<*]+)`")
NAV = re.compile(r"^ +- ([\w./-]+\.md)$", re.MULTILINE)
every_door = pytest.mark.parametrize("page", DOORS)


def site() -> Any:
    """The hooks of mkdocs, which stand beside the other scripts and need no mkdocs to be imported."""
    spec = spec_from_file_location("docs_site", ROOT / "scripts/docs_site.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = site()


@every_door
def test_every_file_that_is_named_exists(page: str) -> None:
    assert [path for path in PATH.findall(text(page)) if not (ROOT / path).exists()] == []


@every_door
def test_every_link_leads_somewhere(page: str) -> None:
    assert [link for link in LINK.findall(text(page)) if "://" not in link and not _exists(page, link)] == []


@every_door
def test_every_target_of_make_exists(page: str) -> None:
    assert set(MAKE.findall(text(page))) <= set(TARGET.findall(text("Makefile")))


def test_every_page_has_its_place_in_the_navigation_of_the_site() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert set(NAV.findall(text("mkdocs.yml"))) == pages | {f"project/{name}" for name in SITE.PAGES}


@pytest.mark.parametrize(
    ("page", "link", "on_site"),
    [
        ("README.md", "clients.md#read", "[x](clients.md#read)"),
        ("README.md", "../SECURITY.md", "[x](project/SECURITY.md)"),
        ("reference/admin.md", "../admin.md", "[x](../admin.md)"),
        ("reference/admin.md", "../../CHANGELOG.md", "[x](../project/CHANGELOG.md)"),
        ("running.md", "../deploy/Dockerfile", "[x](repository/deploy/Dockerfile)"),
        ("running.md", "../tests/crash", "x"),
        ("running.md", "#tls", "[x](#tls)"),
        ("running.md", "https://kafka.apache.org", "[x](https://kafka.apache.org)"),
        ("project/CONTRIBUTING.md", "docs/limits.md", "[x](../limits.md)"),
        ("project/CONTRIBUTING.md", "SECURITY.md", "[x](SECURITY.md)"),
        ("project/CONTRIBUTING.md", "docs/reference", "[x](../reference/README.md)"),
        ("project/CONTRIBUTING.md", "LICENSE", "[x](../repository/LICENSE)"),
    ],
)
def test_a_link_of_the_repository_is_translated_to_the_site(page: str, link: str, on_site: str) -> None:
    assert SITE.translated(SITE.LINK.match(f"[x]({link})"), page) == on_site


def test_links_in_code_stay_as_they_are() -> None:
    markdown = "[a](x)\n\n```text\n[b](x)\n```\n\n[c](x)\n"
    assert SITE.outside_of_code(markdown, str.upper) == "[A](X)\n\n```text\n[b](x)\n```\n\n[C](X)\n"


def test_a_table_of_settings_has_a_row_for_each() -> None:
    from barnabas.client.producer.config import KEYS

    table = SITE.settings_table(KEYS)
    assert "| `linger.ms` | long | ms | `5` |" in table
    assert table.count("\n") == len(KEYS) + 1


def test_a_table_of_options_is_made_without_spark() -> None:
    assert "| `maxBytesPerPartition` | integer | bytes | `134217728` |" in SITE.options_table("log directories")


def test_the_tables_that_pages_ask_for_exist() -> None:
    pages = [Path(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("reference/settings.md", "reference/spark.md")]
    assert len(SITE.SETTINGS.findall(pages[0])) == 3
    assert all(SITE.settings_table(SITE.named(module, name)) for module, name in SITE.SETTINGS.findall(pages[0]))
    assert all(SITE.options_table(use) for use in SITE.OPTIONS.findall(pages[1]))
