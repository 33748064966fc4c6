"""The settings of a broker or topic for the page: changed settings come first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import unescape
from typing import Final

from barnabas.client.admin.cluster.config_entries import ConfigEntry, ConfigSource

_SOURCES: Final = {
    ConfigSource.DYNAMIC_BROKER_CONFIG: "changed at run time, this broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "changed at run time, all brokers",
    ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG: "changed at run time",
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "changed, this topic",
    ConfigSource.STATIC_BROKER_CONFIG: "file or options",
    ConfigSource.DEFAULT_CONFIG: "default",
}
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as a page shows it. A sensitive value is never sent by a broker; `can_change` is whether it changes without a restart."""

    name: str
    value: str | None
    source: str
    is_changed: bool
    is_sensitive: bool
    can_change: bool
    documentation: str | None
    default: str | None  # Kafka's default, where another value replaces it


def settings_of(entries: Iterable[ConfigEntry], search: str = "", own: ConfigSource | None = None) -> list[Setting]:
    """Changed settings first, each part by name. `search` is looked for in names, values and documentation. With `own`, only a value from
    this source counts as changed: a topic inherits the settings of its brokers."""
    words = search.lower().split()
    made = [_setting(entry, own) for entry in entries]
    matching = [setting for setting in made if all(word in _text(setting) for word in words)]
    return sorted(matching, key=lambda setting: (not setting.is_changed, setting.name))


def plain(documentation: str | None) -> str | None:
    """Documentation without the HTML that Apache Kafka's has."""
    if not documentation:
        return None
    return " ".join(unescape(_TAG.sub("", documentation)).split())


def _setting(entry: ConfigEntry, own: ConfigSource | None) -> Setting:
    default = next((synonym.value for synonym in entry.synonyms if synonym.source is ConfigSource.DEFAULT_CONFIG), None)
    is_changed = entry.source is not ConfigSource.DEFAULT_CONFIG if own is None else entry.source is own
    return Setting(
        entry.name,
        entry.value,
        _SOURCES.get(entry.source, entry.source.name.replace("_", " ").lower()),
        is_changed,
        entry.is_sensitive,
        not entry.is_read_only,
        plain(entry.documentation),
        default if is_changed else None,
    )


def _text(setting: Setting) -> str:
    value = "" if setting.is_sensitive else setting.value or ""
    return f"{setting.name} {value} {setting.documentation or ''} {setting.source}".lower()
