"""Settings of a resource as brokers answer them: value, source, and what else is known of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class ConfigResourceType(IntEnum):
    """Java's ConfigResource.Type, with the numbers of the wire."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def for_id(cls, number: int) -> ConfigResourceType:
        return _TYPES.get(number, cls.UNKNOWN)


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """What has settings. A broker is named by its id; the name "" stands for the default of all brokers."""

    type: ConfigResourceType
    name: str

    @property
    def is_default(self) -> bool:
        return not self.name

    def __str__(self) -> str:
        return f"ConfigResource(type={self.type.name}, name='{self.name}')"


class ConfigSource(IntEnum):
    """Where a value comes from, with the numbers of the wire."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    @classmethod
    def for_id(cls, number: int) -> ConfigSource:
        return _SOURCES.get(number, cls.UNKNOWN)


class ConfigType(IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9

    @classmethod
    def for_id(cls, number: int) -> ConfigType:
        return _CONFIG_TYPES.get(number, cls.UNKNOWN)


_TYPES: Final = {int(member): member for member in ConfigResourceType}
_SOURCES: Final = {int(member): member for member in ConfigSource}
_CONFIG_TYPES: Final = {int(member): member for member in ConfigType}


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A value that counts when those before it in the list are not set."""

    name: str
    value: str | None
    source: ConfigSource

    def __str__(self) -> str:
        return f"ConfigSynonym(name={self.name}, value={_text(self.value)}, source={self.source.name})"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """`value` is None for a setting without a value, and for one that is sensitive: a broker never tells those."""

    name: str
    value: str | None
    source: ConfigSource = ConfigSource.UNKNOWN
    is_sensitive: bool = False
    is_read_only: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


class Config(Mapping[str, ConfigEntry]):
    """The settings of one resource by their names, in the order in which the broker gave them."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[ConfigEntry] = ()) -> None:
        self._entries = {entry.name: entry for entry in entries}

    @property
    def entries(self) -> list[ConfigEntry]:
        return list(self._entries.values())

    def __getitem__(self, name: str) -> ConfigEntry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Config({self.entries!r})"


def _text(value: str | None) -> str:
    return "null" if value is None else value
