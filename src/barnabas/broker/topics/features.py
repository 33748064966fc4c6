"""Feature levels: which features this broker supports, and on which level the cluster has agreed to run each of them.

ApiVersions tells both to clients, who choose their protocols by them. What the cluster agreed on stands in /barnabas/features, whose
version is the epoch that clients compare; level 0 there is a feature that was turned off. A feature is named here only once it truly works;
a level that this broker does not support is never run under, the broker does not start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import BadVersion, NodeExists, TreeError
from barnabas.metadata.znodes.cluster import FeatureZNode, decode_broker, decode_features, encode_features
from barnabas.metadata.znodes.json_text import CorruptZNode

_log = logging.getLogger(__name__)

UNKNOWN_EPOCH: Final = -1


class Levels(NamedTuple):
    """The lowest and the highest level of a feature that work here."""

    lowest: int
    highest: int


GROUP_VERSION: Final = "group.version"  # 1: the consumer protocol
TRANSACTION_VERSION: Final = "transaction.version"  # 1: flexible records in the coordinator's log; 2: a new epoch for each transaction
SUPPORTED: Final[Mapping[str, Levels]] = {GROUP_VERSION: Levels(0, 1), TRANSACTION_VERSION: Levels(0, 2)}


class UnsupportedFeatures(Exception):
    """The cluster runs on levels that this broker does not know; the text names them and the fix."""


class FeatureLevels:
    """It is its own handler for changes of the node (`ZNodeChangeHandler`) and of the session (`StateChangeHandler`)."""

    def __init__(self, tree: TreeClient, supported: Mapping[str, Levels] = SUPPORTED) -> None:
        self.supported = supported
        self.finalized: Mapping[str, int] = {}
        self.epoch = UNKNOWN_EPOCH
        self._tree = tree
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Reads the levels and follows them from then on. In a new cluster it is the first broker that sets them, to the highest.

        A feature that the cluster has never heard of, since all its brokers were older, is set to the highest level by the first broker
        that finds no other that lacks it.
        """
        self._tree.register_change_handler(self)
        self._tree.register_state_change_handler(self)
        await self.read()
        if self.epoch == UNKNOWN_EPOCH and self.supported:
            await self._set_first_levels()
            await self.read()
        elif new := {name: levels.highest for name, levels in self.supported.items() if name not in self.finalized}:
            await self._introduce(new)

    async def close(self) -> None:
        self._tree.unregister_change_handler(self.path)
        self._tree.unregister_state_change_handler(self.name)
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def read(self) -> None:
        """Takes over what the tree holds; raises UnsupportedFeatures, or CorruptZNode, and keeps what it had."""
        await self._tree.exists(self.path)  # only this watches a node that is not there yet
        node = await self._tree.get(self.path)
        if node is None:
            self.finalized, self.epoch = {}, UNKNOWN_EPOCH
            return
        levels = decode_features(node.data, self.path).levels
        self._check(levels)
        self.finalized, self.epoch = levels, node.stat.version

    async def finalize(self, levels: Mapping[str, int]) -> None:
        """Makes these the levels of the cluster, unless somebody else changed them since they were read (BadVersion)."""
        self._check(levels)
        data = encode_features(FeatureZNode(dict(levels)))
        if self.epoch == UNKNOWN_EPOCH:
            await self._tree.create_recursive(self.path, data)
        else:
            await self._tree.set_data(self.path, data, self.epoch)
        await self.read()

    @property
    def path(self) -> str:
        return paths.BARNABAS_FEATURES

    def handle_creation(self) -> None:
        self._read_again()

    def handle_deletion(self) -> None:
        self._read_again()

    def handle_data_change(self) -> None:
        self._read_again()

    @property
    def name(self) -> str:
        return "feature-levels"

    async def before_initializing_session(self) -> None:
        """Nothing of it is ephemeral."""

    async def after_initializing_session(self) -> None:
        """The watch went with the old session, and they may have been changed in between."""
        self._read_again()

    def _check(self, levels: Mapping[str, int]) -> None:
        unknown = {name: level for name, level in levels.items() if not self._supports(name, level)}
        if unknown:
            raise UnsupportedFeatures(
                f"The cluster runs on feature levels that this broker does not support: {unknown}. It supports {dict(self.supported)}: "
                f"install the version that the other brokers have"
            )

    def _supports(self, name: str, level: int) -> bool:
        levels = self.supported.get(name)
        return levels is not None and levels.lowest <= level <= levels.highest

    async def _set_first_levels(self) -> None:
        highest = {name: levels.highest for name, levels in self.supported.items()}
        try:
            await self._tree.create_recursive(self.path, encode_features(FeatureZNode(highest)))
        except NodeExists:
            pass  # another broker of the new cluster was faster

    async def _introduce(self, new: Mapping[str, int]) -> None:
        everywhere = {name: level for name, level in new.items() if await self._is_supported_by_all(name, level)}
        if not everywhere:
            return
        try:
            await self.finalize({**self.finalized, **everywhere})
            _log.info("Feature levels of the cluster are now %s", dict(self.finalized))
        except BadVersion:
            await self.read()  # another broker was faster

    async def _is_supported_by_all(self, name: str, level: int) -> bool:
        registered = await self._tree.children(paths.BROKER_IDS)
        for broker_id in map(int, registered.names if registered is not None else ()):
            node = await self._tree.get(paths.broker_id(broker_id))
            if node is None:
                continue  # it has just left
            known = decode_broker(broker_id, node.data).features.get(name, {})
            if not known.get("min_version", 0) <= level <= known.get("max_version", 0):
                return False
        return True

    def _read_again(self) -> None:
        """Called in the midst of somebody's commit: the reading comes after it. A change during a reading is read by the next one."""
        previous = self._reading
        self._reading = asyncio.get_running_loop().create_task(self._read_after(previous))

    async def _read_after(self, previous: asyncio.Task[None] | None) -> None:
        if previous is not None and not previous.done():
            await asyncio.wait([previous])
        try:
            await self.read()
        except (UnsupportedFeatures, CorruptZNode, TreeError) as error:
            _log.error("Feature levels stay at %s (epoch %d): %s", dict(self.finalized), self.epoch, error)
