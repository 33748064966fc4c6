"""Values of settings from other places: `${file:/etc/secrets.properties:key}`, `${dir:/run/secrets:password}`, `${env:NAME}`.

These are Kafka's config providers, resolved once, before the settings are parsed. `config.providers` lists their names,
`config.providers.NAME.class` is Kafka's class name, and `config.providers.NAME.param.*` limits what a provider may read. A variable that is
not found stays unchanged, as in Kafka: the check of the setting then rejects it.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from barnabas.config_def import InvalidConfig
from barnabas.properties import parse_properties

_log = logging.getLogger(__name__)

_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
_PREFIX: Final = "config.providers"


class ConfigProvider(Protocol):
    def get(self, path: str, key: str) -> str | None:
        """The value of a variable, or None if there is none."""
        ...


def resolve_providers(properties: Mapping[str, str], environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The properties with their variables replaced; raises InvalidConfig for an unknown provider, or one that cannot read."""
    names = [name.strip() for name in properties.get(_PREFIX, "").split(",") if name.strip()]
    if not names:
        return dict(properties)
    providers = {name: _provider(name, properties, os.environ if environment is None else environment) for name in names}
    own = tuple(f"{_PREFIX}.{name}." for name in names)
    return {name: text if name.startswith(own) else _replaced(text, providers) for name, text in properties.items()}


def _replaced(text: str, providers: Mapping[str, ConfigProvider]) -> str:
    def value_of(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        value = provider.get(match[3] or "", match[4]) if provider is not None else None
        return match[0] if value is None else value

    return _VARIABLE.sub(value_of, text)


def _provider(name: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> ConfigProvider:
    setting = f"{_PREFIX}.{name}.class"
    class_name = properties.get(setting, "").strip()
    if not class_name:
        raise InvalidConfig(f"Missing required configuration {setting}: {_PREFIX} names {name}, and this says which class it is")
    params = f"{_PREFIX}.{name}.param."
    own = {key.removeprefix(params): text for key, text in properties.items() if key.startswith(params)}
    kind = class_name.rpartition(".")[2]
    if kind == "FileConfigProvider":
        return FileConfigProvider(AllowedPaths(own.get("allowed.paths")))
    if kind == "DirectoryConfigProvider":
        return DirectoryConfigProvider(AllowedPaths(own.get("allowed.paths")))
    if kind == "EnvVarConfigProvider":
        return EnvVarConfigProvider(environment, own.get("allowlist.pattern", ".*"))
    raise InvalidConfig(
        f"Invalid value {class_name} for configuration {setting}: "
        "there are FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider"
    )


class AllowedPaths:
    """Directories and files that a provider may read, with everything below them; without a list, all."""

    def __init__(self, paths: str | None) -> None:
        self._allowed = None if not paths else [self._checked(path.strip()) for path in paths.split(",")]

    def admit(self, path: str) -> Path | None:
        """The path if it may be read, else None. As in Kafka, `..` is resolved before the check, and links are not."""
        if self._allowed is None:
            return Path(path)
        plain = Path(os.path.normpath(path))
        if Path(path).is_absolute() and any(plain.is_relative_to(allowed) for allowed in self._allowed):
            return plain
        _log.warning("The path %s is not allowed to be accessed", path)
        return None

    @staticmethod
    def _checked(path: str) -> Path:
        if not Path(path).is_absolute():
            raise InvalidConfig(f"Path {path} is not absolute")
        if not Path(path).exists():
            raise InvalidConfig(f"Path {path} does not exist")
        return Path(os.path.normpath(path))


class FileConfigProvider:
    """Reads a key from a properties file."""

    def __init__(self, allowed: AllowedPaths) -> None:
        self._allowed = allowed

    def get(self, path: str, key: str) -> str | None:
        file = self._allowed.admit(path) if path else None
        if file is None:
            return None
        try:
            return parse_properties(file.read_text("utf-8")).get(key)
        except (OSError, ValueError) as error:
            raise InvalidConfig(f"Could not read properties from file {path}: {error}") from error


class DirectoryConfigProvider:
    """Reads a directory with a file for each key, as Kubernetes mounts secrets. The value is the whole content of the file."""

    def __init__(self, allowed: AllowedPaths) -> None:
        self._allowed = allowed

    def get(self, path: str, key: str) -> str | None:
        directory = self._allowed.admit(path) if path else None
        if directory is None:
            return None
        if not directory.is_dir():
            _log.warning("The path %s is not a directory", path)
            return None
        # A key is the name of a file in the directory, never a path to another place.
        if os.sep in key or key in ("", ".", "..") or not (directory / key).is_file():
            return None
        try:
            return (directory / key).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise InvalidConfig(f"Could not read file {directory / key} for property {key}: {error}") from error


class EnvVarConfigProvider:
    def __init__(self, environment: Mapping[str, str], allowlist_pattern: str) -> None:
        try:
            allowed = re.compile(allowlist_pattern)
        except re.error as error:
            raise InvalidConfig(f"Invalid value {allowlist_pattern} for configuration allowlist.pattern: {error}") from None
        self._values = {name: value for name, value in environment.items() if allowed.fullmatch(name)}

    def get(self, path: str, key: str) -> str | None:
        if path:
            raise InvalidConfig(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return self._values.get(key)
