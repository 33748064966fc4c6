"""A cluster without brokers: a real metadata store, a real controller, and a channel that records requests and gives set responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random

from barnabas.controller.channel import REQUEST_VERSIONS, ControlRequest
from barnabas.controller.config import ControllerConfig
from barnabas.controller.controller import Controller
from barnabas.endpoint import EndPoint
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalSession, LocalTree
from barnabas.metadata.tree import Create, CreateMode, Delete, Exists, GetData, SetData, TreeResponse
from barnabas.metadata.znodes import cluster, configs, topics
from barnabas.protocol.message import Message, parse, serialize
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from barnabas.protocol.messages.leader_and_isr_response import LeaderAndIsrPartitionError, LeaderAndIsrResponse, LeaderAndIsrTopicError
from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest
from barnabas.protocol.messages.stop_replica_response import StopReplicaPartitionError, StopReplicaResponse
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataPartitionState, UpdateMetadataRequest
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

DEADLINE_S = 50.0


class FixedClock:
    def now_ms(self) -> int:
        return 1_794_773_512_555


@dataclass
class RecordingChannel:
    """`errors` says with which code a broker answers for a partition; a broker in `silent` does not answer by itself."""

    sent: list[tuple[int, ControlRequest]] = field(default_factory=list)
    connected: dict[int, cluster.BrokerRegistration] = field(default_factory=dict)
    errors: dict[tuple[int, TopicPartition], int] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    unanswered: list[Callable[[], None]] = field(default_factory=list)  # call one to answer late
    log: list[str] = field(default_factory=list)
    failures: int = 0  # so many times a broker cannot be added

    def add_broker(self, broker_id: int, registration: cluster.BrokerRegistration) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("no way to the broker")
        self.connected[broker_id] = registration
        self.log.append(f"+{broker_id}")

    def remove_broker(self, broker_id: int) -> None:
        del self.connected[broker_id]
        self.log.append(f"-{broker_id}")

    def send(self, broker_id: int, request: ControlRequest, on_response: Callable[[Message], None] | None = None) -> None:
        if broker_id not in self.connected:
            return
        version = REQUEST_VERSIONS[type(request)]
        self.sent.append((broker_id, parse(type(request), serialize(request, version), version)))  # as a broker would get it
        if on_response is not None and broker_id in self.silent:
            self.unanswered.append(partial(on_response, self.answer(broker_id, request)))
        elif on_response is not None:
            asyncio.get_running_loop().call_soon(on_response, self.answer(broker_id, request))

    def shutdown(self) -> None:
        self.connected.clear()

    def answer(self, broker_id: int, request: ControlRequest) -> Message:
        if isinstance(request, UpdateMetadataRequest):
            return UpdateMetadataResponse()
        if isinstance(request, StopReplicaRequest):
            errors = [
                StopReplicaPartitionError(
                    topic.topic_name,
                    state.partition_index,
                    self.error(broker_id, topic.topic_name, state.partition_index),
                )
                for topic in request.topic_states
                for state in topic.partition_states
            ]
            return StopReplicaResponse(0, errors)
        by_topic = [
            LeaderAndIsrTopicError(
                topic.topic_id,
                [
                    LeaderAndIsrPartitionError(
                        partition_index=state.partition_index,
                        error_code=self.error(broker_id, topic.topic_name, state.partition_index),
                    )
                    for state in topic.partition_states
                ],
            )
            for topic in request.topic_states
        ]
        return LeaderAndIsrResponse(0, topics=by_topic)

    def error(self, broker_id: int, topic: str, partition: int) -> int:
        return self.errors.get((broker_id, TopicPartition(topic, partition)), 0)

    def take(self) -> list[str]:
        """What was sent since the last look, each as broker, request and partitions."""
        lines = [f"{broker_id} {described(request)}" for broker_id, request in self.sent]
        self.sent.clear()
        return lines

    def leader_and_isr(self, broker_id: int) -> dict[TopicPartition, LeaderAndIsrPartitionState]:
        """The last that a broker was told of each partition."""
        return {
            TopicPartition(topic.topic_name, state.partition_index): state
            for to, request in self.sent
            if to == broker_id and isinstance(request, LeaderAndIsrRequest)
            for topic in request.topic_states
            for state in topic.partition_states
        }

    def metadata(self, broker_id: int) -> dict[TopicPartition, UpdateMetadataPartitionState]:
        return {
            TopicPartition(topic.topic_name, state.partition_index): state
            for to, request in self.sent
            if to == broker_id and isinstance(request, UpdateMetadataRequest)
            for topic in request.topic_states
            for state in topic.partition_states
        }


def described(request: ControlRequest) -> str:
    name = type(request).__name__.removesuffix("Request")
    if isinstance(request, UpdateMetadataRequest):
        brokers = ",".join(str(broker.id) for broker in request.live_brokers)
        led = [
            f"{topic.topic_name}-{state.partition_index}@{state.leader}"
            for topic in request.topic_states
            for state in topic.partition_states
        ]
        return f"{name} brokers={brokers} {' '.join(led)}".rstrip()
    if isinstance(request, StopReplicaRequest):
        stopped = [
            f"{topic.topic_name}-{state.partition_index}{' delete' if state.delete_partition else ''}"
            for topic in request.topic_states
            for state in topic.partition_states
        ]
        return f"{name} {', '.join(stopped)}"
    led = [
        f"{topic.topic_name}-{state.partition_index}@{state.leader}/{state.leader_epoch}{' new' if state.is_new else ''}"
        for topic in request.topic_states
        for state in topic.partition_states
    ]
    return f"{name} {', '.join(led)}"


def done(answers: Sequence[TreeResponse[object]]) -> None:
    for answer in answers:
        if answer.error is not None:
            raise answer.error


class World:
    """Brokers are sessions of their own in the tree, so that they can die; the controller's own is that of broker 0."""

    def __init__(self, tree: LocalTree | None = None, config: ControllerConfig | None = None) -> None:
        self.tree = tree or LocalTree(lambda: 0)
        self.config = config or ControllerConfig()
        self.channel = RecordingChannel()
        self.client = TreeClient(self.tree, lambda: None)
        self.admin = self.tree.open_session_now(lambda event: None)
        self.brokers: dict[int, LocalSession] = {}
        self.controller = self.make_controller(0, self.client, self.channel)
        self.random = Random(7)

    def make_controller(self, broker_id: int, client: TreeClient, channel: RecordingChannel) -> Controller:
        async def register() -> None:
            self.register_broker(broker_id)

        return Controller(
            broker_id=broker_id,
            tree=client,
            channel=channel,
            config=self.config,
            clock=FixedClock(),
            random=Random(1),
            register_broker=register,
        )

    def make_paths(self) -> None:
        for path in paths.PERSISTENT_PATHS:
            for end in [at for at, letter in enumerate(path) if letter == "/" and at > 0] + [len(path)]:
                self.admin.handle_now([Create(path[:end])])

    async def settle(self) -> None:
        """Until nothing waits any more: no event, no answer. Answers come by turns of the loop, so a few empty turns are the end."""
        async with asyncio.timeout(DEADLINE_S):
            quiet = 0
            while quiet < 5:
                await turn_of_the_loop()
                quiet = quiet + 1 if self.controller._events.is_idle else 0

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not reached():
                await turn_of_the_loop()

    def register_broker(self, broker_id: int, port: int = 9092) -> None:
        session = self.brokers[broker_id] = self.tree.open_session_now(lambda event: None)
        endpoint = EndPoint("PLAINTEXT", f"host{broker_id}", port)
        registration = cluster.BrokerRegistration((endpoint,), 1)
        done(session.handle_now([Create(paths.broker_id(broker_id), cluster.encode_broker(registration), CreateMode.EPHEMERAL)]))

    def kill_broker(self, broker_id: int) -> None:
        self.brokers.pop(broker_id).close_now()

    def create_topic(self, name: str, assignment: Mapping[int, tuple[int, ...]], config: dict[str, str] | None = None) -> Uuid:
        """As AdminZkClient does: the config first, then the topic."""
        topic_id = Uuid.random(self.random)
        partitions = {number: topics.ReplicaAssignment(replicas) for number, replicas in assignment.items()}
        self.set(paths.config_entity(f"topics/{name}"), configs.encode_config(config or {}))
        self.set(paths.topic(name), topics.encode_topic(topics.TopicAssignment(partitions, topic_id)))
        return topic_id

    def add_partitions(self, name: str, added: Mapping[int, tuple[int, ...]]) -> None:
        before = topics.decode_topic(name, self.data(paths.topic(name)))
        partitions = {**before.partitions, **{number: topics.ReplicaAssignment(replicas) for number, replicas in added.items()}}
        self.set(paths.topic(name), topics.encode_topic(topics.TopicAssignment(partitions, before.topic_id)))

    def mark_for_deletion(self, name: str) -> None:
        self.set(paths.delete_topic(name), None)

    def set(self, path: str, data: bytes | None) -> None:
        if self.admin.handle_now([SetData(path, data)])[0].error is not None:
            done(self.admin.handle_now([Create(path, data)]))

    def delete(self, path: str) -> None:
        done(self.admin.handle_now([Delete(path)]))

    def exists(self, path: str) -> bool:
        return self.admin.handle_now([Exists(path)])[0].value is not None

    def version(self, path: str) -> int:
        return self.admin.handle_now([GetData(path)])[0].value.stat.version

    def data(self, path: str) -> bytes | None:
        return self.admin.handle_now([GetData(path)])[0].value.data

    def partition_count(self, topic: str) -> int:
        return len(topics.decode_topic(topic, self.data(paths.topic(topic))).partitions)

    def state(self, topic: str, partition: int) -> topics.PartitionState:
        return topics.decode_partition_state(topic, partition, self.data(paths.topic_partition_state(topic, partition)))


@asynccontextmanager
async def controlling(
    *broker_ids: int, tree: LocalTree | None = None, config: ControllerConfig | None = None, before: Callable[[World], object] | None = None
) -> AsyncIterator[World]:
    """A cluster of these brokers, whose controller is up. `before` prepares the tree that it finds."""
    world = World(tree, config)
    world.make_paths()
    for broker_id in broker_ids:
        world.register_broker(broker_id)
    if before is not None:
        before(world)
    await world.client.connect()
    await world.controller.start()
    await world.settle()
    try:
        yield world
    finally:
        await world.controller.shutdown()
        await world.client.close()


async def turn_of_the_loop() -> None:
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned
