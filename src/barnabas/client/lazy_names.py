"""Loads the public names of a package at their first use, so that importing one name does not load the modules of all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_getattr(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: `places` has the module of each public name. Other names raise AttributeError, as without it."""

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return load
