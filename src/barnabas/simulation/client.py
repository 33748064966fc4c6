"""A client of a simulated cluster: finds leaders, sends requests to them, and retries until it gets a response. It supports few APIs.

Every attempt has a timeout: a request that a cut link or a dead broker swallows is abandoned and sent again, as real clients do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from barnabas.client.network.sasl.scram import Scram
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages import alter_client_quotas_request as client_quotas
from barnabas.protocol.messages import alter_partition_reassignments_request as reassignments
from barnabas.protocol.messages import elect_leaders_request
from barnabas.protocol.messages import incremental_alter_configs_request as configs
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.registry import BY_NAME
from barnabas.simulation.conversations import Frames
from barnabas.topic_partition import TopicPartition

ATTEMPT_S: Final = 4.0
RETRY_S: Final = 0.3
METADATA_VERSION: Final = 12
_TOPIC, _BROKER = 2, 4  # types of config resources
_SET, _DELETE = 0, 1
SESSION_PART: Final = 0.8  # of its lifetime: then the client makes another connection instead of a re-authentication

Address = tuple[str, int]
Login = tuple[str, Callable[[], Scram]]  # a mechanism, and what begins an exchange


class SimulatedConnection(asyncio.Protocol):
    """Handles one request at a time."""

    def __init__(self) -> None:
        self.is_open = True
        self._ends_at: float | None = None  # when its session is about to expire
        self._frames = Frames()
        self._answer: asyncio.Future[bytes] | None = None
        self._transport: Any = None
        self._correlation_id = 0

    @classmethod
    async def to(cls, host: str, port: int, login: Login | None = None) -> SimulatedConnection:
        """Raises OSError, also if the broker does not authenticate the user."""
        _, connection = await asyncio.get_running_loop().create_connection(cls, host, port)
        if login is not None:
            await connection._authenticate(*login)
        return connection

    @property
    def is_usable(self) -> bool:
        return self.is_open and (self._ends_at is None or asyncio.get_running_loop().time() < self._ends_at)

    async def _authenticate(self, mechanism: str, begin: Callable[[], Scram]) -> None:
        exchange = begin()
        handshake = await self.ask(SaslHandshakeRequest(mechanism), 1)
        token = exchange.begin() if not handshake.error_code else None
        while token is not None:
            response = await self.ask(SaslAuthenticateRequest(token), 2)
            if response.error_code:
                break
            token = exchange.answer(response.auth_bytes)
            if response.session_lifetime_ms:
                self._ends_at = asyncio.get_running_loop().time() + SESSION_PART * response.session_lifetime_ms / 1000
        if not exchange.is_done:
            self.close()
            raise PermissionError("The broker did not authenticate the user")

    async def ask(self, request: Message, version: int) -> Any:
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        self._correlation_id += 1
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(b"".join(request_frame(request, api, version, self._correlation_id, "simulation")))
        _, reader = parse_response_header(await self._answer, api.response_header_version(version))
        return api.response.read(reader, version)

    def close(self) -> None:
        self.is_open = False
        self._transport.close()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.cut(data):
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(frame)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionResetError("The broker has closed the connection"))


class SimulatedClient:
    """`brokers` are the bootstrap addresses."""

    def __init__(self, brokers: Sequence[Address], login: Login | None = None) -> None:
        self.denied: list[tuple[float, str]] = []  # times and topics of UNKNOWN_TOPIC_OR_PARTITION responses
        self._login = login
        self._bootstrap = list(brokers)
        self._connections: dict[Address, SimulatedConnection] = {}
        self._brokers: dict[int, Address] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._epochs: dict[tuple[str, int], int] = {}
        self._controller = -1
        self._next = 0

    async def ask(self, address: Address, request: Message, version: int) -> Any:
        """Raises OSError or TimeoutError."""
        try:
            return await asyncio.wait_for(self._ask(address, request, version), ATTEMPT_S)
        except (OSError, TimeoutError):
            broken = self._connections.pop(address, None)
            if broken is not None and broken.is_open:
                broken.close()
            raise

    async def _ask(self, address: Address, request: Message, version: int) -> Any:
        connection = self._connections.get(address)
        if connection is not None and connection.is_open and not connection.is_usable:
            connection.close()
        if connection is None or not connection.is_open:
            connection = self._connections[address] = await SimulatedConnection.to(*address, self._login)
        return await connection.ask(request, version)

    async def ask_any_broker(self, request: Message, version: int) -> Any:
        while True:
            addresses = list(dict.fromkeys([*self._brokers.values(), *self._bootstrap]))
            self._next += 1
            try:
                return await self.ask(addresses[self._next % len(addresses)], request, version)
            except (OSError, TimeoutError):
                await asyncio.sleep(RETRY_S)

    async def refresh(self, topic: str) -> None:
        """Refreshes the metadata of the cluster, and of a topic if one is named."""
        topics = [MetadataRequestTopic(name=topic)] if topic else []
        answer = await self.ask_any_broker(MetadataRequest(topics, allow_auto_topic_creation=False), METADATA_VERSION)
        self._controller = answer.controller_id
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for described in answer.topics:
            if described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self.denied.append((asyncio.get_running_loop().time(), topic))
            for partition in described.partitions:
                key = (topic, partition.partition_index)
                if partition.leader_epoch >= self._epochs.get(key, -1):  # a broker that was cut off returns old leaders
                    self._leaders[key], self._epochs[key] = partition.leader_id, partition.leader_epoch

    async def leader(self, topic: str, partition: int) -> Address:
        """The address from the client's metadata; after `forget` it is refreshed."""
        while (address := self._brokers.get(self._leaders.get((topic, partition), -1))) is None:
            await self.refresh(topic)
            if self._brokers.get(self._leaders.get((topic, partition), -1)) is None:
                await asyncio.sleep(RETRY_S)
        return address

    def epoch(self, topic: str, partition: int) -> int:
        """The epoch of the leader, or -1."""
        return self._epochs.get((topic, partition), -1)

    def forget(self, topic: str, partition: int) -> None:
        self._leaders.pop((topic, partition), None)

    async def create_topic(self, name: str, partitions: int, replicas: int, configs: dict[str, str] | None = None) -> None:
        new_topic = CreatableTopic(
            name, partitions, replicas, configs=[CreatableTopicConfig(key, value) for key, value in (configs or {}).items()]
        )
        while True:
            await self.refresh(name)
            address = self._brokers.get(self._controller)
            if address is not None:
                try:
                    answer = await self.ask(address, CreateTopicsRequest([new_topic], 10_000), 5)
                    if answer.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                        return
                except (OSError, TimeoutError):
                    pass
            await asyncio.sleep(RETRY_S)

    async def elect_preferred_leader(self, partition: TopicPartition) -> None:
        """Sends one request and ignores its outcome."""
        topic = elect_leaders_request.TopicPartitions(partition.topic, [partition.partition])
        await self._ask_controller(elect_leaders_request.ElectLeadersRequest(0, [topic], 2_000), 2)

    async def reassign(self, partition: TopicPartition, replicas: Sequence[int]) -> bool:
        """Returns whether the controller accepted the reassignment."""
        topic = reassignments.ReassignableTopic(partition.topic, [reassignments.ReassignablePartition(partition.partition, list(replicas))])
        answer = await self._ask_controller(reassignments.AlterPartitionReassignmentsRequest(2_000, topics=[topic]), 0)
        return answer is not None and not answer.error_code and not answer.responses[0].partitions[0].error_code

    async def throttle(self, topic: str, bytes_a_second: int | None) -> None:
        """Throttles all replicas of a topic on all brokers, or none of them. Sends one request and ignores its outcome."""
        replicas = None if bytes_a_second is None else "*"
        rate = None if bytes_a_second is None else str(bytes_a_second)
        resources = [
            configs.AlterConfigsResource(
                kind, name, [_change(f"{side}.replication.throttled.{key}", text) for side in ("leader", "follower")]
            )
            for kind, name, key, text in ((_TOPIC, topic, "replicas", replicas), (_BROKER, "", "rate", rate))
        ]
        await self._ask_controller(configs.IncrementalAlterConfigsRequest(resources, False), 1)

    async def limit(self, quotas: Mapping[str, float | None]) -> None:
        """Sets or removes quotas of all clients that have none of their own. Sends one request and ignores its outcome."""
        entity = client_quotas.EntityData("client-id", None)
        ops = [client_quotas.OpData(key, value or 0.0, value is None) for key, value in quotas.items()]
        await self._ask_controller(client_quotas.AlterClientQuotasRequest([client_quotas.EntryData([entity], ops)]), 1)

    async def _ask_controller(self, request: Message, version: int) -> Any:
        """None if there is no controller, or no response."""
        try:
            await self.refresh("")
            address = self._brokers.get(self._controller)
            return None if address is None else await self.ask(address, request, version)
        except (OSError, TimeoutError):
            return None

    def close(self) -> None:
        for connection in self._connections.values():
            if connection.is_open:
                connection.close()
        self._connections.clear()


def _change(name: str, text: str | None) -> configs.AlterableConfig:
    """Sets a config, or deletes it."""
    return configs.AlterableConfig(name, _DELETE if text is None else _SET, text)
