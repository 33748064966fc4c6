"""Makes an instance of the Python class that a setting names by its dotted path: authorizers, principal builders, callback handlers."""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

from barnabas.config_def import InvalidConfig

T = TypeVar("T")


def instance_of(name: str, setting: str, base: type[T]) -> T:
    """Raises InvalidConfig. Nothing but a class that derives from `base` is called: the setting may name any function."""
    module_name, _, class_name = name.rpartition(".")
    base_name = f"{base.__module__}.{base.__qualname__}"
    try:
        named = getattr(import_module(module_name), class_name)
        made = named() if isinstance(named, type) and issubclass(named, base) else None
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InvalidConfig(
            f"Invalid value {name} for configuration {setting}: no Python class can be made of it ({error}); "
            f"give the dotted path of a subclass of {base_name} that is on PYTHONPATH"
        ) from error
    if made is None:
        raise InvalidConfig(f"Invalid value {name} for configuration {setting}: the class must derive from {base_name}")
    return made
