"""The settings of a topic before it exists: their names, those that people set most, and what each does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.config_def import value_text
from barnabas.storage.topic_configs import TOPIC_CONFIGS

COMMON_SETTINGS: Final = (
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "min.insync.replicas",
    "max.message.bytes",
    "compression.type",
)


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """A setting of Kafka's topics. `default` is Kafka's own; the settings of the brokers may give another one."""

    name: str
    documentation: str
    default: str


def known_settings() -> tuple[KnownSetting, ...]:
    """All settings that a topic can be created with, by name."""
    return tuple(
        KnownSetting(name, key.doc, value_text(key.default) or "") for name, key in sorted(TOPIC_CONFIGS.items()) if not key.hidden
    )


def common_settings() -> tuple[KnownSetting, ...]:
    """The settings that people set most."""
    by_name = {setting.name: setting for setting in known_settings()}
    return tuple(by_name[name] for name in COMMON_SETTINGS)


def parse_settings(text: str) -> dict[str, str]:
    """Lines of `name=value`. Raises ValueError with a sentence about the line that is none."""
    settings: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = line.partition("=")
        name = name.strip()
        if not line.strip():
            continue
        if not equals or not name:
            raise ValueError(f"Line {number} of the other settings is not name=value: {line.strip()[:100]}")
        if name in settings:
            raise ValueError(f"{name} is given twice.")
        settings[name] = value.strip()
    return settings
