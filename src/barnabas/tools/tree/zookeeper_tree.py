"""`--zookeeper` of Kafka's older tools: they read and write the znodes of a ZooKeeper ensemble, without a broker.

The znodes are those of Kafka 2.8, the last version with this option; controller and brokers notice changes through their watches. The
chroot is never created here, so that a mistyped one does not become a second, empty cluster.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from random import SystemRandom
from typing import TYPE_CHECKING, Final

from barnabas.tools.command_line.failures import AdminOperation, BadArgument, ToolError
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.text import Waiting

if TYPE_CHECKING:
    from barnabas.metadata.admin_tree import AdminTree
    from barnabas.metadata.client import TreeClient
    from barnabas.metadata.replica_assignment import BrokerMetadata
    from barnabas.metadata.tree import NodeData, Watcher
    from barnabas.metadata.znodes.cluster import BrokerRegistration
    from barnabas.metadata.znodes.topics import TopicAssignment
    from barnabas.metadata.zookeeper.session import ZooKeeperOptions, ZooKeeperSession
    from barnabas.topic_partition import TopicPartition

ZOOKEEPER: Final = Option(
    "zookeeper",
    "DEPRECATED: the ZooKeeper of a cluster that has one, as host:port,host:port/path, to write to it without asking a broker.",
    "required",
    described_as="urls",
)
TIMEOUT_MS: Final = 30_000
_SMALL_SET: Final = 4  # Scala prints Set(…) up to this size, and HashSet(…) for more


class NotConnected(ToolError):
    java_name = "kafka.zookeeper.ZooKeeperClientTimeoutException"


class NoSuchPath(NotConnected):
    """The chroot does not exist; most likely it is mistyped."""


class ZooKeeperCluster:
    """A cluster as its tree shows it."""

    def __init__(self, tree: TreeClient, admin: AdminTree) -> None:
        self.tree = tree
        self.admin = admin

    async def topics(self) -> list[str]:
        return sorted(await self.admin.all_topics())

    async def brokers(self) -> dict[int, BrokerRegistration]:
        """The live brokers by id."""
        from barnabas.metadata import paths
        from barnabas.metadata.znodes.cluster import decode_broker

        children = await self.tree.children(paths.BROKER_IDS)
        brokers = {}
        for broker in sorted(map(int, children.names)) if children is not None else ():
            node = await self.tree.get(paths.broker_id(broker))
            if node is not None:
                brokers[broker] = decode_broker(broker, node.data)
        return brokers

    async def places(self, *, rack_aware: bool, among: Container[int] | None = None) -> list[BrokerMetadata]:
        """The live brokers for an assignment, with their racks if the assignment is rack-aware."""
        from barnabas.metadata.replica_assignment import BrokerMetadata

        brokers = {id_: broker for id_, broker in (await self.brokers()).items() if among is None or id_ in among}
        racks = [broker.rack for broker in brokers.values()]
        if rack_aware and None in racks and any(rack is not None for rack in racks):
            raise AdminOperation(
                "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment "
                "without rack information."
            )
        return [BrokerMetadata(id_, broker.rack if rack_aware else None) for id_, broker in brokers.items()]

    async def nodes(self) -> list[tuple[str, NodeData]]:
        """All nodes of the tree, level by level; nodes deleted in the meantime are left out."""
        from barnabas.metadata.tree import GetChildren, GetData

        nodes: list[tuple[str, NodeData]] = []
        level = ["/"]
        while level:
            data = await self.tree.handle([GetData(path) for path in level])
            nodes += [(path, answer.value) for path, answer in zip(level, data, strict=True) if answer.error is None]
            children = await self.tree.handle([GetChildren(path) for path in level])
            below = [(path, answer.value.names) for path, answer in zip(level, children, strict=True) if answer.error is None]
            level = [f"{path.rstrip('/')}/{name}" for path, names in below for name in names]
        return nodes

    async def replicas(self, topics: Iterable[str]) -> dict[TopicPartition, list[int]]:
        """The replicas of the partitions of those topics that exist."""
        from barnabas.topic_partition import TopicPartition

        assignments: Mapping[str, TopicAssignment] = await self.admin.topic_assignments(sorted(set(topics)))
        return {
            TopicPartition(name, number): list(topic.partitions[number].replicas)
            for name, topic in assignments.items()
            for number in sorted(topic.partitions)
        }


class _Ensemble:
    """Opens ZooKeeper sessions for a client of the tree."""

    def __init__(self, options: ZooKeeperOptions) -> None:
        self._options = options

    async def open_session(self, watcher: Watcher) -> ZooKeeperSession:
        from barnabas.metadata.zookeeper.session import ZooKeeperSession

        session = ZooKeeperSession(self._options, watcher)
        await session.open()
        return session

    async def close(self) -> None:
        """Does nothing: the caller that opened a session closes it."""


def on_cluster(
    address: str, work: Callable[[ZooKeeperCluster], Awaitable[None]], *, timeout_ms: int = TIMEOUT_MS, make_chroot: bool = False
) -> None:
    """Runs `work` in a session of its own. Only a restored tree makes its chroot."""
    asyncio.run(_on_cluster(address, work, timeout_ms, make_chroot))


async def _on_cluster(address: str, work: Callable[[ZooKeeperCluster], Awaitable[None]], timeout_ms: int, make_chroot: bool) -> None:
    from barnabas.metadata.admin_tree import AdminTree
    from barnabas.metadata.client import TreeClient
    from barnabas.metadata.errors import StoreUnusable
    from barnabas.metadata.zookeeper.tree import ZooKeeperTree

    options = _session_options(address, timeout_ms)
    tree = TreeClient(ZooKeeperTree(options) if make_chroot else _Ensemble(options), lambda: None)
    try:
        with Waiting(f"ZooKeeper at {address}"):
            await tree.connect()
    except StoreUnusable as error:
        reason = str(error).replace("zookeeper.connect", "--zookeeper")
        raise NotConnected(f"Timed out waiting for connection while in state: CONNECTING\n{reason}") from None
    try:
        if await tree.exists("/") is None:
            raise NoSuchPath(f"{address}: ZooKeeper has no such path; correct it, or start a broker with it as its zookeeper.connect first")
        await work(ZooKeeperCluster(tree, AdminTree(tree, SystemRandom())))
    finally:
        await tree.close()


def _session_options(address: str, timeout_ms: int) -> ZooKeeperOptions:
    """With a user and password for ZooKeeper, new znodes can be changed only by that user, as those of brokers with the same settings."""
    from barnabas.broker.server.zookeeper_store import CREDENTIALS_VARIABLE, sasl_user_of_environment
    from barnabas.config_def import InvalidConfig
    from barnabas.metadata.errors import StoreUnusable
    from barnabas.metadata.zookeeper.access import of_creator, open_to_all
    from barnabas.metadata.zookeeper.address import parse
    from barnabas.metadata.zookeeper.session import ZooKeeperOptions

    try:
        ensemble = parse(address)
    except StoreUnusable as error:
        raise BadArgument(str(error).replace("zookeeper.connect=", "--zookeeper ")) from None
    try:
        sasl = sasl_user_of_environment()
    except InvalidConfig as error:
        raise BadArgument(str(error)) from None
    digest = os.environ.get(CREDENTIALS_VARIABLE)
    return ZooKeeperOptions(
        ensemble,
        session_timeout_ms=timeout_ms,
        connection_timeout_ms=timeout_ms,
        access_of=of_creator if digest or sasl else open_to_all,
        credentials=[("digest", digest.encode())] if digest else (),
        sasl=sasl,
    )


def refuse_both(options: Options) -> None:
    if options.has("bootstrap-server"):
        raise BadArgument("Only one of --bootstrap-server or --zookeeper must be specified")


def warn_deprecated() -> None:
    print("Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.")
    print("Use --bootstrap-server instead to specify a broker to connect to.")


def scala_set(values: Iterable[object]) -> str:
    """A set as Kafka's older tools print it."""
    texts = [str(value) for value in values]
    return f"{'Set' if len(texts) <= _SMALL_SET else 'HashSet'}({', '.join(texts)})"
