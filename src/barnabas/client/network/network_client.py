"""The network client: a connection to each broker in use, opened at the first request and kept.

Producer, consumer and admin send requests to nodes by id. The network client provides the connection (with back-off, security and
ApiVersions), the highest common version, and returns a response or an error. A task of its own keeps `Metadata` up to date. Everything runs
on one event loop; no method may be called from another thread.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

from barnabas.client.clock import Clock
from barnabas.client.cluster import COORDINATOR_IDS, Node
from barnabas.client.config.config import ClientConfig
from barnabas.client.errors import AuthenticationError, IllegalState, KafkaError, Timeout, error_for
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.bootstrap import resolve_bootstrap
from barnabas.client.network.broker_versions import BrokerVersions
from barnabas.client.network.connection import ClosedHere, Done, completing
from barnabas.client.network.connections import BrokerLink, Connections
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.metadata_updater import MetadataUpdater
from barnabas.client.network.network_metrics import NetworkMetrics
from barnabas.client.network.node_states import ConnectionState
from barnabas.protocol import api_keys
from barnabas.protocol.message import Message
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from barnabas.protocol.registry import BY_NAME, Api

IN_FLIGHT_MAX: Final = 100  # for clients without the setting max.in.flight.requests.per.connection
GROUP_COORDINATOR: Final = 0
TRANSACTION_COORDINATOR: Final = 1
_BATCHED_COORDINATORS_VERSION: Final = 4


class NodeFeatures:
    """The features that a broker reported: its supported features, and the finalized features of the cluster, by name."""

    def __init__(self, versions: BrokerVersions) -> None:
        self.supported = versions.supported_features
        self.finalized = versions.finalized_features
        self.finalized_epoch = versions.finalized_features_epoch


class NetworkClient:
    """`metric_group` is the prefix of its metric groups: producer, consumer, admin-client."""

    def __init__(
        self,
        config: ClientConfig,
        metadata: Metadata,
        *,
        clock: Clock,
        metrics: Metrics,
        random: Random | None = None,
        metric_group: str = "client",
    ) -> None:
        self.config = config
        self.metadata = metadata
        self.clock = clock
        self.metrics = metrics
        self.request_timeout_ms: int = config["request.timeout.ms"]
        self._random = random or Random()
        self._coordinators: dict[int, Node] = {}  # coordinators with a connection of their own, or not yet in the metadata
        self._connections = Connections(
            config,
            find=self._node,
            clock=clock,
            metrics=NetworkMetrics(metrics, metric_group, lambda: len(self._connections.links)),
            random=self._random,
            in_flight_max=config.get("max.in.flight.requests.per.connection", IN_FLIGHT_MAX),
            failures=metadata.failures,
        )
        self._links = self._connections.links
        self._states = self._connections.states
        self.on_ready = self._connections.on_ready  # called with the id of a node that is ready for requests
        self.on_disconnect = self._connections.on_disconnect  # called with a node's id and the error of a connection or an attempt
        self._updater = MetadataUpdater(self, metadata)
        self.on_disconnect.append(self._updater.disconnected)

    async def start(self) -> None:
        """Starts to fetch metadata. Raises InvalidConfig if no name of bootstrap.servers has an address."""
        self.metadata.set_bootstrap(await resolve_bootstrap(self.metadata.bootstrap_addresses, self.config["client.dns.lookup"]))
        self._updater.start()

    async def close(self, timeout_s: float = 0) -> None:
        """Closes all connections; pending requests receive Disconnected. First waits for pending responses, at most `timeout_s`."""
        if self._connections.is_closed:
            return
        deadline_ms = self.clock.monotonic_ms() + int(timeout_s * 1000)
        while self.in_flight_count() and (left_ms := deadline_ms - self.clock.monotonic_ms()) > 0:
            await self.wait_for_change(left_ms)
        await self._updater.stop()
        await self._connections.close()
        self.metadata.close()

    # Sending

    async def send(
        self,
        node_id: int,
        request: Message,
        *,
        timeout_ms: int | None = None,
        version: int | None = None,
        max_version: int | None = None,
    ) -> Message:
        """Sends a request to a node and returns its response. Connects first if necessary, after the back-off of earlier failures.

        The version is the highest common one that is not above `max_version`, unless `version` is given. Raises Disconnected (also if the
        node is unknown), Timeout (no response or no connection within `timeout_ms`, by default request.timeout.ms), UnsupportedVersion,
        AuthenticationError.
        """
        limit_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = self.clock.monotonic_ms() + limit_ms
        link = await self._ready_link(node_id, deadline_ms)
        api = api_of(request)
        chosen = link.versions.choose(api.key, highest=max_version) if version is None else version
        future: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        link.connection.send(api, chosen, request, completing(future), max(deadline_ms - self.clock.monotonic_ms(), 1))
        answer = await future
        return answer  # type: ignore[return-value]  # None only for a Produce with acks=0, whose sender does not look

    def send_nowait(
        self,
        node_id: int,
        request: Message,
        done: Done,
        *,
        timeout_ms: int | None = None,
        version: int | None = None,
        max_version: int | None = None,
    ) -> bool:
        """Writes a request at once and calls `done(response, error)` later; False if the node is not ready, and then nothing was sent.

        If the node is not connected, a connection attempt starts, unless it must wait: `on_ready` is called when to try again, and
        `delay_ms` is the longest wait. A Produce with acks=0 has no response: `done(None, None)`. A version that the broker does not
        support is reported to `done`.
        """
        link = self._links.get(node_id)
        if link is None:
            self._connections.begin(node_id)
            return False
        if not self._connections.can_send(node_id):
            return False
        api = api_of(request)
        try:
            chosen = link.versions.choose(api.key, highest=max_version) if version is None else version
            link.connection.send(api, chosen, request, done, self.request_timeout_ms if timeout_ms is None else timeout_ms)
        except KafkaError as error:
            asyncio.get_running_loop().call_soon(done, None, error)
        return True

    async def send_to_any(
        self,
        request: Message,
        *,
        timeout_ms: int | None = None,
        version: int | None = None,
        max_version: int | None = None,
    ) -> Message:
        """Sends to the least loaded node, or to bootstrap.servers before the first Metadata response. Raises like `send`.

        Nodes that cannot be connected to are skipped until the timeout.
        """
        limit_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = self.clock.monotonic_ms() + limit_ms
        node_id = await self.any_ready(deadline_ms)
        left_ms = max(deadline_ms - self.clock.monotonic_ms(), 1)
        return await self.send(node_id, request, timeout_ms=left_ms, version=version, max_version=max_version)

    async def find_coordinator(
        self, key: str, key_type: int = GROUP_COORDINATOR, *, timeout_ms: int | None = None, own_connection: bool = False
    ) -> Node:
        """Finds the coordinator of a group (key_type 0), a transactional id (1) or a share group (2); requests may be sent to the node at
        once.

        With `own_connection`, the node id is 2147483647 minus the broker id, and the node has a connection of its own, so that a consumer's
        heartbeats do not wait behind its fetches. Raises the broker's error (CoordinatorNotAvailable…) and does not retry.
        """
        node_id = await self.any_ready(self.clock.monotonic_ms() + (self.request_timeout_ms if timeout_ms is None else timeout_ms))
        link = await self._ready_link(node_id, self.clock.monotonic_ms() + self.request_timeout_ms)
        version = link.versions.choose(api_keys.FIND_COORDINATOR)
        request = (
            FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            if version >= _BATCHED_COORDINATORS_VERSION
            else FindCoordinatorRequest(key=key, key_type=key_type)
        )
        response = await self.send(node_id, request, timeout_ms=timeout_ms, version=version)
        assert isinstance(response, FindCoordinatorResponse)
        coordinator = response if version < _BATCHED_COORDINATORS_VERSION else response.coordinators[0]
        if coordinator.error_code != 0:
            raise error_for(coordinator.error_code, coordinator.error_message)
        node = Node(COORDINATOR_IDS - coordinator.node_id if own_connection else coordinator.node_id, coordinator.host, coordinator.port)
        self._coordinators[node.id] = node
        return node

    # Queries

    def is_ready(self, node_id: int) -> bool:
        """Whether a request could be written now: connected, not throttled, and fewer requests in flight than the limit."""
        return self._connections.can_send(node_id)

    def ready(self, node_id: int) -> bool:
        """Like is_ready, but starts to connect if the node is not connected and the back-off allows it."""
        if node_id not in self._links:
            self._connections.begin(node_id)
            return False
        return self.is_ready(node_id)

    def delay_ms(self, node_id: int) -> int:
        """The wait before this node can be tried again: the reconnect back-off or a quota's throttle time. 0 while it is connecting."""
        return self._states.delay_ms(node_id, self.clock.monotonic_ms())

    def in_flight_count(self, node_id: int | None = None) -> int:
        """The number of pending requests of a node, or of all nodes."""
        if node_id is None:
            return sum(link.connection.in_flight_count for link in self._links.values())
        link = self._links.get(node_id)
        return 0 if link is None else link.connection.in_flight_count

    def connection_failed(self, node_id: int) -> bool:
        """Whether the last attempt failed or the connection was lost, and no new attempt has started."""
        state = self._states.of(node_id)
        return state.state in (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED) and state.error is not None

    def authentication_error(self, node_id: int) -> AuthenticationError | None:
        error = self._states.of(node_id).error
        return error if isinstance(error, AuthenticationError) else None

    def version_of(self, node_id: int, api_key: int) -> int | None:
        """The highest common version of an API; None if the node is not connected, or does not support the API."""
        link = self._links.get(node_id)
        return None if link is None else link.versions.latest(api_key)

    def features(self, node_id: int) -> NodeFeatures | None:
        """The features that the node reported when it was connected; None if it is not connected."""
        link = self._links.get(node_id)
        return None if link is None else NodeFeatures(link.versions)

    def newest_features(self) -> NodeFeatures | None:
        """The features of the connected node with the newest epoch of finalized features."""
        reported = [NodeFeatures(link.versions) for link in self._links.values()]
        return max(reported, key=lambda features: features.finalized_epoch, default=None)

    def versions(self, node_id: int) -> BrokerVersions | None:
        link = self._links.get(node_id)
        return None if link is None else link.versions

    def least_loaded_node(self) -> int | None:
        """The node for a request that any node can serve: a ready node with nothing or little in flight; otherwise a connecting node;
        otherwise the node whose last attempt is the oldest. None if all must wait."""
        now_ms = self.clock.monotonic_ms()
        nodes = self.metadata.cluster.nodes
        if not nodes:
            return None
        best: int | None = None
        connecting: int | None = None
        connectable: int | None = None
        first = self._random.randrange(len(nodes))
        for node in (*nodes[first:], *nodes[:first]):
            link = self._links.get(node.id)
            if link is not None and self._connections.can_send(node.id):
                if link.connection.in_flight_count == 0:
                    return node.id
                if best is None or link.connection.in_flight_count < self.in_flight_count(best):
                    best = node.id
            elif self._states.is_connecting(node.id):
                connecting = node.id
            elif self._states.can_connect(node.id, now_ms) and (
                connectable is None or self._states.last_attempt_ms(node.id) < self._states.last_attempt_ms(connectable)
            ):
                connectable = node.id
        return next((candidate for candidate in (best, connecting, connectable) if candidate is not None), None)

    async def any_ready(self, deadline_ms: int) -> int:
        """A node to which a request can be sent; connects to one node after the other if necessary. Raises Timeout, or
        AuthenticationError."""
        failure: KafkaError | None = None
        began_ms = self.clock.monotonic_ms()
        while True:
            if self._connections.is_closed:
                raise IllegalState("The client has already been closed")
            node_id = self.least_loaded_node()
            if node_id is not None and self.is_ready(node_id):
                return node_id
            if node_id is not None and not self._states.any_connecting():
                self._connections.begin(node_id)
            now_ms = self.clock.monotonic_ms()
            failure = self._failure(began_ms) or failure
            if isinstance(failure, AuthenticationError):
                raise failure
            if now_ms >= deadline_ms:
                raise self.timeout("Timed out waiting for a node: no broker could be reached in time")
            delays = [self._states.delay_ms(node.id, now_ms) for node in self.metadata.cluster.nodes]
            wait_ms = deadline_ms - now_ms
            if node_id is None and delays:
                wait_ms = min(wait_ms, max(min(delays), 1))
            await self.wait_for_change(wait_ms)

    def timeout(self, message: str, cause: BaseException | None = None) -> Timeout:
        """A Timeout with the last connection error in its text and as its cause: see `ConnectionFailures.timeout`."""
        return self.metadata.failures.timeout(message, cause=cause)

    def any_connecting(self) -> bool:
        return self._states.any_connecting()

    def any_connected(self) -> bool:
        return bool(self._links)

    async def wait_for_change(self, timeout_ms: int) -> None:
        """Waits until any connection becomes ready, fails, or accepts requests again; at most `timeout_ms`."""
        await self._connections.wait_for_change(timeout_ms)

    def forget_nodes(self) -> None:
        """Drops the failures of nodes that are no longer in the cluster."""
        nodes = self.metadata.cluster.nodes
        self._states.keep_only([node.id for node in nodes] + list(self._coordinators))
        self.metadata.failures.keep_only({node.address for node in (*nodes, *self._coordinators.values())})

    def disconnect(self, node_id: int, error: KafkaError | None = None) -> None:
        """Closes the connection to a node; pending requests receive the error."""
        self._connections.disconnect(node_id, error or ClosedHere(f"The client disconnected from node {node_id}"))

    def disconnect_all(self, error: KafkaError) -> None:
        self._connections.disconnect_all(error)

    async def _ready_link(self, node_id: int, deadline_ms: int) -> BrokerLink:
        if self._node(node_id) is None:
            self.metadata.request_update(False)
        return await self._connections.ready(node_id, deadline_ms)

    def _node(self, node_id: int) -> Node | None:
        return self.metadata.cluster.node_by_id(node_id) or self._coordinators.get(node_id)

    def _failure(self, since_ms: int) -> KafkaError | None:
        """A failure of a known node that is not older than `since_ms`, or whose back-off is not over; authentication errors first."""
        states = [self._states.of(node.id) for node in self.metadata.cluster.nodes]
        errors = [state.error for state in states if state.error is not None and state.retry_at_ms >= since_ms]
        return next((error for error in errors if isinstance(error, AuthenticationError)), errors[0] if errors else None)


_APIS: Final[dict[type[Message], Api]] = {}


def api_of(request: Message) -> Api:
    """The API that a request belongs to."""
    kind = type(request)
    api = _APIS.get(kind)
    if api is None:
        api = _APIS[kind] = BY_NAME[kind.__name__.removesuffix("Request")]
    return api
