"""Reads the settings of a broker from server.properties and the command line, with remarks about them.

Files written for Apache Kafka are accepted. Unknown settings and listeners of controllers are listed in remarks; settings that would
silently mean something else here are refused. The broker itself warns of known settings that have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.synonyms import near_config_name
from barnabas.config_providers import resolve_providers
from barnabas.properties import parse_properties
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode

_BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True)
class Settings:
    config: BrokerConfig
    remarks: tuple[str, ...]  # one line each, for the log


def read_properties_file(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise CannotRun(ExitCode.INVALID_CONFIG, f"{path}: {error.strerror}; name a server.properties file that can be read") from error
    if len(text) > _BYTES_MAX:
        raise CannotRun(ExitCode.INVALID_CONFIG, f"{path} has more than {_BYTES_MAX} characters; is it a server.properties file?")
    try:
        return parse_properties(text)
    except ValueError as error:
        raise CannotRun(ExitCode.INVALID_CONFIG, f"{path}: {error}") from error


def parse_overrides(overrides: Sequence[str]) -> dict[str, str]:
    """Parses the `name=value` pairs of --override; the last value of a name counts."""
    properties: dict[str, str] = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals or not name.strip():
            raise CannotRun(ExitCode.INVALID_CONFIG, f"--override {override}: write it as name=value")
        properties[name.strip()] = value.strip()
    return properties


def settings(properties: Mapping[str, str], remarks: Sequence[str] = ()) -> Settings:
    """`remarks` come before the remarks about the settings themselves. Raises InvalidConfig."""
    resolved = resolve_providers(properties)
    config = BrokerConfig.from_properties(resolved)
    return Settings(config, (*remarks, *_remarks(config), *map(_unknown, config.unknown)))


def _unknown(name: str) -> str:
    near = near_config_name(name)
    return f"The setting {name} is not known and has no effect" + (f"; did you mean {near}?" if near else "")


def _remarks(config: BrokerConfig) -> list[str]:
    closed = [str(listener) for listener in config.listeners if listener not in config.broker_listeners]
    return [f"There is no KRaft quorum here, so these listeners for controllers are not opened: {', '.join(closed)}"] if closed else []
