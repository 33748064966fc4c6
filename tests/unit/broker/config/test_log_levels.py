from __future__ import annotations

import logging

import pytest

from barnabas import loggers
from barnabas.broker.config.alterations.alter import Operation, OpType
from barnabas.broker.config.log_levels import REQUEST_LOGGERS, LogLevels, level_name
from barnabas.config_def import InvalidConfig
from barnabas.loggers import TRACE


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
    levels = LogLevels(manager).levels()
    assert levels == dict.fromkeys(levels, "WARN")
    assert levels.keys() - loggers.KNOWN - REQUEST_LOGGERS == {
        "root", "barnabas", "barnabas.broker", "barnabas.broker.dispatcher", "barnabas.storage", "barnabas.storage.log_manager",
    }  # fmt: skip
    assert levels.keys() >= loggers.KNOWN | REQUEST_LOGGERS


def test_a_logger_of_kafka_counts_for_its_modules(manager: logging.Manager) -> None:
    alter(manager, "kafka.log", OpType.SET, "DEBUG")
    assert manager.getLogger("barnabas.storage.log.log").isEnabledFor(logging.DEBUG)
    assert manager.getLogger("barnabas.storage.compaction.cleaner").isEnabledFor(logging.DEBUG)
    assert not manager.getLogger("barnabas.broker.dispatcher").isEnabledFor(logging.INFO)
    assert LogLevels(manager).levels()["kafka.log.LogCleaner"] == "DEBUG"


def test_a_logger_of_kafka_does_not_count_for_modules_of_another_one(manager: logging.Manager) -> None:
    alter(manager, "kafka.server.KafkaServer", OpType.SET, "DEBUG")
    assert manager.getLogger("barnabas.broker.server.server").isEnabledFor(logging.DEBUG)
    assert not manager.getLogger("barnabas.broker.groups.coordination").isEnabledFor(logging.INFO)
    alter(manager, "kafka.server.KafkaServer", OpType.DELETE)
    assert manager.getLogger("barnabas.broker.server.server").getEffectiveLevel() == logging.WARNING


def test_the_nearest_level_counts(manager: logging.Manager) -> None:
    alter(manager, "kafka", OpType.SET, "DEBUG")
    alter(manager, "kafka.log.LogCleaner", OpType.SET, "ERROR")
    assert manager.getLogger("barnabas.storage.compaction.cleaner").getEffectiveLevel() == logging.ERROR
    assert manager.getLogger("barnabas.storage.log.log").getEffectiveLevel() == logging.DEBUG
    alter(manager, "kafka.log.LogCleaner", OpType.DELETE)
    assert manager.getLogger("barnabas.storage.compaction.cleaner").getEffectiveLevel() == logging.DEBUG


def test_the_level_of_root_counts_for_all_without_one(manager: logging.Manager) -> None:
    alter(manager, "kafka.server.KafkaServer", OpType.SET, "DEBUG")
    alter(manager, "root", OpType.SET, "ERROR")
    assert manager.getLogger("barnabas.broker.groups.coordination").getEffectiveLevel() == logging.ERROR
    assert manager.getLogger("barnabas.broker.server.server").getEffectiveLevel() == logging.DEBUG


def test_a_module_keeps_the_level_that_its_python_name_was_given(manager: logging.Manager) -> None:
    levels = LogLevels(manager)
    levels.alter([Operation("barnabas.storage", OpType.SET, "ERROR"), Operation("kafka", OpType.SET, "DEBUG")])
    assert manager.getLogger("barnabas.storage.log_manager").getEffectiveLevel() == logging.ERROR
    levels.alter([Operation("barnabas.storage", OpType.DELETE, None)])
    assert manager.getLogger("barnabas.storage.log_manager").getEffectiveLevel() == logging.DEBUG


def test_each_api_has_a_logger_of_its_requests(manager: logging.Manager) -> None:
    alter(manager, "kafka.request.logger.Produce", OpType.SET, "DEBUG")
    assert manager.getLogger("kafka.request.logger.Produce").isEnabledFor(logging.DEBUG)
    with pytest.raises(InvalidConfig, match=r"Logger kafka\.request\.logger\.NoApi does not exist!"):
        alter(manager, "kafka.request.logger.NoApi", OpType.SET, "DEBUG")


def test_a_change_is_announced(manager: logging.Manager) -> None:
    announced: list[str] = []
    levels = LogLevels(manager, on_change=lambda: announced.append(levels.levels()["kafka.request.logger"]))
    levels.alter([Operation("kafka.request.logger", OpType.SET, "DEBUG")])
    assert announced == ["DEBUG"]


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
