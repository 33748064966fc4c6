"""What makes a broker one of several: its epoch, its links to the others, and what goes over them by itself.

The server makes it where the metadata tree is shared. It brings together the controller's channel, the replica fetchers and what leaders
propose to the controller, and does regularly what has to be done for that. A broker that is alone has none of it.
"""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.clock import Clock
from barnabas.broker.cluster.controller_requests import ControllerRequests
from barnabas.broker.cluster.local_channel import LocalChannel
from barnabas.broker.cluster.remote_channel import RemoteChannel
from barnabas.broker.config import DynamicBrokerConfig
from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.broker.links.controller_link import ControllerLink
from barnabas.broker.links.link_settings import link_settings
from barnabas.broker.partitions.isr_proposals import IsrProposals
from barnabas.broker.replication.replica_fetchers import ReplicaFetchers
from barnabas.broker.topics.forwarded_topic_creation import ForwardedTopicCreation
from barnabas.broker.topics.initial_metadata import InitialMetadata
from barnabas.endpoint import EndPoint
from barnabas.metadata.client import TreeClient
from barnabas.protocol.errors import MalformedMessage
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.admin_manager import AdminManager
    from barnabas.controller.controller import Controller

UNKNOWN_EPOCH: Final = -1

_log = logging.getLogger(__name__)


class ClusterMember:
    """To be made on the loop it will run on. `broker_epoch` is set whenever this broker has registered."""

    def __init__(
        self,
        config: DynamicBrokerConfig,
        replicas: ReplicaManager,
        orders: ControllerRequests,
        tree: TreeClient,
        clock: Clock,
        random: Random,
    ) -> None:
        self.orders = orders
        self.broker_epoch = UNKNOWN_EPOCH
        self.initial_metadata = InitialMetadata(replicas.broker_id, replicas.metadata_cache, tree)
        self._config = config
        self._replicas = replicas
        self._cache = replicas.metadata_cache
        self._clock = clock
        self._random = random
        current = config.current
        self._listener_name = current.inter_broker_listener_name
        control_listener_name = current.control_plane_listener_name or self._listener_name
        self._listener_names = {self._listener_name, control_listener_name}
        self._broker_id = broker_id = replicas.broker_id
        self._channel_links = self.new_links(f"broker-{broker_id}-controller")
        self.channel = RemoteChannel(broker_id, LocalChannel({broker_id: orders.carry_out}), self._channel_links, control_listener_name)
        self.to_controller = ControllerLink(
            self.new_links(f"broker-{broker_id}-to-controller"), lambda: self._cache.controller_id, self.endpoint_of
        )
        self._cache.on_update.append(self.to_controller.controller_told)
        self._proposals = IsrProposals(broker_id, self.to_controller, self._own_epoch, self._topic_id_of, self._replica_epochs_of)
        self._fetchers = ReplicaFetchers(
            replicas, lambda number: self.new_links(f"broker-{broker_id}-fetcher-{number}"), self.endpoint_of, self._own_epoch
        )
        replicas.host.isr_updates = self._proposals
        replicas.fetchers = self._fetchers
        self._shrinking: asyncio.TimerHandle | None = None

    def new_links(self, client_id: str, in_flight_max: int = 1) -> BrokerLinks:
        current = self._config.current
        timeout_ms = current.number("request.timeout.ms")
        return BrokerLinks(client_id, self._clock, self._random, timeout_ms, link_settings(current), in_flight_max)

    def endpoint_of(self, broker_id: int) -> EndPoint | None:
        """Where the others reach a broker that lives."""
        return self._cache.broker_endpoint(broker_id, self._listener_name)

    def topic_creator(self, admin: AdminManager, controller: Controller) -> ForwardedTopicCreation:
        return ForwardedTopicCreation(admin, lambda: controller.is_active, self.to_controller)

    def require_broker(self, request: Request[Any]) -> None:
        """Raises MalformedMessage, which ends the connection, if a request that is for brokers comes by another listener."""
        if request.listener_name not in self._listener_names:
            raise MalformedMessage(f"{request.api.name} is for brokers, who use the listener {self._listener_name}")

    def is_meant_for_an_earlier_life(self, broker_epoch: int) -> bool:
        """Whether the controller spoke to who had this id before. One that knows a later epoch has only heard of it before we did."""
        return broker_epoch != UNKNOWN_EPOCH and broker_epoch < self.broker_epoch

    def start(self) -> None:
        self._replicas.later = asyncio.get_running_loop().call_soon
        self._shrink_later()
        self.initial_metadata.start()

    async def told_all(self) -> None:
        """Returns when the controller has told this broker what there is and, where it holds replicas, whom they follow: the first
        LeaderAndIsr to a broker that has registered names all of them."""
        await self.initial_metadata.wait()
        if self._cache.holds_replicas():
            await self.orders.first_states.wait()

    def leave(self) -> None:
        """Before the controller hears that this broker goes."""
        self._fetchers.leave()

    async def close(self) -> None:
        self.initial_metadata.close()
        if self._shrinking is not None:
            self._shrinking.cancel()
        await self._proposals.close()
        await self._fetchers.close()
        await self.to_controller.close()
        self.channel.shutdown()
        await self._channel_links.close()

    def _shrink_later(self) -> None:
        """At half the time: a replica is behind for one and a half times as long at most before it is left out."""
        delay_s = self._config.current.number("replica.lag.time.max.ms") / 2000
        self._shrinking = asyncio.get_running_loop().call_later(delay_s, self._shrink)

    def _shrink(self) -> None:
        try:
            self._replicas.shrink_isrs(self._clock.monotonic_ms())
        except Exception:
            _log.exception("Looking for replicas that are behind failed")
        self._shrink_later()

    def _own_epoch(self) -> int:
        return self.broker_epoch

    def _topic_id_of(self, partition: TopicPartition) -> Uuid | None:
        found = self._replicas.partition(partition)
        return None if found is None else found.topic_id

    def _replica_epochs_of(self, partition: TopicPartition) -> dict[int, int]:
        found = self._replicas.partition(partition)
        epochs = {self._broker_id: self.broker_epoch}
        if found is not None:
            epochs |= {replica.broker_id: replica.broker_epoch for replica in found.remote_replicas.values()}
        return epochs
