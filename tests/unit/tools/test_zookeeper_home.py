"""`barnabas zookeeper` keeps its data outside the directory of `barnabas up`, which starts with whatever else lies in its directory."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from barnabas.tools import zookeeper
from barnabas.tools.running.data_home import data_home
from tests import broker


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return Path(data_home())


def default_data() -> Path:
    return Path(zookeeper.build_parser().parse_args([]).data or zookeeper.default_data())


def test_zookeepers_data_is_not_inside_the_data_of_up(home: Path) -> None:
    assert home not in default_data().parents
    assert default_data().parent == home.parent


def test_data_that_is_inside_from_before_is_still_used(home: Path) -> None:
    (home / "zookeeper" / "version-2").mkdir(parents=True)
    assert default_data() == home / "zookeeper"


@pytest.fixture
def data_with_zookeepers(tmp_path: Path) -> Path:
    (tmp_path / "zookeeper" / "version-2").mkdir(parents=True)
    (tmp_path / "zookeeper" / "version-2" / "log.1").touch()
    return tmp_path


def test_up_starts_beside_zookeepers_data(data_with_zookeepers: Path) -> None:
    with broker.running(data_with_zookeepers) as address:
        assert address


def test_up_says_that_zookeepers_data_is_ignored(data_with_zookeepers: Path) -> None:
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data", str(data_with_zookeepers)]
    said = re.compile(r"WARNING .*/zookeeper is not the directory of a partition and is ignored")
    with broker.started(command, said, broker.START_TIMEOUT_S) as (_, match):
        assert match
