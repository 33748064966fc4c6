"""ARCHITECTURE.md is a true map: every path that it names exists, and every folder of the sources is on it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.documentation import ROOT, text

PAGE = "ARCHITECTURE.md"
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]*)+|[\w*-]+\.(?:py|toml|md)")  # znodes begin with a slash, and are none
NAMED_FROM = (ROOT, ROOT / "src", ROOT / "src" / "barnabas")
PLACEHOLDER = "TOOL"  # of a tool's name, as in bin/kafka-TOOL.sh


def named_paths() -> list[str]:
    return sorted({code.replace(PLACEHOLDER, "*") for code in CODE.findall(text(PAGE)) if PATH.fullmatch(code)})


def exists(path: str) -> bool:
    """A path that ends with a slash is a folder."""
    matches = [match for root in NAMED_FROM for match in root.glob(path.rstrip("/"))]
    return any(match.is_dir() for match in matches) if path.endswith("/") else bool(matches)


def folders(parent: Path) -> set[str]:
    return {f"{folder.name}/" for folder in parent.iterdir() if any(folder.glob("*.py"))}


def test_every_path_that_the_map_names_exists() -> None:
    paths = named_paths()
    assert len(paths) > 150
    assert [path for path in paths if not exists(path)] == []


def test_every_folder_of_the_sources_is_on_the_map() -> None:
    named = set(named_paths())
    assert folders(ROOT / "src" / "barnabas") - named == set()
    parts = ("broker", "client", "client/admin", "client/consumer", "metadata", "storage", "tools")
    for part in (*(f"barnabas/{part}" for part in parts), "pyspark_barnabas"):
        rooms = {f"{part.removeprefix('barnabas/')}/{room}" for room in folders(ROOT / "src" / part)}
        assert rooms - named == set()
