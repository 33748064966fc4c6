"""This broker as a member of a cluster: its broker epoch, its links to the other brokers, and the work that goes over those links.

That work is the controller's channel, the replica fetchers, the ISR proposals of leaders, and the periodic ISR shrink. The server makes a
ClusterMember where the metadata store is shared with other brokers. A broker without a cluster has none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from random import Random
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from barnabas.broker.clock import Clock
from barnabas.broker.cluster.controller_requests import ControlRequests
from barnabas.broker.cluster.local_channel import LocalChannel
from barnabas.broker.cluster.remote_channel import RemoteChannel
from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.config.protocol_version import InterBrokerVersions
from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.broker.links.controller_link import ControllerLink
from barnabas.broker.links.link_config import link_config, setup_timeouts
from barnabas.broker.partitions.isr_proposals import IsrProposals
from barnabas.broker.replication.replica_fetchers import ReplicaFetchers
from barnabas.broker.topics.forwarded_topic_creation import ForwardedTopicCreation
from barnabas.broker.topics.initial_metadata import InitialMetadata
from barnabas.controller.channel import ControlRequest
from barnabas.endpoint import EndPoint
from barnabas.metadata.client import TreeClient
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.message import Message
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest
from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.admin_manager import AdminManager
    from barnabas.controller.controller import Controller

UNKNOWN_EPOCH: Final = -1

M = TypeVar("M", bound=Message)

_log = logging.getLogger(__name__)


class ClusterMember:
    """Must be made on the event loop that it runs on, as a part of its replica manager: `isr_proposals` and `fetchers` are for that.
    `broker_epoch` is set whenever this broker has registered."""

    def __init__(
        self,
        config: DynamicBrokerConfig,
        replicas: ReplicaManager,
        controller_requests: ControlRequests,
        tree: TreeClient,
        clock: Clock,
        random: Random,
    ) -> None:
        self.controller_requests = controller_requests
        self.broker_epoch = UNKNOWN_EPOCH
        self.initial_metadata = InitialMetadata(replicas.broker_id, replicas.metadata_cache, tree)
        self._config = config
        self._replicas = replicas
        self._cache = replicas.metadata_cache
        self._clock = clock
        self._random = random
        self._links: WeakKeyDictionary[BrokerLinks, str] = WeakKeyDictionary()  # with the listener that they connect to
        current = config.current
        self._listener_name = current.inter_broker_listener_name
        control_listener_name = current.control_plane_listener_name or self._listener_name
        self._listener_names = {self._listener_name, control_listener_name}
        self._broker_id = broker_id = replicas.broker_id
        to_controller_ms = current.number("controller.socket.timeout.ms")
        self._channel_links = self.new_links(
            f"broker-{broker_id}-controller", listener_name=control_listener_name, timeout_ms=to_controller_ms
        )
        local_channel = LocalChannel({broker_id: controller_requests.handle})
        self.channel = RemoteChannel(broker_id, local_channel, self._channel_links, control_listener_name, _control_versions(current))
        to_controller = self.new_links(f"broker-{broker_id}-to-controller", timeout_ms=to_controller_ms)
        self.to_controller = ControllerLink(to_controller, lambda: self._cache.controller_id, self.endpoint_of)
        self._cache.on_update.append(self.to_controller.controller_may_have_changed)
        self.isr_proposals = IsrProposals(broker_id, self.to_controller, self._own_epoch, self._topic_id_of, self._replica_epochs_of)
        self.fetchers = ReplicaFetchers(
            replicas, lambda number: self._fetcher_links(f"broker-{broker_id}-fetcher-{number}"), self.endpoint_of, self._own_epoch
        )
        self._shrinking: asyncio.TimerHandle | None = None

    def new_links(
        self,
        client_id: str,
        in_flight_max: int = 1,
        listener_name: str | None = None,
        timeout_ms: int | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> BrokerLinks:
        """Links to the inter-broker listener of the other brokers, or to another listener of theirs. The timeout of requests is
        request.timeout.ms unless `timeout_ms` is given. `settings` are added to those of `link_config`."""
        current = self._config.current
        limit_ms = current.number("request.timeout.ms") if timeout_ms is None else timeout_ms
        idle_ms = current.number("connections.max.idle.ms")
        config = {"connections.max.idle.ms": idle_ms} | setup_timeouts(current) | link_config(current, listener_name) | dict(settings or {})
        links = BrokerLinks(client_id, self._clock, self._random, limit_ms, config, in_flight_max)
        self._links[links] = listener_name or self._listener_name
        return links

    def _fetcher_links(self, client_id: str) -> BrokerLinks:
        receive_bytes = self._config.current.number("replica.socket.receive.buffer.bytes")
        return self.new_links(client_id, settings={"receive.buffer.bytes": max(receive_bytes, -1)})

    async def ask_brokers(self, request: Message, version: int, response: type[M]) -> list[M]:
        """The responses of all other live brokers. Raises KafkaError if one does not respond."""
        links = self.new_links(f"broker-{self._broker_id}-to-brokers")
        try:
            others = [broker.id for broker in self._cache.alive_brokers() if broker.id != self._broker_id]
            for broker_id in others:
                if (endpoint := self.endpoint_of(broker_id)) is not None:
                    links.set_endpoint(broker_id, endpoint)
            answers = await asyncio.gather(*(links.ask(broker_id, request, version) for broker_id in others))
        finally:
            await links.close()
        return [answer for answer in answers if isinstance(answer, response)]

    def use_tls(self, listener_name: str, tls: SSLContext) -> None:
        """The certificate of a listener of brokers was replaced: new connections to that listener of other brokers use it too."""
        for links, used_name in self._links.items():
            if used_name == listener_name:
                links.use_tls(tls)

    def endpoint_of(self, broker_id: int) -> EndPoint | None:
        """The inter-broker endpoint of a live broker."""
        return self._cache.broker_endpoint(broker_id, self._listener_name)

    def topic_creator(self, admin: AdminManager, controller: Controller) -> ForwardedTopicCreation:
        return ForwardedTopicCreation(admin, lambda: controller.is_active, self.to_controller)

    def require_broker(self, request: Request[Any]) -> None:
        """Accepts a request only on the inter-broker or control-plane listener. Raises MalformedMessage, which ends the connection."""
        if request.listener_name not in self._listener_names:
            raise MalformedMessage(f"{request.api.name} is accepted only on the listener of brokers, {self._listener_name}")

    def is_stale_broker_epoch(self, broker_epoch: int) -> bool:
        """Whether a control request is for an earlier start of this broker. A greater epoch than our own is not stale: the controller may
        read a registration before this broker has the response to it."""
        return broker_epoch != UNKNOWN_EPOCH and broker_epoch < self.broker_epoch

    def start(self) -> None:
        self._shrink_later()
        self.initial_metadata.start()

    async def wait_for_controller(self) -> None:
        """Returns when the controller has sent this broker the metadata of the cluster and, if the broker holds replicas, their states:
        the first LeaderAndIsr to a newly registered broker names all of its replicas."""
        await self.initial_metadata.wait()
        if self._cache.holds_replicas():
            await self.controller_requests.first_states.wait()

    def leave(self) -> None:
        """Stops the fetchers for a controlled shutdown. To be called before the ControlledShutdown request."""
        self.fetchers.leave()

    async def close(self) -> None:
        self.initial_metadata.close()
        if self._shrinking is not None:
            self._shrinking.cancel()
        await self.isr_proposals.close()
        await self.fetchers.close()
        await self.to_controller.close()
        self.channel.shutdown()
        await self._channel_links.close()

    def _shrink_later(self) -> None:
        """Every half of replica.lag.time.max.ms, so that a lagging replica leaves the ISR after 1.5 times that setting at most."""
        delay_s = self._config.current.number("replica.lag.time.max.ms") / 2000
        self._shrinking = asyncio.get_running_loop().call_later(delay_s, self._shrink)

    def _shrink(self) -> None:
        try:
            self._replicas.shrink_isrs(self._clock.monotonic_ms())
        except Exception:
            _log.exception("The check for lagging replicas failed")
        self._shrink_later()

    def _own_epoch(self) -> int:
        return self.broker_epoch

    def _topic_id_of(self, partition: TopicPartition) -> Uuid | None:
        online = self._replicas.partition(partition)
        return None if online is None else online.topic_id

    def _replica_epochs_of(self, partition: TopicPartition) -> dict[int, int]:
        online = self._replicas.partition(partition)
        epochs = {self._broker_id: self.broker_epoch}
        if online is not None:
            epochs |= {replica.broker_id: replica.broker_epoch for replica in online.remote_replicas.values()}
        return epochs


def _control_versions(config: BrokerConfig) -> dict[type[ControlRequest], int]:
    versions = InterBrokerVersions.of(config.text("inter.broker.protocol.version") or "")
    return {
        LeaderAndIsrRequest: versions.leader_and_isr,
        StopReplicaRequest: versions.stop_replica,
        UpdateMetadataRequest: versions.update_metadata,
    }
