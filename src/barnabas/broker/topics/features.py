"""Feature levels: the features that this broker supports, and the finalized level of each feature in the cluster.

ApiVersions returns both, and clients choose their protocols by them. /barnabas/features holds the finalized levels; its znode version is
the epoch that clients compare. Level 0 is a feature that is turned off. SUPPORTED lists only features that work completely. A broker does
not start if it does not support a finalized level.
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
    """The lowest and the highest supported level of a feature."""

    lowest: int
    highest: int


GROUP_VERSION: Final = "group.version"  # 1: the consumer protocol
TRANSACTION_VERSION: Final = "transaction.version"  # 1: flexible records in the coordinator's log; 2: a new epoch for each transaction
SUPPORTED: Final[Mapping[str, Levels]] = {GROUP_VERSION: Levels(0, 1), TRANSACTION_VERSION: Levels(0, 2)}


class UnsupportedFeatures(Exception):
    """This broker does not support the finalized levels of the cluster. The message names them and the fix."""


class FeatureLevels:
    """Also the handler for changes of the znode (`ZNodeChangeHandler`) and of the session (`StateChangeHandler`)."""

    def __init__(self, tree: TreeClient, supported: Mapping[str, Levels] = SUPPORTED) -> None:
        self.supported = supported
        self.finalized: Mapping[str, int] = {}
        self.epoch = UNKNOWN_EPOCH
        self._tree = tree
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Reads the levels and watches them. The first broker of a new cluster sets them to the highest levels.

        After an upgrade a feature may have no finalized level. The first broker that finds it supported by all registered brokers sets it
        to the highest level.
        """
        self._tree.register_change_handler(self)
        self._tree.register_state_change_handler(self)
        await self.read()
        if self.epoch == UNKNOWN_EPOCH and self.supported:
            await self._set_first_levels()
            await self.read()
        elif new := {name: levels.highest for name, levels in self.supported.items() if name not in self.finalized}:
            await self._finalize_new(new)

    async def close(self) -> None:
        self._tree.unregister_change_handler(self.path)
        self._tree.unregister_state_change_handler(self.name)
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def read(self) -> None:
        """Reads the finalized levels. Raises UnsupportedFeatures or CorruptZNode, and then keeps the previous ones."""
        await self._tree.exists(self.path)  # only `exists` sets a watch on a znode that does not exist yet
        node = await self._tree.get(self.path)
        if node is None:
            self.finalized, self.epoch = {}, UNKNOWN_EPOCH
            return
        levels = decode_features(node.data, self.path).levels
        self._check(levels)
        self.finalized, self.epoch = levels, node.stat.version

    async def registered(self) -> dict[int, dict[str, Levels]]:
        """The registered brokers, with the levels that each supports."""
        children = await self._tree.children(paths.BROKER_IDS)
        brokers = {}
        for broker_id in map(int, children.names if children is not None else ()):
            node = await self._tree.get(paths.broker_id(broker_id))
            if node is not None:  # else the broker has just stopped
                features = decode_broker(broker_id, node.data).features
                brokers[broker_id] = {
                    name: Levels(versions.get("min_version", 0), versions.get("max_version", 0)) for name, versions in features.items()
                }
        return brokers

    async def finalize(self, levels: Mapping[str, int]) -> None:
        """Writes the levels of the cluster. Raises BadVersion or NodeExists if they were changed or created since they were read."""
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
        """Nothing to do: the features are not ephemeral."""

    async def after_initializing_session(self) -> None:
        """Reads again: the watch ended with the old session, and the levels may have changed since."""
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
            pass  # another broker of the new cluster created it first

    async def _finalize_new(self, new: Mapping[str, int]) -> None:
        supported_by_all = {name: level for name, level in new.items() if await self._is_supported_by_all(name, level)}
        if not supported_by_all:
            return
        try:
            await self.finalize({**self.finalized, **supported_by_all})
            _log.info("Feature levels of the cluster are now %s", dict(self.finalized))
        except BadVersion:
            await self.read()  # another broker wrote first

    async def _is_supported_by_all(self, name: str, level: int) -> bool:
        unsupported = Levels(0, 0)
        ranges = [levels.get(name, unsupported) for levels in (await self.registered()).values()]
        return all(lowest <= level <= highest for lowest, highest in ranges)

    def _read_again(self) -> None:
        """Called inside a commit of the metadata store, so the read is scheduled. A change during a read causes another read."""
        previous = self._reading
        self._reading = asyncio.get_running_loop().create_task(self._read_after(previous))

    async def _read_after(self, previous: asyncio.Task[None] | None) -> None:
        if previous is not None and not previous.done():
            await asyncio.wait([previous])
        try:
            await self.read()
        except (UnsupportedFeatures, CorruptZNode, TreeError) as error:
            _log.error("Feature levels stay at %s (epoch %d): %s", dict(self.finalized), self.epoch, error)
