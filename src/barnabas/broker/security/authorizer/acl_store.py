"""The ACLs in the metadata store: reads them, changes them with Kafka's versioned updates, and listens for the changes of other brokers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.broker.security.authorizer import acl_znodes
from barnabas.errors import KafkaError
from barnabas.metadata import paths
from barnabas.metadata.change_listener import ChangeListener
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import BadVersion, NodeExists, NoNode, TreeError
from barnabas.metadata.tree import Create, CreateMode, Delete, GetChildren, GetData, Multi, Operation, SetData
from barnabas.security.acl import AccessControlEntry, ResourcePattern, ResourceType

UPDATE_RETRIES_MAX: Final = 10
RETRY_BACKOFF_S: Final = 0.1
READ_BATCH: Final = 500  # znodes; the event loop runs in between

_log = logging.getLogger(__name__)

Entries = Sequence[AccessControlEntry]
Change = Callable[[Entries], Entries]


class _Node(NamedTuple):
    entries: Entries
    version: int | None  # None if there is no node


class AclStore:
    """Calls `on_change` with a pattern and its ACLs whenever they may have changed, and `on_load` with all when it has read all."""

    def __init__(
        self,
        tree: TreeClient,
        monotonic_ms: Callable[[], int],
        on_change: Callable[[ResourcePattern, Entries], None],
        on_load: Callable[[Mapping[ResourcePattern, Entries]], None],
        backoff_s: float = RETRY_BACKOFF_S,
    ) -> None:
        self.name: Final = "acl-store"
        self._tree = tree
        self._on_change = on_change
        self._on_load = on_load
        self._backoff_s = backoff_s
        self._turn = asyncio.Lock()  # so that what is read last is applied last
        self._listeners = [
            ChangeListener(tree, path, paths.ACL_CHANGE_PREFIX, self._notified, monotonic_ms)
            for path in (paths.ACL_CHANGES, paths.EXTENDED_ACL_CHANGES)
        ]

    async def start(self) -> None:
        """Listens first and then reads all, so that no change is missed."""
        await self._tree.ensure_all(acl_znodes.acl_paths())
        for listener in self._listeners:
            await listener.start()
        self._tree.register_state_change_handler(self)
        await self.load()

    async def close(self) -> None:
        self._tree.unregister_state_change_handler(self.name)
        for listener in self._listeners:
            await listener.close()

    async def before_initializing_session(self) -> None:
        """Nothing to do: ACLs are not ephemeral."""

    async def after_initializing_session(self) -> None:
        """Reads all again: notifications of changes may have been purged while there was no session."""
        await self.load()

    async def load(self) -> None:
        async with self._turn:
            patterns = await self._all_patterns()
            acls: dict[ResourcePattern, Entries] = {}
            for start in range(0, len(patterns), READ_BATCH):
                acls.update((pattern, node.entries) for pattern, node in (await self._read(patterns[start : start + READ_BATCH])).items())
                await asyncio.sleep(0)
            self._on_load(acls)

    async def change(self, changes: Mapping[ResourcePattern, Change]) -> dict[ResourcePattern, KafkaError | None]:
        """Applies to each pattern the change of its entries, and notifies all brokers. Returns the errors.

        A write is conditional on the version that was read. If another broker has changed the pattern in between, its entries are read and
        changed again, `UPDATE_RETRIES_MAX` times.
        """
        async with self._turn:
            errors: dict[ResourcePattern, KafkaError | None] = {}
            pending = list(changes)
            for attempt in range(UPDATE_RETRIES_MAX + 1):
                if attempt:
                    await asyncio.sleep(self._backoff_s)
                pending = await self._try_to_change({pattern: changes[pattern] for pattern in pending}, errors)
                if not pending:
                    return errors
            for pattern in pending:
                errors[pattern] = KafkaError(f"Failed to update ACLs for {pattern} after trying a maximum of {UPDATE_RETRIES_MAX} times")
            return errors

    async def _try_to_change(
        self, changes: Mapping[ResourcePattern, Change], errors: dict[ResourcePattern, KafkaError | None]
    ) -> list[ResourcePattern]:
        """Returns the patterns that another writer has changed in the meantime."""
        try:
            before = await self._read(list(changes))
        except TreeError as error:
            errors.update(dict.fromkeys(changes, _failed(error)))
            return []
        after = {pattern: change(before[pattern].entries) for pattern, change in changes.items()}
        changed = {pattern: after[pattern] for pattern in changes if list(after[pattern]) != list(before[pattern].entries)}
        faults = await self._write(changed, before)
        conflicts = [pattern for pattern, fault in faults.items() if isinstance(fault, (BadVersion, NodeExists, NoNode))]
        for pattern in (pattern for pattern in changes if pattern not in conflicts):
            fault = faults.get(pattern)
            errors[pattern] = None if fault is None else _failed(fault)
            if fault is None:
                self._on_change(pattern, after[pattern])
        return conflicts

    async def _write(
        self, acls: Mapping[ResourcePattern, Entries], before: Mapping[ResourcePattern, _Node]
    ) -> dict[ResourcePattern, TreeError | None]:
        """Writes each pattern together with its notification. Kafka writes one after the other: if the session ends in between, the other
        brokers are never notified, because a retry finds nothing to change."""
        responses = await self._tree.handle(
            [Multi([_write(pattern, entries, before[pattern].version), _notification(pattern)]) for pattern, entries in acls.items()]
        )
        for pattern, response in zip(acls, responses, strict=True):
            if response.error is None:
                _log.info("Updated ACLs for %s", pattern)
        return {pattern: response.error for pattern, response in zip(acls, responses, strict=True)}

    async def _notified(self, path: str, data: bytes) -> None:
        pattern = acl_znodes.decode_change(path, data)
        async with self._turn:
            node = (await self._read([pattern]))[pattern]
            _log.info("Processing Acl change notification for %s, ACLs: %s", pattern, ", ".join(map(str, node.entries)))
            self._on_change(pattern, node.entries)

    async def _all_patterns(self) -> list[ResourcePattern]:
        patterns: list[ResourcePattern] = []
        for pattern_type in acl_znodes.PATTERN_TYPES:
            root = paths.parent(paths.acl_type("Topic", pattern_type.name))
            titles = [title for title in await self._children(root) if _is_known(root, title)]
            for title in titles:
                kind = ResourceType.from_string(title)
                patterns.extend(ResourcePattern(kind, name, pattern_type) for name in await self._children(f"{root}/{title}"))
        return patterns

    async def _children(self, path: str) -> list[str]:
        (response,) = await self._tree.handle([GetChildren(path)])
        return [] if isinstance(response.error, NoNode) else response.value.names

    async def _read(self, patterns: Iterable[ResourcePattern]) -> dict[ResourcePattern, _Node]:
        pattern_list = list(patterns)
        responses = await self._tree.handle([GetData(acl_znodes.path_of(pattern)) for pattern in pattern_list])
        nodes: dict[ResourcePattern, _Node] = {}
        for pattern, response in zip(pattern_list, responses, strict=True):
            if isinstance(response.error, NoNode):
                nodes[pattern] = _Node((), None)
            else:
                data, stat = response.value
                nodes[pattern] = _Node(acl_znodes.decode(pattern, data), stat.version)
        return nodes


def _write(pattern: ResourcePattern, entries: Entries, version: int | None) -> Operation:
    """A pattern without entries has no node, as in Kafka."""
    path = acl_znodes.path_of(pattern)
    if version is None:
        return Create(path, acl_znodes.encode(entries))
    return SetData(path, acl_znodes.encode(entries), version) if entries else Delete(path, version)


def _notification(pattern: ResourcePattern) -> Create:
    path, data = acl_znodes.encode_change(pattern)
    return Create(path, data, CreateMode.PERSISTENT_SEQUENTIAL)


def _is_known(root: str, title: str) -> bool:
    if ResourceType.from_string(title) in acl_znodes.RESOURCE_TYPES:
        return True
    _log.warning("Ignoring unknown ResourceType: %s in %s. Nothing here has this type, so its ACLs can be deleted", title, root)
    return False


def _failed(error: TreeError) -> KafkaError:
    _log.error("The ACLs could not be changed in the metadata store: %s", error)
    return KafkaError(str(error))
