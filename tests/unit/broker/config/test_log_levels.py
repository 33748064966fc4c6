from __future__ import annotations

import logging

import pytest

from barnabas.broker.config.alter import Operation, OpType
from barnabas.broker.config.log_levels import TRACE, LogLevels, level_name


@pytest.fixture
def manager() -> logging.Manager:
    manager = logging.Manager(logging.RootLogger(logging.WARNING))
    manager.getLogger("barnabas.storage.log_manager")
    manager.getLogger("barnabas.broker.dispatcher")
    return manager


def alter(manager: logging.Manager, name: str, kind: OpType, level: str | None = None) -> None:
    levels = LogLevels(manager)
    levels.validate([Operation(name, kind, level)])
    levels.alter([Operation(name, kind, level)])


def test_every_logger_and_package_is_listed_with_the_level_that_counts(manager: logging.Manager) -> None:
    assert LogLevels(manager).levels() == dict.fromkeys(
        ["root", "barnabas", "barnabas.broker", "barnabas.broker.dispatcher", "barnabas.storage", "barnabas.storage.log_manager"], "WARN"
    )


def test_looking_makes_nobody_a_logger(manager: logging.Manager) -> None:
    LogLevels(manager).levels()
    assert isinstance(manager.loggerDict["barnabas.storage"], logging.PlaceHolder)


@pytest.mark.parametrize(("level", "number"), [("TRACE", TRACE), ("DEBUG", 10), ("INFO", 20), ("WARN", 30), ("ERROR", 40), ("FATAL", 50)])
def test_a_level_of_kafka_is_a_level_of_python(manager: logging.Manager, level: str, number: int) -> None:
    alter(manager, "barnabas.storage.log_manager", OpType.SET, level)
    assert manager.getLogger("barnabas.storage.log_manager").level == number
    assert LogLevels(manager).levels()["barnabas.storage.log_manager"] == level


def test_a_package_counts_for_the_modules_in_it(manager: logging.Manager) -> None:
    alter(manager, "barnabas.storage", OpType.SET, "DEBUG")
    levels = LogLevels(manager).levels()
    assert (levels["barnabas.storage.log_manager"], levels["barnabas.broker.dispatcher"]) == ("DEBUG", "WARN")
    assert manager.getLogger("barnabas.storage.log_manager").isEnabledFor(logging.DEBUG)


def test_unsetting_a_level_gives_back_that_of_the_root(manager: logging.Manager) -> None:
    alter(manager, "barnabas.storage.log_manager", OpType.SET, "DEBUG")
    alter(manager, "root", OpType.SET, "ERROR")
    alter(manager, "barnabas.storage.log_manager", OpType.DELETE)
    assert LogLevels(manager).levels()["barnabas.storage.log_manager"] == "ERROR"


@pytest.mark.parametrize(("level", "name"), [(0, "TRACE"), (5, "TRACE"), (6, "DEBUG"), (25, "WARN"), (50, "FATAL"), (99, "FATAL")])
def test_a_level_of_somebodys_own_is_shown_as_the_next_one_of_kafka(level: int, name: str) -> None:
    assert level_name(level) == name


def test_only_asked_loggers_are_described(manager: logging.Manager) -> None:
    assert [entry.name for entry in LogLevels(manager).describe({"root", "no.such"})] == ["root"]
