"""A process of a test run stays with the folder whose brokers it has started; the longest folders begin first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import scheduling
from tests.scheduling import FolderTimes, folder_of, next_file

ROOT = Path(__file__).parents[2]
SPARK = ["tests/spark/test_a.py", "tests/spark/reading/test_b.py"]
CLIENT = ["tests/integration/client/test_c.py", "tests/integration/client/producer/test_d.py"]
UNIT = ["tests/unit/storage/test_e.py", "tests/unit/test_f.py"]


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("tests/spark/reading/test_b.py", "tests/spark"),
        ("tests/integration/client/producer/test_d.py", "tests/integration/client"),
        ("tests/integration/test_adopt.py", "tests/integration"),
        ("tests/spark/test_demo.py", "tests/spark/test_demo.py"),
        ("tests/unit/storage/test_e.py", "tests/unit"),
    ],
)
def test_a_folder_is_what_shares_a_conftest(file: str, folder: str) -> None:
    assert folder_of(file) == folder


def test_the_longest_folder_begins_first_and_unit_tests_last() -> None:
    waiting = [*UNIT, "tests/docs/test_g.py", *CLIENT, *SPARK]
    assert next_file(waiting, {}, "gw0") == SPARK[0]
    assert next_file([*UNIT, "tests/docs/test_g.py"], {}, "gw0") == "tests/docs/test_g.py"


def test_a_process_stays_with_its_folder() -> None:
    assert next_file([*SPARK, *CLIENT, *UNIT], {"tests/integration/client": {"gw1"}, "tests/spark": {"gw0"}}, "gw1") == CLIENT[0]


def test_a_free_process_begins_a_folder_before_it_helps_with_another() -> None:
    begun = {"tests/spark": {"gw0"}}
    assert next_file([*SPARK, *CLIENT], begun, "gw1") == CLIENT[0]
    assert next_file(SPARK, begun, "gw1") == SPARK[0]


def test_the_named_folders_and_files_exist() -> None:
    assert all((ROOT / folder).exists() for folder in (*scheduling.LONGEST_FIRST, scheduling.LAST))


def test_the_times_of_a_run_are_told_by_folder_and_the_idle_time_of_processes() -> None:
    times = FolderTimes()
    times.took(SPARK[0], 40, "gw0", ended=140)
    times.took(SPARK[1], 20, "gw0", ended=160)
    times.took(CLIENT[0], 90, "gw1", ended=190)
    times.took(UNIT[0], 0.2, "gw1", ended=190.2)
    assert times.lines() == ["      90 s  tests/integration/client", "      60 s  tests/spark", "      30 s  gw0 had ended"]
