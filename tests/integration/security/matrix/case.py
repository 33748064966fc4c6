"""A case of the matrix: one request, the ACLs that are exactly right for it, and the principals that send it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME, Api
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.uuid import Uuid

CLUSTER_NAME = "kafka-cluster"
SUPER_USER = "admin"
UNLISTED = "unlisted"  # a user that no ACL names

# The columns. A case with several ACLs also has one column for each of them: `without read topic`.
ANONYMOUS = "anonymous"
AUTHENTICATED = "authenticated"
EXACT = "exact"
ELSEWHERE = "elsewhere"
DENIED = "denied"
SUPER = "super"
COLUMNS = (ANONYMOUS, AUTHENTICATED, EXACT, ELSEWHERE, DENIED, SUPER)
_WITHOUT = "without "

KAFKA = "4.2.0"
ZOOKEEPER_KAFKA = "3.9.1"


@dataclass(frozen=True)
class Acl:
    operation: AclOperation
    resource_type: ResourceType
    name: str
    is_denial: bool = False

    @property
    def elsewhere(self) -> Acl:
        """The same operation on another resource. There is one cluster only, so the other resource is a topic with the cluster's name."""
        if self.resource_type == ResourceType.CLUSTER:
            return replace(self, resource_type=ResourceType.TOPIC)
        return replace(self, name=f"{self.name}-elsewhere")

    def __str__(self) -> str:
        return f"{self.operation.name} {self.resource_type.name}".lower()


@dataclass
class World:
    """The resources that exist before the first request. Their ids differ from broker to broker."""

    topic_ids: dict[str, Uuid]
    producer_id: int = -1
    producer_epoch: int = -1
    token_id: str = ""
    token_hmac: bytes = b""


@dataclass(frozen=True)
class Cell:
    """One request of a case: its version and its column."""

    case: Case
    version: int
    column: str
    world: World

    @property
    def own(self) -> str:
        """The name of a resource that no other cell uses, for requests that create or delete it."""
        return _slug(f"{self.case.name} v{self.version} {self.column}")

    @property
    def user(self) -> str | None:
        """None for a client of the PLAINTEXT listener."""
        if self.column == ANONYMOUS:
            return None
        if self.column == EXACT and self.case.exact_user is not None:
            return self.case.exact_user
        return {AUTHENTICATED: UNLISTED, SUPER: SUPER_USER}.get(self.column) or _slug(f"{self.case.name} {self.column}")

    @property
    def granted(self) -> list[Acl]:
        """The ACLs of this cell's user, which holds them for the other versions of the case too."""
        exact = self.case.acls(self)
        if self.column == EXACT:
            return exact
        if self.column == ELSEWHERE:
            return [acl.elsewhere for acl in exact]
        if self.column == DENIED:
            return [*exact, *(replace(acl, is_denial=True) for acl in exact)]
        if self.column.startswith(_WITHOUT):
            return [acl for acl in exact if str(acl) != self.column.removeprefix(_WITHOUT)]
        return []

    def request(self) -> Message:
        return self.case.request(self)


@dataclass(frozen=True)
class Case:
    """`name` begins with the name of the API. `topics` are created for each cell before the matrix is played. The response of a case that
    `lists_everything` is reduced to the resources that exist before the first request. `exact_user` sends the request in the column EXACT
    where no ACL but a user is right. `kafka` is the version of Apache Kafka that answers all versions of the request. A request that is not
    `is_answered` has no response: its answer is whether the connection stays open."""

    name: str
    versions: Sequence[int]
    request: Callable[[Cell], Message]
    acls: Callable[[Cell], list[Acl]] = lambda cell: []
    topics: Callable[[Cell], list[str]] = lambda cell: []
    lists_everything: bool = False
    exact_user: str | None = None
    kafka: str | None = None
    is_answered: bool = True

    @property
    def api(self) -> Api:
        return BY_NAME[self.name.partition(" ")[0]]

    def cells(self, kafka: str, world: World) -> list[Cell]:
        """The cells that this version of Apache Kafka answers."""
        versions = [version for version in dict.fromkeys(self.versions) if (self.kafka or answered_by(self.api, version)) == kafka]
        return [Cell(self, version, column, world) for version in versions for column in self._columns(version)]

    def _columns(self, version: int) -> list[str]:
        exact = self.acls(Cell(self, version, EXACT, World({})))
        return [*COLUMNS, *(dict.fromkeys(f"{_WITHOUT}{acl}" for acl in exact) if len(exact) > 1 else ())]


# The lowest versions of Kafka 4.2 where they are not 0. The versions below are answered by Kafka 3.9.1, which is also the last to have the
# requests between controller and brokers.
_LOWEST = {
    "Produce": 3,
    "Fetch": 4,
    "ListOffsets": 1,
    "OffsetCommit": 2,
    "OffsetFetch": 1,
    "CreateTopics": 2,
    "DeleteTopics": 1,
    "OffsetForLeaderEpoch": 2,
    "WriteTxnMarkers": 1,
    "DescribeAcls": 1,
    "CreateAcls": 1,
    "DeleteAcls": 1,
    "DescribeConfigs": 1,
    "AlterReplicaLogDirs": 1,
    "DescribeLogDirs": 1,
    "CreateDelegationToken": 1,
    "RenewDelegationToken": 1,
    "ExpireDelegationToken": 1,
    "DescribeDelegationToken": 1,
}
_NOT_IN_4_2 = {"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown", "AlterPartition", "AllocateProducerIds"}


def answered_by(api: Api, version: int) -> str:
    return ZOOKEEPER_KAFKA if api.name in _NOT_IN_4_2 or version < _LOWEST.get(api.name, 0) else KAFKA


def on_topic(operation: AclOperation, name: str) -> Acl:
    return Acl(operation, ResourceType.TOPIC, name)


def on_group(operation: AclOperation, name: str) -> Acl:
    return Acl(operation, ResourceType.GROUP, name)


def on_cluster(operation: AclOperation) -> Acl:
    return Acl(operation, ResourceType.CLUSTER, CLUSTER_NAME)


def on_transactional_id(operation: AclOperation, name: str) -> Acl:
    return Acl(operation, ResourceType.TRANSACTIONAL_ID, name)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())
