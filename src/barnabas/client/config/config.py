"""The settings of a client: a table of keys, and the values that the user gave.

Values are texts, as in a Java properties file, or Python objects. Names are Kafka's dotted names, or keyword arguments with `_` for the
dots. None means the default. A timedelta is accepted for milliseconds, and a number where Kafka has a text (`acks=1`). Validation errors
have Kafka's words. Names that the table does not have are kept for plug-ins (`originals`). When the client and its plug-ins exist,
`report_unused` rejects a name that looks like a misspelled setting, and warns of names that neither the client nor a plug-in has read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

from barnabas.client.config.config_names import SETTINGS_OF_ANY_CLIENT
from barnabas.client.config.plugin_configs import PluginConfigs, Uses
from barnabas.client.config.without_effect import WITHOUT_EFFECT
from barnabas.config_def import ConfigKey, Importance, InvalidConfig, OneOf, Type, Validator, invalid, parse_type, value_text
from barnabas.config_providers import resolve_providers
from barnabas.near_names import near_name

_log = logging.getLogger(__name__)

_PROVIDERS: Final = "config.providers."
_WARNINGS_MAX: Final = 1000
_warned: set[str] = set()  # in this process


class _Required:
    """The default of a required setting."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


def key(name: str, kind: Type, default: object, validator: Validator | None, importance: Importance, doc: str) -> ConfigKey:
    """A setting of a client; the default is a value of its type, None, or REQUIRED."""
    return ConfigKey(name, kind, default, validator, importance, doc)


class SharedSettings(dict[str, object]):
    """Settings that several kinds of clients may share, such as those of a client.properties file. A misspelled name only causes a warning,
    as in Kafka, because it may belong to another program."""


class ClientConfig:
    """Settings by dotted name: `config["linger.ms"]`. Raises InvalidConfig (Java's ConfigException) for invalid and missing values."""

    def __init__(
        self, keys: Mapping[str, ConfigKey], given: Mapping[str, object] | None = None, keywords: Mapping[str, object] | None = None
    ) -> None:
        self.keys = keys
        self._given = _names(given, keywords)
        self._is_shared = isinstance(given, SharedSettings)
        self._uses = Uses()
        self._values = {name: _value(definition, self._given) for name, definition in keys.items()}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or `default` if this client has no such setting."""
        return self._values.get(name, default)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def is_given(self, name: str) -> bool:
        """Whether the user set it."""
        return self._given.get(name) is not None

    def given(self, name: str) -> object:
        """The value as the user gave it; None if it was not given."""
        return self._given.get(name)

    def override(self, name: str, value: object) -> None:
        """Sets a derived value, such as a generated client id; only while the client is being created."""
        self._values[name] = value

    def originals(self, **more: object) -> PluginConfigs:
        """A copy of everything that the user gave, and of `more` (`_` for `.`), for `configure` of plug-ins."""
        return PluginConfigs(self._given | {name.replace("_", "."): value for name, value in more.items()}, self._uses)

    def values(self) -> dict[str, Any]:
        return dict(self._values)

    def unused(self) -> list[str]:
        """The given names that are no settings of this client and that no plug-in has read by name."""
        return sorted(
            name for name in self._given if name not in self.keys and name not in self._uses.names and not name.startswith(_PROVIDERS)
        )

    def report_unused(self) -> None:
        """Call it when the client and its plug-ins are configured. Raises InvalidConfig for misspelled names."""
        names = self.unused()
        misspelled = _misspelled(names, self.keys) if names else {}
        if misspelled and not self._is_shared:
            raise InvalidConfig("; ".join(_unknown(name, intended) for name, intended in misspelled.items()))
        for name, intended in misspelled.items():
            _warn_once(_unknown(name, intended))
        unread = [name for name in names if name not in misspelled]
        if unread and not self._uses.may_be_all:
            _warn_once(f"These configurations '{unread}' were supplied but are not used yet.")
        for name in sorted(WITHOUT_EFFECT.keys() & self.keys.keys() & self._given.keys()):
            if self._values[name] != self.keys[name].default:
                _warn_once(f"The configuration {name} has no effect here, because {WITHOUT_EFFECT[name]}")

    def instance(self, name: str, known: Mapping[str, Callable[..., Any]] | None = None) -> Any:
        """The object for a setting of type CLASS: see `load`. None if it is not set."""
        value = self._values[name]
        return None if value is None else load(name, value, known)

    def instances(self, name: str, known: Mapping[str, Callable[..., Any]] | None = None) -> list[Any]:
        """The objects for a setting that is a LIST of classes."""
        return [load(name, value, known) for value in self._values[name] or ()]

    def __repr__(self) -> str:
        shown = {name: _shown(definition, self._values[name]) for name, definition in self.keys.items()}
        return f"ClientConfig({', '.join(f'{name}={value}' for name, value in shown.items())})"


def given_plugins(**plugins: object) -> dict[str, object]:
    """The keyword arguments of a client that are not None; for the others the client's settings apply."""
    return {name: value for name, value in plugins.items() if value is not None}


def _misspelled(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Maps each name that looks like a known setting to that setting, except names that are settings of another kind of client."""
    near = {name: near_name(name, known) for name in names if name not in SETTINGS_OF_ANY_CLIENT}
    return {name: intended for name, intended in near.items() if intended is not None}


def _unknown(name: str, intended: str) -> str:
    return f"Unknown configuration {name}: did you mean {intended}?"


def _warn_once(message: str) -> None:
    """Logs a warning once in a process, because programs create many clients with the same settings."""
    if message not in _warned:
        if len(_warned) >= _WARNINGS_MAX:
            _warned.clear()
        _warned.add(message)
        _log.warning("%s", message)


def load(name: str, value: object, known: Mapping[str, Callable[..., Any]] | None = None) -> Any:
    """The object for a value of type CLASS: an object is used as it is, a class is called, and a text names a class.

    The text is a key of `known` (Kafka's own class names, with or without their package), or a Python name like `package.module.Class`.
    """
    if isinstance(value, type):
        return _made(name, value, value)
    if not isinstance(value, str):
        return value
    loaded = None if known is None else known.get(value) or known.get(value.rpartition(".")[2])
    if loaded is None:
        loaded = _imported(name, value)
    return _made(name, value, loaded) if isinstance(loaded, type) else loaded


def _imported(name: str, text: str) -> Any:
    module, _, attribute = text.replace(":", ".").rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise invalid(name, text, f"Class {text} could not be found.") from error


def _made(name: str, value: object, factory: Callable[..., Any]) -> Any:
    try:
        return factory()
    except TypeError as error:
        raise InvalidConfig(f"Could not instantiate class {value} of {name}: it must be callable without arguments: {error}") from error


def _names(given: Mapping[str, object] | None, keywords: Mapping[str, object] | None) -> dict[str, object]:
    if given is not None and not isinstance(given, Mapping):
        raise InvalidConfig(f"Settings come as a dict or as keyword arguments, not as {given!r}; topics are named to subscribe() or send()")
    names: dict[str, object] = {}
    for name, value in (given or {}).items():
        if not isinstance(name, str):
            raise InvalidConfig(f"Key must be a string, but it was {name!r}")
        names[name] = value
    for name, value in (keywords or {}).items():
        names[name.replace("_", ".")] = value
    return names | _from_providers(names)


def _from_providers(names: Mapping[str, object]) -> dict[str, str]:
    """The text values, with references to files or the environment resolved (`config.providers`)."""
    texts = {name: value for name, value in names.items() if isinstance(value, str)}
    providers = names.get("config.providers", "")
    if not isinstance(providers, str) and isinstance(providers, Iterable):
        texts["config.providers"] = ",".join(map(str, providers))
    return resolve_providers(texts) if texts.get("config.providers") else {}


def _value(definition: ConfigKey, given: Mapping[str, object]) -> Any:
    name = definition.name
    if given.get(name) is not None:  # None means the default
        value = _typed(definition, given[name])
    elif definition.default is REQUIRED:
        misspelled = next((candidate for candidate in given if candidate != name and near_name(candidate, (name,))), None)
        hint = "" if misspelled is None else f" {_unknown(misspelled, name)}"
        raise InvalidConfig(f'Missing required configuration "{name}" which has no default value.{hint}')
    else:
        value = definition.default
    if definition.validator is not None:
        definition.validator.check(name, value)
    return value


_MILLISECOND: Final = timedelta(milliseconds=1)
_NUMBERS: Final = {
    Type.INT: "a 32-bit integer",
    Type.SHORT: "a 16-bit integer (short)",
    Type.LONG: "a 64-bit integer (long)",
    Type.DOUBLE: "a double",
}


def _typed(definition: ConfigKey, value: object) -> Any:
    """Converts a given value to the setting's type."""
    name, kind = definition.name, definition.type
    if isinstance(value, str):
        return parse_type(name, value, kind)
    if kind is Type.BOOLEAN:
        if not isinstance(value, bool):
            raise invalid(name, value, "Expected value to be either true or false")
        return value
    if kind in _NUMBERS:
        return _number(name, kind, value)
    if kind is Type.LIST:
        return _listed(name, value)
    if kind is Type.CLASS:
        return value
    if isinstance(definition.validator, OneOf) and type(value) is int:
        return str(value)  # acks=1
    shown = "[hidden]" if kind is Type.PASSWORD else value
    raise invalid(name, shown, f"Expected value to be a string, but it was a {type(value).__name__}")


def _number(name: str, kind: Type, value: object) -> Any:
    if isinstance(value, timedelta) and name.endswith(".ms"):
        value = value / _MILLISECOND
    if isinstance(value, float) and value.is_integer() and kind is not Type.DOUBLE:
        value = int(value)
    numeric = isinstance(value, int | float) if kind is Type.DOUBLE else isinstance(value, int)
    if isinstance(value, bool) or not numeric:
        raise invalid(name, value, f"Expected value to be {_NUMBERS[kind]}, but it was a {type(value).__name__}")
    return float(value) if kind is Type.DOUBLE else parse_type(name, str(value), kind)  # type: ignore[arg-type]


def _listed(name: str, value: object) -> tuple[Any, ...]:
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
        raise invalid(name, value, "Expected a comma separated list.")
    return tuple(dict.fromkeys(value))


def _shown(definition: ConfigKey, value: Any) -> str | None:
    if value is not None and definition.sensitive:
        return "[hidden]"
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return value_text(value)
