"""Dynamic log levels: the BROKER_LOGGER resource, with Kafka's levels on Python's loggers.

The levels are not stored, and a restart resets them, as in Kafka. A logger has Kafka's name (`barnabas/loggers.py` is the table) or the
dotted name of a Python module; `root` is the root logger. The level of a logger applies to its children without a level of their own. A
change of one of Kafka's loggers sets the levels of the Python loggers that the table gives it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final

from barnabas import loggers
from barnabas.broker.config.alterations.alter import Operation, OpType
from barnabas.broker.config.describe import ConfigEntry
from barnabas.config_def import ConfigSource, InvalidConfig
from barnabas.errors import InvalidRequest, KafkaError
from barnabas.loggers import TRACE
from barnabas.protocol.registry import BY_NAME

ROOT: Final = "root"
REQUEST_LOGGERS: Final = frozenset(f"{loggers.REQUEST}.{api}" for api in BY_NAME)  # one of each API: our extension

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
    """`manager` holds the loggers; by default it is that of Python's logging module. `on_change` is called after a change."""

    def __init__(self, manager: logging.Manager = logging.Logger.manager, on_change: Callable[[], object] = bool) -> None:
        self._manager = manager
        self._set_by_module: set[str] = set()  # modules of the table that were given a level by their Python name
        self._on_change = on_change

    def levels(self) -> dict[str, str]:
        """The effective level of every logger, by name."""
        names = sorted((loggers.KNOWN | REQUEST_LOGGERS | self._manager.loggerDict.keys()) - {ROOT})  # kafka-configs alters no other ones
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
            self._apply_to_modules(operation.name, logger.level)
        self._on_change()

    def _apply_to_modules(self, changed: str, level: int) -> None:
        """Gives each module of the table the level of its Kafka logger, except modules whose Python name was given a level."""
        if changed in loggers.MODULES:
            (self._set_by_module.add if level else self._set_by_module.discard)(changed)
        for module in sorted(loggers.MODULES.keys() - self._set_by_module):
            logger = self._manager.getLogger(module)
            level = self._own_level(loggers.MODULES[module]) or self._manager.root.level
            logger.setLevel(logging.NOTSET)
            if logger.getEffectiveLevel() != level:  # the Python parent may belong to another logger of Kafka
                logger.setLevel(level)

    def _validate(self, operation: Operation) -> None:
        name, value = operation.name, operation.value
        if operation.type in (OpType.APPEND, OpType.SUBTRACT):
            raise InvalidRequest(f"{OpType(operation.type).name} operation is not allowed for the BROKER_LOGGER resource")
        if operation.type not in (OpType.SET, OpType.DELETE):
            raise KafkaError  # UNKNOWN_SERVER_ERROR, as in Kafka
        if name != ROOT and name not in loggers.KNOWN and name not in REQUEST_LOGGERS and name not in self._manager.loggerDict:
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
        return level_name(self._own_level(name) or self._manager.root.level)

    def _own_level(self, name: str) -> int:
        """The level of a logger or of its nearest parent with a level; 0 if only root has one. Creates no logger."""
        for parent in loggers.with_parents(name):
            logger = self._manager.loggerDict.get(parent)
            if isinstance(logger, logging.Logger) and logger.level:
                return logger.level
        return logging.NOTSET


def level_name(level: int) -> str:
    """Kafka's name of a level. A number between two levels gets the name of the higher one."""
    return next((name for name, number in _LEVELS.items() if level <= number), "FATAL")
