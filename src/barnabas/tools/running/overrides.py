"""Settings that override server.properties: first those of --override-file, then those of --override.

The process list shows the value of --override to every user. Secrets are removed from the process title as soon as they are read, and a
log line names the ways that do not expose them.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.broker.config.synonyms import config_key, near_config_name
from barnabas.tools.command_line.command_line import hide_overrides
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode
from barnabas.tools.running.settings import parse_overrides, read_properties_file

_VARIABLE: Final = re.compile(r"\$\{[^}]+\}")  # a reference to a config provider
_SHOWN: Final = (
    "{} was given by --override, where other users can read it until the broker has started: "
    "give it in a file by --override-file, or as a variable of a config provider"
)


@dataclass(frozen=True)
class Overrides:
    properties: Mapping[str, str]
    remarks: tuple[str, ...] = ()  # one line each, for the log


def read_overrides(given: Namespace) -> Overrides:
    hide_overrides(_may_be_secret)
    overrides = parse_overrides(given.override)
    properties: dict[str, str] = {}
    for path in given.override_file:
        properties |= read_properties_file(path)
    shown = [name for name, value in overrides.items() if _is_secret(name) and not _VARIABLE.search(value)]
    _refuse_misspelt(properties | overrides)
    return Overrides(properties | overrides, tuple(map(_SHOWN.format, shown)))


def _refuse_misspelt(properties: Iterable[str]) -> None:
    """An unknown name in --override is an error. In server.properties it is only a warning, because the file may be written for another
    Kafka."""
    for name in properties:
        near = near_config_name(name)
        if near is not None:
            raise CannotRun(ExitCode.INVALID_CONFIG, f"the setting {name} is not known; did you mean {near}?")


def _is_secret(name: str) -> bool:
    key = config_key(name)
    return key is not None and key.sensitive


def _may_be_secret(name: str) -> bool:
    """True also for an unknown name: it may be the misspelt name of a secret."""
    return _is_secret(name) or (config_key(name) is None and not name.startswith("config.providers"))
