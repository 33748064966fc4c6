"""A shard of consumer groups with a clock, a timer and topics of our own: records are replayed at once, as the runtime does."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from barnabas.coordinator.group.classic.classic_groups import Caller, ClassicGroups
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.consumer.consumer_groups import ConsumerGroups
from barnabas.coordinator.group.group_table import GroupTable
from barnabas.coordinator.group.regex_queue import RegexQueue
from barnabas.coordinator.group.shard import GroupCoordinatorShard
from barnabas.coordinator.metrics import CoordinatorMetrics, NoMetrics
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.protocol.coordinator_log import GROUP_RECORDS
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from barnabas.uuid import Uuid

NO_PRODUCER = -1
# Of a consumer group, all that follows from its records.
FIELDS = (
    "assignment_epoch",
    "group_epoch",
    "group_id",
    "has_partition_metadata_record",
    "held_bytes",
    "members",
    "metadata_hash",
    "num_classic_members",
    "resolved_regexes",
    "static_members",
    "subscribed_regexes",
    "subscribed_topics",
    "target_assignment",
)


def topic_id(number: int) -> Uuid:
    return Uuid(bytes(8) + number.to_bytes(8, "big"))


class Topics:
    def __init__(self, **counts: int) -> None:
        self.counts = dict(counts)
        self.ids = {name: topic_id(number) for number, name in enumerate(counts, 1)}
        self.racks: dict[str, list[str]] = {}

    def create(self, name: str, count: int) -> None:
        self.counts[name] = count
        self.ids[name] = topic_id(len(self.ids) + 1)

    def topic_id(self, name: str, /) -> Uuid | None:
        return self.ids[name] if name in self.counts else None

    def topic_name(self, wanted: Uuid, /) -> str | None:
        return next((name for name in self.counts if self.ids[name] == wanted), None)

    def partition_count(self, name: str, /) -> int | None:
        return self.counts.get(name)

    def partition_racks(self, name: str, partition: int, /) -> Collection[str]:
        return self.racks.get(name, [])

    def names(self) -> Collection[str]:
        return list(self.counts)


class Time:
    """Clock and timer in one; `advance` runs what became due and writes what it returns."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.due: dict[str, tuple[int, Callable[[], CoordinatorResult[None] | None]]] = {}

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now

    def schedule(self, key: str, delay_ms: int, action: Callable[[], CoordinatorResult[None] | None]) -> None:
        self.due[key] = (self.now + delay_ms, action)

    def defer(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.schedule("deferred", delay_ms, action)

    def cancel(self, key: str) -> None:
        self.due.pop(key, None)

    def is_scheduled(self, key: str) -> bool:
        return key in self.due


class World:
    def __init__(self, topics: Topics, config: GroupCoordinatorConfig | None = None) -> None:
        self.topics = topics
        self.time = Time()
        self.ids = 0
        self.log: list[CoordinatorRecord] = []
        self.config = config or GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0)
        self.shard, self.consumer = self.make_shard()

    def make_shard(self, metrics: CoordinatorMetrics | None = None) -> tuple[GroupCoordinatorShard, ConsumerGroups]:
        metrics = metrics or NoMetrics()
        regexes = RegexQueue(self.time.defer, self.time.now_ms, self.topics.names)

        def make_consumer(groups: GroupTable, classic: ClassicGroups) -> ConsumerGroups:
            return ConsumerGroups(groups, self.config, self.time, self.time, metrics, self.new_id, self.topics, classic, regexes)

        shard = GroupCoordinatorShard(self.config, self.time, self.time, metrics, self.new_id, make_consumer=make_consumer)
        assert isinstance(shard.consumer, ConsumerGroups)
        return shard, shard.consumer

    def new_id(self) -> str:
        self.ids += 1
        return f"id-{self.ids}"

    def write(self, result: CoordinatorResult[object] | CoordinatorResult[None] | None) -> None:
        if result is None:
            return
        for record in result.records:
            record = through_bytes(record)
            self.log.append(record)
            if result.replay:
                self.shard.replay(len(self.log), NO_PRODUCER, record)
        if result.on_appended is not None:
            result.on_appended(None)

    def advance(self, ms: int) -> None:
        end = self.time.now + ms
        while True:
            ready = sorted((when, key) for key, (when, _) in self.time.due.items() if when <= end)
            if not ready:
                break
            when, key = ready[0]
            self.time.now = max(self.time.now, when)
            _, action = self.time.due.pop(key)
            self.write(action())
        self.time.now = end

    def heartbeat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        version = fields.pop("version", 1)
        request = ConsumerGroupHeartbeatRequest(group_id="g", **fields)
        result = self.consumer.consumer_heartbeat(Caller("client", "/127.0.0.1", version), request)
        self.write(result)  # type: ignore[arg-type]
        assert result.response is not None
        return result.response

    def join(self, member_id: str, *names: str, **fields: object) -> ConsumerGroupHeartbeatResponse:
        fields.setdefault("subscribed_topic_names", list(names))
        return self.heartbeat(member_id=member_id, member_epoch=0, rebalance_timeout_ms=60_000, topic_partitions=[], **fields)

    def report(
        self, member_id: str, epoch: int, owned: dict[str, list[int]] | None = None, **fields: object
    ) -> ConsumerGroupHeartbeatResponse:
        partitions = None if owned is None else [TopicPartitions(self.topics.ids[name], list(some)) for name, some in owned.items()]
        return self.heartbeat(member_id=member_id, member_epoch=epoch, topic_partitions=partitions, **fields)

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.groups["g"]
        assert isinstance(group, ConsumerGroup)
        return group

    def assigned(self, member_id: str) -> dict[str, list[int]]:
        return self.named(self.group.members[member_id].assigned_partitions)

    def target(self, member_id: str) -> dict[str, list[int]]:
        return self.named(self.group.target_assignment[member_id])

    def named(self, partitions: object) -> dict[str, list[int]]:
        assert isinstance(partitions, dict)
        return {self.topics.topic_name(one) or str(one): sorted(some) for one, some in partitions.items()}

    def rebuilt(self, log: list[CoordinatorRecord] | None = None) -> GroupCoordinatorShard:
        """The shard as another broker would load it."""
        shard, _ = self.make_shard()
        for offset, record in enumerate(self.log if log is None else log):
            shard.replay(offset, NO_PRODUCER, record)
        return shard

    def compacted(self) -> list[CoordinatorRecord]:
        last = {record.key_bytes(): offset for offset, record in enumerate(self.log)}
        return [record for offset, record in enumerate(self.log) if last[record.key_bytes()] == offset]


def through_bytes(record: CoordinatorRecord) -> CoordinatorRecord:
    """As it comes back from the log."""
    kind, key = GROUP_RECORDS.read_key(record.key_bytes())
    data = record.value_bytes()
    return CoordinatorRecord(kind, key, None if data is None else GROUP_RECORDS.read_value(kind, data), record.value_version)


def state_of(group: object) -> dict[str, object]:
    """Everything of a consumer group that its records say or that follows from them."""
    assert isinstance(group, ConsumerGroup)
    if hasattr(group, "__dict__"):  # which it has not where it is compiled
        assert {name for name in vars(group) if not name.startswith("_")} == set(FIELDS)
    state: dict[str, object] = {name: getattr(group, name) for name in FIELDS}
    state["epochs"] = group._partition_epochs._epochs
    state["protocols"] = +group._classic_protocols
    state["assignors"] = +group._server_assignors
    return state
