"""A broker's parsed configuration, from which the coordinators' configs are made."""

from __future__ import annotations

from typing import Any, Protocol


class ParsedConfig(Protocol):
    def __getitem__(self, name: str, /) -> Any:
        """The value of the setting; raises KeyError if the configuration has none."""
