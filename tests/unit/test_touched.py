"""`make quick` runs the tests that concern a change, and no others."""

from __future__ import annotations

from tests.touched import ROOT, UNIT, concerned_by, module_name


def test_a_changed_module_brings_the_tests_that_import_it() -> None:
    chosen = concerned_by([ROOT / "src/barnabas/broker/waiting/timing_wheel.py"])
    assert UNIT / "broker/waiting/test_timing_wheel.py" in chosen
    assert UNIT / "records/test_builder.py" not in chosen


def test_a_changed_module_brings_the_tests_of_its_name() -> None:
    chosen = concerned_by([ROOT / "src/barnabas/storage/log/retention.py"])
    assert chosen == [UNIT / "storage/log/test_retention.py"]


def test_a_changed_module_without_tests_brings_those_of_the_modules_that_import_it() -> None:
    chosen = concerned_by([ROOT / "src/barnabas/broker/server/background_tasks.py"])
    assert UNIT / "broker/server/test_server.py" in chosen
    assert UNIT / "records/test_builder.py" not in chosen


def test_a_changed_handler_which_nothing_imports_brings_the_tests_of_its_folder() -> None:
    chosen = concerned_by([ROOT / "src/barnabas/broker/handlers/list_groups.py"])
    assert UNIT / "broker/handlers/test_group_administration.py" in chosen
    assert {file.parent for file in chosen} == {UNIT / "broker/handlers"}


def test_a_changed_helper_of_the_tests_brings_the_tests_that_use_it() -> None:
    chosen = concerned_by([UNIT / "storage/logs.py"])
    assert UNIT / "storage/log/test_log_append.py" in chosen


def test_a_changed_test_is_run_itself() -> None:
    this = UNIT / "test_touched.py"
    assert concerned_by([this]) == [this]


def test_documents_bring_nothing() -> None:
    assert concerned_by([ROOT / "README.md"]) == []


def test_modules_are_named_as_they_are_imported() -> None:
    assert module_name(ROOT / "src/barnabas/client/__init__.py") == "barnabas.client"
    assert module_name(ROOT / "tests/logged.py") == "tests.logged"
