"""The version is written down once for the package and once for the clients, which must not read package metadata at each start."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from barnabas.client.software import SOFTWARE_VERSION

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_clients_name_the_version_of_the_package_to_the_broker() -> None:
    assert SOFTWARE_VERSION == VERSION


def test_the_newest_version_in_the_changelog_is_that_of_the_package() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1].split()[0] == VERSION
