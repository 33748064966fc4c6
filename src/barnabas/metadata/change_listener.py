"""Kafka's ZkNodeChangeNotificationListener: processes each change notification in a directory of sequential znodes once and in order.

A notification only names what changed, and its handler reads the rest. The watch is called inside the commit of the change, so it only
wakes a task. A listener deletes a notification that it has seen for a quarter of an hour: by then every running broker has processed it,
and a broker that is down reads everything at its start. The age is measured on the monotonic clock. Kafka compares the wall clock of the
broker with that of the store: a broker whose clock is fast deletes notifications before the other brokers have read them, and they keep
an ACL that was removed.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import SessionExpired, TreeError
from barnabas.metadata.tree import Delete
from barnabas.metadata.znodes.json_text import CorruptZNode

CHANGE_EXPIRATION_MS: Final = 15 * 60 * 1000

_log = logging.getLogger(__name__)


class ChangeListener:
    """Calls `on_change` with the path and the data of each notification, a child of `path` whose name is `prefix` and a sequence number."""

    def __init__(
        self,
        tree: TreeClient,
        path: str,
        prefix: str,
        on_change: Callable[[str, bytes], Awaitable[None]],
        monotonic_ms: Callable[[], int],
        expiration_ms: int = CHANGE_EXPIRATION_MS,
    ) -> None:
        self.path: Final = path
        self.name: Final = f"change-notification-{path}"
        self._tree = tree
        self._notification: Final = re.compile(rf"{re.escape(prefix)}[0-9]{{{paths.SEQUENCE_DIGITS}}}")
        self._on_change = on_change
        self._monotonic_ms = monotonic_ms
        self._expiration_ms = expiration_ms
        self._last_change = -1
        self._seen_ms: dict[str, int] = {}  # when this listener first saw each existing notification
        self._woken = asyncio.Event()
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts listening. Skips earlier notifications: the caller reads the current state after this, in `held`."""
        self._tree.register_state_change_handler(self)
        self._tree.register_child_change_handler(self)
        await self._tree.ensure(self.path)
        changes = await self._notifications()
        if changes:
            self._last_change = paths.sequence_number(changes[-1])
        await self._purge(changes)
        self._task = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        self._tree.unregister_state_change_handler(self.name)
        self._tree.unregister_child_change_handler(self.path)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def handle_child_change(self) -> None:
        self._woken.set()

    async def before_initializing_session(self) -> None:
        """Nothing to do: the notifications are not ephemeral."""

    async def after_initializing_session(self) -> None:
        """Looks again: the watch ended with the old session, and there may have been changes since."""
        self._woken.set()

    async def process(self) -> None:
        """Processes all new notifications. The maker of a change awaits it. A failed notification is retried with the next change."""
        try:
            async with self._turn:
                await self._process_new()
        except SessionExpired:
            _log.warning("The session with the metadata store ended: the changes in %s are processed in the next session", self.path)
        except Exception:
            _log.exception("Error while processing notification change for path = %s", self.path)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Processes no notification meanwhile, so that a caller which reads the current state cannot overwrite a newer one with it."""
        async with self._turn:
            yield

    async def _run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            await self.process()

    async def _process_new(self) -> None:
        changes = await self._notifications()
        for name in changes:
            if (number := paths.sequence_number(name)) > self._last_change:
                await self._process(f"{self.path}/{name}")
                self._last_change = number
        await self._purge(changes)

    async def _notifications(self) -> list[str]:
        """The names of the notifications in the order of their creation. Other children are ignored."""
        children = await self._tree.children(self.path)
        names = children.names if children is not None else []
        return sorted((name for name in names if self._notification.fullmatch(name)), key=paths.sequence_number)

    async def _process(self, path: str) -> None:
        """Logs and skips a notification that cannot be read or applied, so that it does not block the next ones."""
        node = await self._tree.get(path)
        if node is None or node.data is None:
            _log.warning("Nothing to read in %s", path)
            return
        try:
            await self._on_change(path, node.data)
        except TreeError:
            raise  # not a fault of the notification: it is retried when the session is back
        except CorruptZNode as error:
            _log.error("The change notification is skipped: %s", error)
        except Exception:
            _log.exception("Error processing change notification %r from %s", node.data, path)

    async def _purge(self, names: list[str]) -> None:
        monotonic_ms = self._monotonic_ms()
        self._seen_ms = {name: self._seen_ms.get(name, monotonic_ms) for name in names}
        expired = [name for name, seen_ms in self._seen_ms.items() if seen_ms < monotonic_ms - self._expiration_ms]
        for name in expired:
            del self._seen_ms[name]
        await self._tree.handle([Delete(f"{self.path}/{name}") for name in expired])
