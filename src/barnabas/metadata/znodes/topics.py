"""Topics: /brokers/topics/T (the replicas of its partitions) and /brokers/topics/T/partitions/P/state (leader and ISR).

The controller writes the first, the controller and partition leaders the second, each conditional on the version it last read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.metadata import paths
from barnabas.metadata.znodes import json_text, ordering
from barnabas.uuid import Uuid

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1  # after an unclean election, until the leader has recovered its log


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """`replicas` are all current replicas, including those being added and removed."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        return tuple(replica for replica in self.replicas if replica not in self.removing_replicas)

    @property
    def origin_replicas(self) -> tuple[int, ...]:
        return tuple(replica for replica in self.replicas if replica not in self.adding_replicas)

    def reassigned_to(self, target: Sequence[int]) -> ReplicaAssignment:
        """The assignment during a reassignment. The target comes first, so that its first replica is the preferred leader."""
        origin = self.origin_replicas
        replicas = tuple(dict.fromkeys((*target, *origin)))
        adding = tuple(replica for replica in replicas if replica not in origin)
        return ReplicaAssignment(replicas, adding, tuple(replica for replica in replicas if replica not in target))


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """Version 3 has topic ids, 2 adding and removing replicas, 1 only replicas. Kafka writes 3, also when there is no id yet."""

    partitions: Mapping[int, ReplicaAssignment]
    topic_id: Uuid | None = None
    version: int = 3


def encode_topic(topic: TopicAssignment) -> bytes:
    in_order = [int(number) for number in ordering.scala_mutable(str(number) for number in topic.partitions)]
    assignments = [(number, topic.partitions[number]) for number in in_order]
    adding = {str(number): assignment.adding_replicas for number, assignment in assignments if assignment.adding_replicas}
    removing = {str(number): assignment.removing_replicas for number, assignment in assignments if assignment.removing_replicas}
    replicas = {str(number): assignment.replicas for number, assignment in assignments}
    if topic.version == 1:
        return json_text.encode({"version": 1, "partitions": replicas})
    # The two possible orders of Scala's map with 8 buckets, which do not depend on the order of insertion.
    fields: dict[str, object] = {"partitions": replicas}
    if topic.topic_id is not None:
        fields["topic_id"] = str(topic.topic_id)
    fields["adding_replicas"] = {number: adding[number] for number in ordering.scala_mutable(adding)}
    fields["removing_replicas"] = {number: removing[number] for number in ordering.scala_mutable(removing)}
    fields["version"] = topic.version
    return json_text.encode(fields)


def decode_topic(name: str, data: bytes | None) -> TopicAssignment:
    fields = json_text.decode(paths.topic(name), data)
    partitions = fields.optional_nested("partitions")
    adding = fields.optional_nested("adding_replicas")
    removing = fields.optional_nested("removing_replicas")
    assignments = {}
    for number in partitions:
        if not number.isascii() or not number.isdecimal():
            raise fields.fault(f"{number!r} is not a partition")
        assignments[int(number)] = ReplicaAssignment(
            partitions.integers(number),
            adding.integers(number) if number in adding else (),
            removing.integers(number) if number in removing else (),
        )
    return TopicAssignment(assignments, _decode_topic_id(fields), fields.integer("version", 1))


def _decode_topic_id(fields: json_text.JsonObject) -> Uuid | None:
    text = fields.optional_text("topic_id")
    if text is None:
        return None
    try:
        return Uuid.from_string(text)
    except ValueError as error:
        raise fields.fault(str(error)) from error


@dataclass(frozen=True, slots=True)
class PartitionState:
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    leader_recovery_state: int = RECOVERED


def encode_partition_state(state: PartitionState) -> bytes:
    """Used for every change of leader or ISR: five fields in the order of Scala's map, six while the leader is recovering."""
    fields: dict[str, object] = {"controller_epoch": state.controller_epoch, "leader": state.leader, "version": 1}
    if state.leader_recovery_state != RECOVERED:
        fields["leader_recovery_state"] = state.leader_recovery_state
    fields["leader_epoch"] = state.leader_epoch
    fields["isr"] = state.isr
    return json_text.encode(fields)


def decode_partition_state(topic: str, partition: int, data: bytes | None) -> PartitionState:
    fields = json_text.decode(paths.topic_partition_state(topic, partition), data)
    recovery = fields.integer("leader_recovery_state", RECOVERED)
    if recovery not in (RECOVERED, RECOVERING):
        raise fields.fault(f"leader_recovery_state {recovery} is not known")
    return PartitionState(
        leader=fields.integer("leader"),
        leader_epoch=fields.integer("leader_epoch"),
        isr=fields.integers("isr"),
        controller_epoch=fields.integer("controller_epoch"),
        leader_recovery_state=recovery,
    )
