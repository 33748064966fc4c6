"""Log levels that are changed while the broker runs: the BROKER_LOGGER resource, Kafka's levels on Python's loggers.

Nothing of it is stored: a restart forgets it, as in Kafka. A logger goes by the dotted name of its module, all of them together by
`root`; a name may also be that of a package, which counts for the modules in it that have no level of their own.
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
TRACE: Final = 5  # Python has nothing below DEBUG

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
    """`manager` is what keeps the loggers: Python's own, if nobody says otherwise."""

    def __init__(self, manager: logging.Manager = logging.Logger.manager) -> None:
        self._manager = manager

    def levels(self) -> dict[str, str]:
        """Every logger by name, with the level that counts for it."""
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
        """Operations that were validated."""
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
            raise KafkaError  # Kafka answers UNKNOWN_SERVER_ERROR
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
        """The level of the nearest one above that has one. Nobody is made a logger by being looked at."""
        while name:
            logger = self._manager.loggerDict.get(name)
            if isinstance(logger, logging.Logger) and logger.level:
                return level_name(logger.level)
            name = name.rpartition(".")[0]
        return level_name(self._manager.root.level)


def level_name(level: int) -> str:
    """Kafka's name of a level, which may be a number of somebody's own."""
    return next((name for name, number in _LEVELS.items() if level <= number), "FATAL")
