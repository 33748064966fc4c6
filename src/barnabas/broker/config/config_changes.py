"""The notifications of config changes in /config/changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from barnabas.metadata import paths
from barnabas.metadata.change_listener import CHANGE_EXPIRATION_MS, ChangeListener
from barnabas.metadata.client import TreeClient
from barnabas.metadata.znodes.configs import decode_config_change


class ConfigChangeListener(ChangeListener):
    """Calls `on_entity` with the path of each changed entity, relative to /config/."""

    def __init__(
        self,
        tree: TreeClient,
        on_entity: Callable[[str], Awaitable[None]],
        monotonic_ms: Callable[[], int],
        expiration_ms: int = CHANGE_EXPIRATION_MS,
    ) -> None:
        async def on_change(path: str, data: bytes) -> None:
            await on_entity(decode_config_change(path, data))

        super().__init__(tree, paths.CONFIG_CHANGES, paths.CONFIG_CHANGE_PREFIX, on_change, monotonic_ms, expiration_ms)
