"""Settings of a resource as brokers return them: value, source, type and documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from barnabas.config_def import ConfigResourceType, ConfigSource
from barnabas.config_def import Type as ConfigType

__all__ = ["Config", "ConfigEntry", "ConfigResource", "ConfigResourceType", "ConfigSource", "ConfigSynonym", "ConfigType"]


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A resource that has settings. A broker is named by its id; the name "" is the default of all brokers."""

    type: ConfigResourceType
    name: str

    @property
    def is_default(self) -> bool:
        """Whether it stands for the default of all resources of its type: its name is empty."""
        return not self.name

    def __str__(self) -> str:
        return f"ConfigResource(type={self.type.name}, name='{self.name}')"


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A value that applies if the values before it in the list are not set."""

    name: str
    value: str | None
    source: ConfigSource

    def __str__(self) -> str:
        return f"ConfigSynonym(name={self.name}, value={_text(self.value)}, source={self.source.name})"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting. `value` is None for a setting without a value, and for a sensitive setting, whose value a broker never returns."""

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
        """Whether the value is Kafka's default: nobody has set it."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class Config(Mapping[str, ConfigEntry]):
    """The settings of one resource by name, in the order of the broker's response."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[ConfigEntry] = ()) -> None:
        self._entries = {entry.name: entry for entry in entries}

    @property
    def entries(self) -> list[ConfigEntry]:
        """All settings of the resource."""
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
