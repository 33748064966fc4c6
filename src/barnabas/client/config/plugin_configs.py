"""The settings that `configure` of a plug-in (serializer, interceptor, partitioner, assignor, metrics reporter) receives."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping, ValuesView
from typing import Any


class Uses:
    """The names that plug-ins have read. A plug-in that iterates over all values may have used every name."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.may_be_all = False


class PluginConfigs(dict[str, Any]):
    """A copy of the settings as the user gave them; records the names that the plug-in reads."""

    def __init__(self, settings: Mapping[str, object], uses: Uses) -> None:
        super().__init__(settings)
        self._uses = uses

    def __getitem__(self, name: str) -> Any:
        self._uses.names.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str):
            self._uses.names.add(name)
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._uses.names.add(name)
        return super().get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        self._uses.names.add(name)
        return super().pop(name, *default)

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        self._uses.may_be_all = True
        return super().items()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        self._uses.may_be_all = True
        return super().values()
