"""Kafka's AdminZkClient: writes the changes of administration (topics, partitions, configs) to the metadata store.

The broker's handlers of admin requests call it. It only writes the znodes; the controller and the brokers watch them and carry the
changes out. It never validates the values of configs: the callers do that first.

Batches are the normal case: a request may create a thousand topics. They are written in one batch, each atomically with its config.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from barnabas import topic_name
from barnabas.errors import (
    InvalidReplicaAssignment,
    InvalidTopic,
    KafkaError,
    TopicExists,
    UnknownTopicOrPartition,
)
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import BadVersion, NodeExists, NoNode, NotEmpty, TreeError
from barnabas.metadata.tree import Create, CreateMode, GetChildren, GetData, Multi, SetData
from barnabas.metadata.znodes.configs import DEFAULT_ENTITY, decode_config, encode_config, encode_config_change
from barnabas.metadata.znodes.topics import ReplicaAssignment, TopicAssignment, decode_topic, encode_topic
from barnabas.uuid import Uuid

TOPIC: Final = "topics"
BROKER: Final = "brokers"
CLIENT: Final = "clients"
USER: Final = "users"
IP: Final = "ips"
_QUOTA_TYPES: Final = (CLIENT, USER, IP)

Assignment = Mapping[int, tuple[int, ...]]  # partition to broker ids, the preferred leader first


class TopicAlreadyMarkedForDeletion(KafkaError):
    """The topic was already marked for deletion; for the caller that is as good as a success."""


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    name: str
    assignment: Assignment
    config: Mapping[str, str] = field(default_factory=dict)
    topic_id: Uuid | None = None  # None: generate one


class ExistingTopics:
    """The existing topics, as read for one request: checks each new name against them and against the new names before it."""

    __slots__ = ("_marked", "_names", "_unified")

    def __init__(self, names: Sequence[str], marked_for_deletion: Sequence[str]) -> None:
        self._names = set(names)
        self._marked = set(marked_for_deletion)
        self._unified: dict[str, list[str]] = {}
        for name in names:
            self._unified.setdefault(topic_name.unify_collision_chars(name), []).append(name)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._names)

    def is_marked_for_deletion(self, name: str) -> bool:
        return name in self._marked

    def check_new(self, name: str) -> None:
        """Raises if a topic of this name may not be created."""
        topic_name.validate(name)
        if name in self._marked:
            raise TopicExists(f"Topic '{name}' is marked for deletion.")
        if name in self._names:
            raise TopicExists(f"Topic '{name}' already exists.")
        colliding = self._unified.get(topic_name.unify_collision_chars(name))
        if colliding:
            raise InvalidTopic(f"Topic '{name}' collides with existing topic: {colliding[0]}")

    def add(self, name: str) -> None:
        self._names.add(name)
        self._unified.setdefault(topic_name.unify_collision_chars(name), []).append(name)


class AdminTree:
    def __init__(self, tree: TreeClient, random: Random) -> None:
        self._tree = tree
        self._random = random

    async def all_topics(self) -> list[str]:
        children = await self._tree.children(paths.TOPICS)
        return children.names if children is not None else []

    async def topic_names(self) -> ExistingTopics:
        marked = await self._tree.children(paths.DELETE_TOPICS)
        return ExistingTopics(await self.all_topics(), marked.names if marked is not None else [])

    async def topic_exists(self, name: str) -> bool:
        return await self._tree.exists(paths.topic(name)) is not None

    async def is_marked_for_deletion(self, name: str) -> bool:
        return await self._tree.exists(paths.delete_topic(name)) is not None

    async def topic_assignment(self, name: str) -> TopicAssignment | None:
        return (await self.topic_assignments([name])).get(name)

    async def topic_assignments(self, names: Sequence[str]) -> dict[str, TopicAssignment]:
        """The assignments of those of the topics that exist."""
        responses = await self._tree.handle([GetData(paths.topic(name)) for name in names])
        assignments = {}
        for name, response in zip(names, responses, strict=True):
            if not isinstance(response.error, NoNode):
                assignments[name] = decode_topic(name, response.value.data)
        return assignments

    async def create_topic(
        self,
        name: str,
        assignment: Assignment,
        config: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
        topic_id: Uuid | None = None,
    ) -> Uuid:
        """Returns the topic id. Raises TopicExists, InvalidTopic or InvalidReplicaAssignment; config values are not validated."""
        (await self.topic_names()).check_new(name)
        validate_assignment(assignment)
        if validate_only:
            return topic_id or Uuid.ZERO
        (created,) = await self.create_topics([PlannedTopic(name, assignment, config or {}, topic_id)])
        if isinstance(created, KafkaError):
            raise created
        return created

    async def create_topics(self, topics: Sequence[PlannedTopic], *, with_ids: bool = True) -> list[Uuid | KafkaError]:
        """The ids or errors, in order. The caller has validated names and assignments: see `ExistingTopics`, `validate_assignment`.

        Without ids, as tools of older Kafka versions create topics, the controller generates them later; the result is then `Uuid.ZERO`.
        """
        ids = [(topic.topic_id or Uuid.random(self._random)) if with_ids else Uuid.ZERO for topic in topics]
        requests = [_creation(topic, topic_id, config_exists=False) for topic, topic_id in zip(topics, ids, strict=True)]
        responses = await self._tree.handle(requests)
        outcomes: list[Uuid | KafkaError] = []
        for topic, topic_id, response in zip(topics, ids, responses, strict=True):
            if isinstance(response.error, NodeExists):
                outcomes.append(await self._create_with_existing_config(topic, topic_id))
            elif isinstance(response.error, NoNode):
                await self._tree.ensure(paths.config_type(TOPIC))
                await self._tree.ensure(paths.TOPICS)
                outcomes.append(await self._create_again(topic, topic_id))
            else:
                outcomes.append(_outcome(response.error, topic, topic_id))
        return outcomes

    async def delete_topic(self, name: str) -> None:
        """Marks it for deletion by the controller. Raises UnknownTopicOrPartition or TopicAlreadyMarkedForDeletion."""
        if not await self.topic_exists(name):
            raise UnknownTopicOrPartition(f"Topic `{name}` to delete does not exist")
        try:
            await self._tree.create_recursive(paths.delete_topic(name))
        except NodeExists:
            raise TopicAlreadyMarkedForDeletion(f"topic {name} is already marked for deletion") from None

    async def delete_topics(self, names: Sequence[str]) -> None:
        """Marks existing topics for deletion; one that is already marked is not an error."""
        responses = await self._tree.handle([Create(paths.delete_topic(name)) for name in names])
        for response in responses:
            if response.error is not None and not isinstance(response.error, NodeExists):
                raise response.error

    async def add_partitions(
        self, name: str, plan: Callable[[TopicAssignment], Assignment], *, validate_only: bool = False
    ) -> TopicAssignment:
        """The topic with the partitions that `plan` adds to its current ones. Exceptions of `plan` are passed on.

        The write is conditional on the version that was read, so that it never undoes a concurrent reassignment or increase: on a
        conflict `plan` runs again.
        """
        while True:
            node = await self._tree.get(paths.topic(name))
            if node is None:
                raise UnknownTopicOrPartition
            topic = decode_topic(name, node.data)
            added = {partition: ReplicaAssignment(replicas) for partition, replicas in plan(topic).items()}
            changed = replace(topic, partitions={**topic.partitions, **added}, version=3)
            if validate_only:
                return changed
            try:
                await self._tree.set_data(paths.topic(name), encode_topic(changed), node.stat.version)
            except BadVersion:
                continue
            except NoNode:
                raise UnknownTopicOrPartition from None
            return changed

    async def fetch_config(self, entity_type: str, entity: str) -> dict[str, str]:
        """The config of the entity, empty if it has none. `entity` is sanitized: `T`, `0`, `<default>`, `alice/clients/c1`."""
        node = await self._tree.get(_config_path(entity_type, entity))
        return decode_config(f"{entity_type}/{entity}", node.data) if node is not None else {}

    async def fetch_configs(self, entity_type: str, entities: Sequence[str]) -> dict[str, dict[str, str]]:
        """The configs of many entities in one batch; empty for an entity without one."""
        responses = await self._tree.handle([GetData(_config_path(entity_type, entity)) for entity in entities])
        entity_configs: dict[str, dict[str, str]] = {}
        for entity, response in zip(entities, responses, strict=True):
            missing = isinstance(response.error, NoNode)
            entity_configs[entity] = {} if missing else decode_config(f"{entity_type}/{entity}", response.value.data)
        return entity_configs

    async def fetch_all_configs(self, entity_type: str) -> dict[str, dict[str, str]]:
        return await self.fetch_configs(entity_type, await self._children(paths.config_type(entity_type)))

    async def fetch_all_child_configs(
        self, entity_type: str, entities: Sequence[str], child_type: str
    ) -> dict[str, dict[str, dict[str, str]]]:
        """The configs of the children of entities, such as the clients of users. Entities without children are left out."""
        responses = await self._tree.handle([GetChildren(_config_path(entity_type, f"{entity}/{child_type}")) for entity in entities])
        child_configs = {}
        for entity, response in zip(entities, responses, strict=True):
            if response.error is None and response.value.names:
                children = [f"{entity}/{child_type}/{name}" for name in response.value.names]
                configs = await self.fetch_configs(entity_type, children)
                child_configs[entity] = {path.rpartition("/")[2]: config for path, config in configs.items()}
        return child_configs

    async def change_topic_config(self, name: str, config: Mapping[str, str]) -> None:
        """Replaces the whole config of the topic. The caller has validated the values."""
        topic_name.validate(name)
        if not await self.topic_exists(name):
            raise UnknownTopicOrPartition(f"Topic '{name}' does not exist.")
        await self.change_config(TOPIC, name, config)

    async def change_broker_config(self, broker_id: int | None, config: Mapping[str, str]) -> None:
        """Replaces the config of one broker, or with None the default of all brokers."""
        await self.change_config(BROKER, DEFAULT_ENTITY if broker_id is None else str(broker_id), config)

    async def change_config(self, entity_type: str, entity: str, config: Mapping[str, str]) -> None:
        """Writes the config of an entity (sanitized name) and notifies all brokers. An empty quota config deletes its znode."""
        if config or entity_type not in _QUOTA_TYPES or not await self._clean_quota_node(entity_type, entity):
            await self._tree.set_or_create(_config_path(entity_type, entity), encode_config(config))
        await self.notify_config_change(f"{entity_type}/{entity}")

    async def update_config(self, entity_type: str, entity: str, change: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
        """Writes what `change` makes of the current config, and notifies all brokers. Exceptions of `change` are passed on.

        The write is conditional on the version that was read: on a conflict `change` runs again. An empty quota config deletes its znode.
        Nothing is written if the config stays as it is. After a conflict the brokers are notified in any case: the session sends a write
        again if the connection was lost before its response, and then the conflict is with the first write of this method.
        """
        path = _config_path(entity_type, entity)
        is_retry = False
        while True:
            node = await self._tree.get(path)
            current = decode_config(f"{entity_type}/{entity}", node.data) if node is not None else {}
            try:
                changed = change(current)
            except KafkaError:
                if is_retry:
                    await self.notify_config_change(f"{entity_type}/{entity}")
                raise
            if changed == current:
                if is_retry:
                    await self.notify_config_change(f"{entity_type}/{entity}")
                return
            try:
                if node is None:
                    await self._tree.create_recursive(path, encode_config(changed))
                elif changed or entity_type not in _QUOTA_TYPES:
                    await self._tree.set_data(path, encode_config(changed), node.stat.version)
                else:
                    await self._remove_quota_node(entity_type, entity, node.stat.version)
            except (BadVersion, NodeExists, NoNode):
                is_retry = True
                continue
            await self.notify_config_change(f"{entity_type}/{entity}")
            return

    async def notify_config_change(self, entity_path: str) -> None:
        path = f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}"
        try:
            await self._tree.create(path, encode_config_change(entity_path), CreateMode.PERSISTENT_SEQUENTIAL)
        except NoNode:
            await self._tree.ensure(paths.CONFIG_CHANGES)
            await self._tree.create(path, encode_config_change(entity_path), CreateMode.PERSISTENT_SEQUENTIAL)

    async def _create_with_existing_config(self, topic: PlannedTopic, topic_id: Uuid) -> Uuid | KafkaError:
        """For a topic whose config outlived an earlier topic of that name. If the topic itself exists, nothing is changed."""
        (response,) = await self._tree.handle([_creation(topic, topic_id, config_exists=True)])
        if isinstance(response.error, NoNode):  # the existing node was not the config
            return TopicExists(f"Topic '{topic.name}' already exists.")
        return _outcome(response.error, topic, topic_id)

    async def _create_again(self, topic: PlannedTopic, topic_id: Uuid) -> Uuid | KafkaError:
        (response,) = await self._tree.handle([_creation(topic, topic_id, config_exists=False)])
        if isinstance(response.error, NodeExists):
            return await self._create_with_existing_config(topic, topic_id)
        return _outcome(response.error, topic, topic_id)

    async def _clean_quota_node(self, entity_type: str, entity: str) -> bool:
        """Deletes the node of an entity without children; for a user's client also the parents that held nothing else."""
        path = _config_path(entity_type, entity)
        if await self._children(path):
            return False
        user, separator, client = entity.rpartition(f"/{CLIENT}/")
        if separator and await self._children(_config_path(entity_type, f"{user}/{CLIENT}")) == [client]:
            path = _config_path(entity_type, f"{user}/{CLIENT}")
            if not await self.fetch_config(entity_type, user) and await self._children(_config_path(entity_type, user)) == [CLIENT]:
                path = _config_path(entity_type, user)
        await self._tree.delete_recursive(path)
        return True

    async def _remove_quota_node(self, entity_type: str, entity: str, version: int) -> None:
        """As `_clean_quota_node`, but undoes no concurrent change: each node is deleted only if it is as it was read. Raises BadVersion."""
        path = _config_path(entity_type, entity)
        try:
            await self._tree.delete(path, version)
        except NotEmpty:  # a user whose clients have quotas
            await self._tree.set_data(path, encode_config({}), version)
            return
        user, separator, _ = entity.rpartition(f"/{CLIENT}/")
        if not separator:
            return
        with suppress(NotEmpty, BadVersion):
            await self._tree.delete(_config_path(entity_type, f"{user}/{CLIENT}"))
            node = await self._tree.get(_config_path(entity_type, user))
            if node is not None and not decode_config(f"{entity_type}/{user}", node.data):
                await self._tree.delete(_config_path(entity_type, user), node.stat.version)

    async def _children(self, path: str) -> list[str]:
        children = await self._tree.children(path)
        return children.names if children is not None else []


def validate_assignment(assignment: Assignment) -> None:
    """Raises unless partitions 0, 1, 2 … have the same number of replicas, on different brokers."""
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        raise InvalidReplicaAssignment("All partitions should have the same number of replicas")
    if any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        raise InvalidReplicaAssignment(f"Duplicate replica assignment found: {dict(assignment)}")
    if sorted(assignment) != list(range(len(assignment))):
        raise InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")


def _creation(topic: PlannedTopic, topic_id: Uuid, *, config_exists: bool) -> Multi:
    """The config first: it must exist when the controller sees the topic."""
    config_path, config = _config_path(TOPIC, topic.name), encode_config(topic.config)
    partitions = {partition: ReplicaAssignment(tuple(replicas)) for partition, replicas in topic.assignment.items()}
    return Multi(
        [
            SetData(config_path, config) if config_exists else Create(config_path, config),
            Create(paths.topic(topic.name), encode_topic(TopicAssignment(partitions, None if topic_id == Uuid.ZERO else topic_id))),
        ]
    )


def _config_path(entity_type: str, entity: str) -> str:
    return paths.config_entity(f"{entity_type}/{entity}")


def _outcome(error: TreeError | None, topic: PlannedTopic, topic_id: Uuid) -> Uuid | KafkaError:
    """An error of the metadata store itself is not the client's fault: UNKNOWN_SERVER_ERROR."""
    if error is None:
        return topic_id
    if isinstance(error, NodeExists):
        return TopicExists(f"Topic '{topic.name}' already exists.")
    return KafkaError(f"{type(error).__name__}: {error}")
