"""Dynamic log levels: the BROKER_LOGGER resource, with Kafka's levels on Python's loggers.

The levels are not stored, and a restart resets them, as in Kafka. The name of a logger is the dotted name of its module; `root` is the root
logger. The level of a package applies to its modules without a level of their own.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Final

from barnabas.broker.config.alter import Operation, OpType
from barnabas.broker.config.describe import ConfigEntry
from barnabas.config_def import ConfigSource, InvalidConfig
from barnabas.errors import InvalidRequest, KafkaError

ROOT: Final = "root"
TRACE: Final = 5  # Python has no level below DEBUG

_LEVELS: Final = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}

_log = logging.getLogger(__name__)


class LogLevels:
    """`manager` holds the loggers; by default it is that of Python's logging module."""

    def __init__(self, manager: logging.Manager = logging.Logger.manager) -> None:
        self._manager = manager

    def levels(self) -> dict[str, str]:
        """The effective level of every logger, by name."""
        names = sorted(name for name in self._manager.loggerDict if name != ROOT)
        return {ROOT: level_name(self._manager.root.level)} | {name: self._level_of(name) for name in names}

    def describe(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
        return [
            ConfigEntry(name, level, source, sensitive=False, read_only=False, synonyms=(), type=0, doc="")
            for name, level in self.levels().items()
            if names is None or name in names
        ]

    def validate(self, operations: Iterable[Operation]) -> None:
        for operation in operations:
            self._validate(operation)

    def alter(self, operations: Iterable[Operation]) -> None:
        """Applies operations, which must be valid."""
        for operation in operations:
            logger = self._logger(operation.name)
            if operation.type == OpType.SET:
                assert operation.value is not None, "validated before"
                logger.setLevel(_LEVELS[operation.value])
                _log.warning("Updated the log level of %s to %s", operation.name, operation.value)
            else:
                logger.setLevel(logging.NOTSET)
                _log.warning("Unset the log level of %s", operation.name)

    def _validate(self, operation: Operation) -> None:
        name, value = operation.name, operation.value
        if operation.type in (OpType.APPEND, OpType.SUBTRACT):
            raise InvalidRequest(f"{OpType(operation.type).name} operation is not allowed for the BROKER_LOGGER resource")
        if operation.type not in (OpType.SET, OpType.DELETE):
            raise KafkaError  # UNKNOWN_SERVER_ERROR, as in Kafka
        if name != ROOT and name not in self._manager.loggerDict:
            raise InvalidConfig(f"Logger {name} does not exist!")
        if operation.type == OpType.SET and value not in _LEVELS:
            raise InvalidConfig(
                f"Cannot set the log level of {name} to {value} as it is not a supported log level. "
                f"Valid log levels are {', '.join(sorted(_LEVELS))}"
            )
        if operation.type == OpType.DELETE and name == ROOT:
            raise InvalidRequest(f"Removing the log level of the {ROOT} logger is not allowed")

    def _logger(self, name: str) -> logging.Logger:
        return self._manager.root if name == ROOT else self._manager.getLogger(name)

    def _level_of(self, name: str) -> str:
        """The level of a logger or of its nearest parent with a level. Creates no logger."""
        while name:
            logger = self._manager.loggerDict.get(name)
            if isinstance(logger, logging.Logger) and logger.level:
                return level_name(logger.level)
            name = name.rpartition(".")[0]
        return level_name(self._manager.root.level)


def level_name(level: int) -> str:
    """Kafka's name of a level. A number between two levels gets the name of the higher one."""
    return next((name for name, number in _LEVELS.items() if level <= number), "FATAL")
