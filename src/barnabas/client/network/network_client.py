"""The network of a client: a connection to each broker that is talked to, opened when it is first needed, and kept.

Producer, consumer and admin send requests to nodes by their ids; here they get a connection (with back-off, security and ApiVersions), the
version that both sides know, and an answer or an error. It also keeps `Metadata` fresh, by a task of its own. Everything runs on one
event loop; nothing here is safe to call from another thread.
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
from barnabas.client.network.connections import Connections, Link
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.metadata_updater import MetadataUpdater
from barnabas.client.network.network_metrics import NetworkMetrics
from barnabas.client.network.node_states import State
from barnabas.protocol import api_keys
from barnabas.protocol.message import Message
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from barnabas.protocol.registry import BY_NAME, Api

IN_FLIGHT_MAX: Final = 100  # of clients without the setting max.in.flight.requests.per.connection
GROUP_COORDINATOR: Final = 0
TRANSACTION_COORDINATOR: Final = 1
_BATCHED_COORDINATORS_VERSION: Final = 4


class Features:
    """The features a broker told of: what it could do, and what is finalized in the cluster, by name."""

    def __init__(self, versions: BrokerVersions) -> None:
        self.supported = versions.supported_features
        self.finalized = versions.finalized_features
        self.finalized_epoch = versions.finalized_features_epoch


class NetworkClient:
    """`metric_group` is what the names of its metrics' groups begin with: producer, consumer, admin-client."""

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
        self._coordinators: dict[int, Node] = {}  # those that have a connection of their own, or are not in the metadata yet
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
        self.on_disconnect = self._connections.on_disconnect  # called with a node's id and an error: it was lost, or an attempt failed
        self._updater = MetadataUpdater(self, metadata)
        self.on_disconnect.append(self._updater.disconnected)

    async def start(self) -> None:
        """Begins to learn about the cluster. Raises InvalidConfig where no name of bootstrap.servers has an address."""
        self.metadata.set_bootstrap(await resolve_bootstrap(self.metadata.bootstrap_addresses, self.config["client.dns.lookup"]))
        self._updater.start()

    async def close(self, timeout_s: float = 0) -> None:
        """Ends all connections; whoever waits for an answer gets Disconnected. Waits for answers under way first, for so long at most."""
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
        """Sends a request to a node and gives its answer. Connects first if need be, after the back-off of earlier failures.

        The version is the highest that both know and that is not above `max_version`, unless it is given. Raises Disconnected (also where
        the node is not known), Timeout (no answer, or no connection, within `timeout_ms`: request.timeout.ms if not given),
        UnsupportedVersion, AuthenticationError.
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
        """Writes a request at once and calls `done(answer, error)` later; False if the node is not ready, and then nothing was sent.

        Where it is not connected it has begun to connect, unless it must wait: `on_ready` tells when to try again, and `delay_ms` when at
        the latest. A Produce with acks=0 has no answer: `done(None, None)`. A version that the broker lacks is told through `done`.
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
        """Sends to the node that has least to do, and to bootstrap.servers while nothing is known. Raises as `send` does.

        Nodes that cannot be connected to are passed over, for as long as the time lasts.
        """
        limit_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = self.clock.monotonic_ms() + limit_ms
        node_id = await self.any_ready(deadline_ms)
        left_ms = max(deadline_ms - self.clock.monotonic_ms(), 1)
        return await self.send(node_id, request, timeout_ms=left_ms, version=version, max_version=max_version)

    async def find_coordinator(
        self, key: str, key_type: int = GROUP_COORDINATOR, *, timeout_ms: int | None = None, own_connection: bool = False
    ) -> Node:
        """Asks which broker coordinates a group (key_type 0), a transactional id (1) or a share group (2); the node may be sent to at once.

        With `own_connection` the node's id is 2147483647 minus the broker's, and has a connection of its own: so a consumer's heartbeats
        need not wait behind its fetches. Raises the broker's error (CoordinatorNotAvailable…): it does not try again.
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
        found = response if version < _BATCHED_COORDINATORS_VERSION else response.coordinators[0]
        if found.error_code != 0:
            raise error_for(found.error_code, found.error_message)
        node = Node(COORDINATOR_IDS - found.node_id if own_connection else found.node_id, found.host, found.port)
        self._coordinators[node.id] = node
        return node

    # Asking

    def is_ready(self, node_id: int) -> bool:
        """Whether a request could be written now: connected, not throttled, and fewer in flight than allowed."""
        return self._connections.can_send(node_id)

    def ready(self, node_id: int) -> bool:
        """As is_ready; where it is not connected, it begins to connect if the back-off allows it."""
        if node_id not in self._links:
            self._connections.begin(node_id)
            return False
        return self.is_ready(node_id)

    def delay_ms(self, node_id: int) -> int:
        """How long to wait before trying this node again: of the reconnect back-off, or of a quota. 0 while it is being connected to."""
        return self._states.delay_ms(node_id, self.clock.monotonic_ms())

    def in_flight_count(self, node_id: int | None = None) -> int:
        """Requests of a node, or of all, that wait for an answer."""
        if node_id is None:
            return sum(link.connection.in_flight_count for link in self._links.values())
        link = self._links.get(node_id)
        return 0 if link is None else link.connection.in_flight_count

    def connection_failed(self, node_id: int) -> bool:
        """Whether the last attempt failed, or the connection was lost, and no new attempt has begun."""
        state = self._states.of(node_id)
        return state.state in (State.DISCONNECTED, State.AUTHENTICATION_FAILED) and state.error is not None

    def authentication_error(self, node_id: int) -> AuthenticationError | None:
        error = self._states.of(node_id).error
        return error if isinstance(error, AuthenticationError) else None

    def version_of(self, node_id: int, api_key: int) -> int | None:
        """The highest version of an API that both know; None where the node is not connected, or does not have the API."""
        link = self._links.get(node_id)
        return None if link is None else link.versions.latest(api_key)

    def features(self, node_id: int) -> Features | None:
        """What the node told of its features when it was connected to; None where it is not."""
        link = self._links.get(node_id)
        return None if link is None else Features(link.versions)

    def newest_features(self) -> Features | None:
        """The finalized features as the connected node with the newest epoch of them knows them."""
        known = [Features(link.versions) for link in self._links.values()]
        return max(known, key=lambda features: features.finalized_epoch, default=None)

    def versions(self, node_id: int) -> BrokerVersions | None:
        link = self._links.get(node_id)
        return None if link is None else link.versions

    def least_loaded_node(self) -> int | None:
        """The node to ask what any node knows: a ready one with nothing in flight, else with little; else one that is being connected to;
        else the one whose last attempt is longest ago. None where all must wait."""
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
        return next((found for found in (best, connecting, connectable) if found is not None), None)

    async def any_ready(self, deadline_ms: int) -> int:
        """A node that can be sent to, connecting to one after the other if need be. Raises Timeout, or AuthenticationError."""
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
        """Waits until any connection gets ready, fails, or has room again; no longer than that."""
        await self._connections.wait_for_change(timeout_ms)

    def forget_nodes(self) -> None:
        """Forgets the failures of nodes that the cluster does not have any more."""
        nodes = self.metadata.cluster.nodes
        self._states.keep_only([node.id for node in nodes] + list(self._coordinators))
        self.metadata.failures.keep_only({node.address for node in (*nodes, *self._coordinators.values())})

    def disconnect(self, node_id: int, error: KafkaError | None = None) -> None:
        """Gives up the connection to a node; who waits for an answer gets the error."""
        self._connections.disconnect(node_id, error or ClosedHere(f"The client disconnected from node {node_id}"))

    def disconnect_all(self, error: KafkaError) -> None:
        self._connections.disconnect_all(error)

    async def _ready_link(self, node_id: int, deadline_ms: int) -> Link:
        if self._node(node_id) is None:
            self.metadata.request_update(False)
        return await self._connections.ready(node_id, deadline_ms)

    def _node(self, node_id: int) -> Node | None:
        return self.metadata.cluster.node_by_id(node_id) or self._coordinators.get(node_id)

    def _failure(self, since_ms: int) -> KafkaError | None:
        """A failure among the nodes that may be asked which is not older, or still keeps us from trying again; of authentication first."""
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
