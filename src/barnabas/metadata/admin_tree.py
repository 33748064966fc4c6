"""Kafka's AdminZkClient: what administration writes into the tree, and how it finds out whether it may.

It stands between the admin requests of the broker (topics, partitions, configs) and the znodes. It only writes what is wanted; that it
happens is the business of the controller and of the brokers, who watch. It never decides about the values of configs: those who know the
settings check them before.

Many at once is the normal case: a request may create a thousand topics, and they travel in one batch, each atomic with its config.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from barnabas.metadata.errors import BadVersion, NodeExists, NoNode, TreeError
from barnabas.metadata.tree import Create, CreateMode, GetData, Multi, SetData
from barnabas.metadata.znodes.configs import DEFAULT_ENTITY, decode_config, encode_config, encode_config_change
from barnabas.metadata.znodes.topics import ReplicaAssignment, TopicAssignment, decode_topic, encode_topic
from barnabas.uuid import Uuid

TOPIC: Final = "topics"
BROKER: Final = "brokers"
CLIENT: Final = "clients"
USER: Final = "users"
IP: Final = "ips"
_QUOTA_TYPES: Final = (CLIENT, USER, IP)

Assignment = Mapping[int, tuple[int, ...]]  # partition -> brokers, the preferred leader first


class TopicAlreadyMarkedForDeletion(KafkaError):
    """Somebody asked for the deletion before; for whoever asks again that is as good as having done it."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    assignment: Assignment
    config: Mapping[str, str] = field(default_factory=dict)
    topic_id: Uuid | None = None  # None: a new one


class TopicNames:
    """The topics there are, as one request saw them: it checks each new name against them and against the new ones before it."""

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
        """That a topic of this name may be created."""
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

    async def topic_names(self) -> TopicNames:
        marked = await self._tree.children(paths.DELETE_TOPICS)
        return TopicNames(await self.all_topics(), marked.names if marked is not None else [])

    async def topic_exists(self, name: str) -> bool:
        return await self._tree.exists(paths.topic(name)) is not None

    async def is_marked_for_deletion(self, name: str) -> bool:
        return await self._tree.exists(paths.delete_topic(name)) is not None

    async def topic_assignment(self, name: str) -> TopicAssignment | None:
        return (await self.topic_assignments([name])).get(name)

    async def topic_assignments(self, names: Sequence[str]) -> dict[str, TopicAssignment]:
        """Those of the topics that there are."""
        answers = await self._tree.handle([GetData(paths.topic(name)) for name in names])
        found = {}
        for name, answer in zip(names, answers, strict=True):
            if not isinstance(answer.error, NoNode):
                found[name] = decode_topic(name, answer.value.data)
        return found

    async def create_topic(
        self,
        name: str,
        assignment: Assignment,
        config: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
        topic_id: Uuid | None = None,
    ) -> Uuid:
        """Its id. Raises TopicExists, InvalidTopic or InvalidReplicaAssignment; the values of the config are not looked at."""
        (await self.topic_names()).check_new(name)
        validate_assignment(assignment)
        if validate_only:
            return topic_id or Uuid.ZERO
        (created,) = await self.create_topics([NewTopic(name, assignment, config or {}, topic_id)])
        if isinstance(created, KafkaError):
            raise created
        return created

    async def create_topics(self, topics: Sequence[NewTopic], *, with_ids: bool = True) -> list[Uuid | KafkaError]:
        """The ids, or why not, in order. Names and assignments were checked by the caller: see `TopicNames`, `validate_assignment`.

        Without ids, as tools of older Kafkas make topics, the controller gives them theirs; the answer is then `Uuid.ZERO`.
        """
        ids = [(topic.topic_id or Uuid.random(self._random)) if with_ids else Uuid.ZERO for topic in topics]
        requests = [_creation(topic, topic_id, config_exists=False) for topic, topic_id in zip(topics, ids, strict=True)]
        answers = await self._tree.handle(requests)
        outcomes: list[Uuid | KafkaError] = []
        for topic, topic_id, answer in zip(topics, ids, answers, strict=True):
            if isinstance(answer.error, NodeExists):
                outcomes.append(await self._create_with_known_config(topic, topic_id))
            elif isinstance(answer.error, NoNode):
                await self._tree.ensure(paths.config_type(TOPIC))
                await self._tree.ensure(paths.TOPICS)
                outcomes.append(await self._create_again(topic, topic_id))
            else:
                outcomes.append(_outcome(answer.error, topic, topic_id))
        return outcomes

    async def delete_topic(self, name: str) -> None:
        """Marks it: the controller does the rest. Raises UnknownTopicOrPartition or TopicAlreadyMarkedForDeletion."""
        if not await self.topic_exists(name):
            raise UnknownTopicOrPartition(f"Topic `{name}` to delete does not exist")
        try:
            await self._tree.create_recursive(paths.delete_topic(name))
        except NodeExists:
            raise TopicAlreadyMarkedForDeletion(f"topic {name} is already marked for deletion") from None

    async def delete_topics(self, names: Sequence[str]) -> None:
        """Marks many that exist; one that is marked already stays so."""
        answers = await self._tree.handle([Create(paths.delete_topic(name)) for name in names])
        for answer in answers:
            if answer.error is not None and not isinstance(answer.error, NodeExists):
                raise answer.error

    async def add_partitions(
        self, name: str, plan: Callable[[TopicAssignment], Assignment], *, validate_only: bool = False
    ) -> TopicAssignment:
        """The topic with the partitions added that `plan` makes of what there is; whatever `plan` raises ends it.

        It is written with the version that was read, so that a reassignment or another increase in between is never undone: it is
        planned again.
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
        """What is set for the entity, empty if nothing. `entity` is sanitized: `T`, `0`, `<default>`, `alice/clients/c1`."""
        node = await self._tree.get(_config_path(entity_type, entity))
        return decode_config(f"{entity_type}/{entity}", node.data) if node is not None else {}

    async def fetch_configs(self, entity_type: str, entities: Sequence[str]) -> dict[str, dict[str, str]]:
        """Of many in one batch; of one that is not there an empty one."""
        answers = await self._tree.handle([GetData(_config_path(entity_type, entity)) for entity in entities])
        found: dict[str, dict[str, str]] = {}
        for entity, answer in zip(entities, answers, strict=True):
            missing = isinstance(answer.error, NoNode)
            found[entity] = {} if missing else decode_config(f"{entity_type}/{entity}", answer.value.data)
        return found

    async def fetch_all_configs(self, entity_type: str) -> dict[str, dict[str, str]]:
        return await self.fetch_configs(entity_type, await self._children(paths.config_type(entity_type)))

    async def change_topic_config(self, name: str, config: Mapping[str, str]) -> None:
        """Replaces all that is set for the topic. The values were checked by the caller."""
        topic_name.validate(name)
        if not await self.topic_exists(name):
            raise UnknownTopicOrPartition(f"Topic '{name}' does not exist.")
        await self.change_config(TOPIC, name, config)

    async def change_broker_config(self, broker_id: int | None, config: Mapping[str, str]) -> None:
        """Of one broker, or with None the default of all."""
        await self.change_config(BROKER, DEFAULT_ENTITY if broker_id is None else str(broker_id), config)

    async def change_config(self, entity_type: str, entity: str, config: Mapping[str, str]) -> None:
        """Writes the config of an entity (sanitized name) and tells all brokers. An empty one of quotas takes its node away."""
        if config or entity_type not in _QUOTA_TYPES or not await self._clean_quota_node(entity_type, entity):
            await self._tree.set_or_create(_config_path(entity_type, entity), encode_config(config))
        await self.notify_config_change(f"{entity_type}/{entity}")

    async def notify_config_change(self, entity_path: str) -> None:
        path = f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}"
        try:
            await self._tree.create(path, encode_config_change(entity_path), CreateMode.PERSISTENT_SEQUENTIAL)
        except NoNode:
            await self._tree.ensure(paths.CONFIG_CHANGES)
            await self._tree.create(path, encode_config_change(entity_path), CreateMode.PERSISTENT_SEQUENTIAL)

    async def _create_with_known_config(self, topic: NewTopic, topic_id: Uuid) -> Uuid | KafkaError:
        """For a topic whose config outlived an earlier topic of that name; if the topic itself exists, nothing is changed."""
        (answer,) = await self._tree.handle([_creation(topic, topic_id, config_exists=True)])
        if isinstance(answer.error, NoNode):  # it was not the config that existed
            return TopicExists(f"Topic '{topic.name}' already exists.")
        return _outcome(answer.error, topic, topic_id)

    async def _create_again(self, topic: NewTopic, topic_id: Uuid) -> Uuid | KafkaError:
        (answer,) = await self._tree.handle([_creation(topic, topic_id, config_exists=False)])
        if isinstance(answer.error, NodeExists):
            return await self._create_with_known_config(topic, topic_id)
        return _outcome(answer.error, topic, topic_id)

    async def _clean_quota_node(self, entity_type: str, entity: str) -> bool:
        """Takes away the node of an entity that has nothing below it, and of a user's client also what only held it."""
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

    async def _children(self, path: str) -> list[str]:
        children = await self._tree.children(path)
        return children.names if children is not None else []


def validate_assignment(assignment: Assignment) -> None:
    """The same number of different brokers for partitions 0, 1, 2 …"""
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        raise InvalidReplicaAssignment("All partitions should have the same number of replicas")
    if any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        raise InvalidReplicaAssignment(f"Duplicate replica assignment found: {dict(assignment)}")
    if sorted(assignment) != list(range(len(assignment))):
        raise InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")


def _creation(topic: NewTopic, topic_id: Uuid, *, config_exists: bool) -> Multi:
    """The config first: the controller must find it when it hears of the topic."""
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


def _outcome(error: TreeError | None, topic: NewTopic, topic_id: Uuid) -> Uuid | KafkaError:
    """What the tree itself could not do is not the client's fault: UNKNOWN_SERVER_ERROR."""
    if error is None:
        return topic_id
    if isinstance(error, NodeExists):
        return TopicExists(f"Topic '{topic.name}' already exists.")
    return KafkaError(f"{type(error).__name__}: {error}")
