"""The workload whose metrics are compared: requests by hand, so that two brokers of any kind receive the same ones.

`of_clients` is what one broker receives from clients: records, bad records, old formats, groups and transactions. `of_cluster` is what
happens to replicas, and what a controller does. Broker 1 leads and coordinates everything, and is the controller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest
from barnabas.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.records.crc import crc32c
from tests.integration.transactions.wire import Connection

LEADER: Final = 1
GROUP: Final = "readers"
TRANSACTION: Final = "payments"
PARTITIONS_OF_INTERNAL_TOPICS: Final = 4
_WAIT_S: Final = 120
_NOT_YET: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
_TIME_MS: Final = int(time.time() * 1000)  # no retention and no roll by time concerns the records
_METADATA, _CREATE, _DELETE, _PRODUCE, _FETCH = 9, 6, 5, 9, 12


class Workload:
    """`brokers` has the address of each broker by its id."""

    def __init__(self, brokers: Mapping[int, str]) -> None:
        self._brokers = brokers
        self._all = sorted(brokers)

    def ask(self, request: Message, version: int, broker: int = LEADER) -> Any:
        with closing(Connection(self._brokers[broker])) as connection:
            return connection.ask(request, version)

    def ask_until_done(self, request: Message, version: int) -> Any:
        """The first response without an error that says "not yet". Requests like this one may be sent more than once."""
        deadline = time.monotonic() + _WAIT_S
        while _NOT_YET.intersection(error_codes(response := self.ask(request, version))):
            assert time.monotonic() < deadline, response
            time.sleep(0.05)
        return response

    def create(self, topic: str, assignments: Sequence[Sequence[int]], **configs: str) -> None:
        partitions = [CreatableReplicaAssignment(index, list(replicas)) for index, replicas in enumerate(assignments)]
        settings = [CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()]
        created = self.ask(CreateTopicsRequest([CreatableTopic(topic, -1, -1, partitions, settings)]), _CREATE)
        assert {row.error_code for row in created.topics} == {0}, created
        self.wait_in_sync(topic)

    def produce(self, topic: str, data: bytes, *, partition: int = 0, acks: int = -1, version: int = _PRODUCE, broker: int = LEADER) -> int:
        """The error code."""
        parts = [PartitionProduceData(partition, Records(data))]
        response = self.ask(ProduceRequest(None, acks, 30_000, [TopicProduceData(topic, partition_data=parts)]), version, broker)
        code: int = response.responses[0].partition_responses[0].error_code
        return code

    def fetch(self, topic: str, *, partition: int = 0, version: int = _FETCH, broker: int = LEADER) -> int:
        """The error code. All records are fetched at once."""
        parts = [FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=10_000_000)]
        request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=10_000_000, topics=[FetchTopic(topic, partitions=parts)])
        code: int = self.ask(request, version, broker).responses[0].partitions[0].error_code
        return code

    # -- waiting, by requests that are not compared

    def wait_in_sync(self, *topics: str, among: Sequence[int] = ()) -> None:
        """All replicas of these topics are in the ISR, and all brokers know it."""
        wait(lambda: all(self._is_in_sync(broker, topics) for broker in among or self._all), f"{topics} are in sync")

    def _is_in_sync(self, broker: int, topics: Sequence[str]) -> bool:
        known = {topic.name: topic for topic in self.metadata(broker).topics}
        return all(
            name in known
            and known[name].partitions
            and all(part.leader_id >= 0 and sorted(part.isr_nodes) == sorted(part.replica_nodes) for part in known[name].partitions)
            for name in topics
        )

    def metadata(self, broker: int = LEADER) -> Any:
        return self.ask(MetadataRequest(None, False), _METADATA, broker)

    def leader(self, topic: str, partition: int = 0) -> int:
        parts: list[Any] = next((row.partitions for row in self.metadata().topics if row.name == topic), [])
        return next((part.leader_id for part in parts if part.partition_index == partition), -1)

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        parts: list[Any] = next((row.partitions for row in self.metadata().topics if row.name == topic), [])
        return sorted(next((part.isr_nodes for part in parts if part.partition_index == partition), []))


def wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            if condition():
                return
        except OSError:
            pass  # a broker that starts
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def error_codes(response: Any) -> set[int]:
    """All codes in a response, however deep."""
    if isinstance(response, list):
        return set().union(*map(error_codes, response))
    if not isinstance(response, Message):
        return set()
    codes: set[int] = set()
    for name in response.field_names():
        value = getattr(response, name)
        codes |= {value} if name.endswith("error_code") else error_codes(value)
    return codes


def batch(count: int, *, key: bytes | None = b"key", size: int = 100, **options: Any) -> bytes:
    return build([(_TIME_MS, key, b"x" * size, ()) for _ in range(count)], **options)


def with_sequence(data: bytes, sequence: int) -> bytes:
    """A batch with another base sequence, which no builder would give it."""
    patched = bytearray(data)
    patched[53:57] = sequence.to_bytes(4, "big", signed=True)
    patched[17:21] = int(crc32c(bytes(patched), 21, len(patched))).to_bytes(4, "big")
    return bytes(patched)


def of_clients(work: Workload) -> None:
    """Everything that is compared happens once, or as often as it says here."""
    everybody = [sorted(work._all, key=lambda broker: broker != LEADER)]
    for topic in ("__consumer_offsets", "__transaction_state"):
        work.create(topic, everybody * PARTITIONS_OF_INTERNAL_TOPICS, cleanup_policy="compact", compression_type="producer")
    _records(work, everybody)
    _groups(work)
    _transactions(work)
    _bad_requests(work)


def _records(work: Workload, everybody: list[list[int]]) -> None:
    work.create("orders", everybody * 2)
    work.create("small", everybody, max_message_bytes="1000")
    work.create("compacted", everybody, cleanup_policy="compact")
    work.create("flushed", everybody, flush_messages="1")
    for _ in range(5):
        assert work.produce("orders", batch(3)) == ErrorCode.NONE
    assert work.produce("orders", batch(7), partition=1, acks=1) == ErrorCode.NONE
    assert work.produce("flushed", batch(1)) == ErrorCode.NONE
    assert work.produce("compacted", batch(2)) == ErrorCode.NONE
    damaged = bytearray(batch(2))
    damaged[-1] ^= 1
    assert work.produce("orders", bytes(damaged)) == ErrorCode.CORRUPT_MESSAGE
    assert work.produce("small", batch(20)) == ErrorCode.MESSAGE_TOO_LARGE
    assert work.produce("compacted", batch(3, key=None)) == ErrorCode.INVALID_RECORD
    assert work.produce("orders", batch(1, base_offset=5)) == ErrorCode.INVALID_RECORD  # a producer's batch begins at 0
    assert work.produce("orders", batch(1, producer_id=7, producer_epoch=0, base_sequence=3)) == ErrorCode.NONE
    assert work.produce("orders", with_sequence(batch(1, producer_id=8, producer_epoch=0, base_sequence=0), -1)) == ErrorCode.INVALID_RECORD
    assert work.produce("unknown", batch(1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for _ in range(3):
        assert work.fetch("orders") == ErrorCode.NONE
    assert work.fetch("orders", partition=1) == ErrorCode.NONE
    assert work.fetch("unknown") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    deleted = DeleteRecordsTopic("orders", [DeleteRecordsPartition(1, 4)])
    assert error_codes(work.ask(DeleteRecordsRequest([deleted], 30_000), 2)) == {0}


def of_old_clients(work: Workload) -> None:
    """Requests of versions that Kafka 4 does not serve any more: records are converted for them."""
    work.create("old", [sorted(work._all, key=lambda broker: broker != LEADER)])
    assert work.produce("old", batch(4, magic=1), version=2) == ErrorCode.NONE
    assert work.produce("old", batch(1, magic=1) + batch(1, magic=0), version=2) != ErrorCode.NONE
    assert work.fetch("old", version=2) == ErrorCode.NONE


def _groups(work: Workload) -> None:
    work.ask_until_done(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4)
    offsets = [OffsetCommitRequestPartition(0, 2), OffsetCommitRequestPartition(1, 1)]
    commit = OffsetCommitRequest(GROUP, topics=[OffsetCommitRequestTopic("orders", partitions=offsets)])
    work.ask_until_done(commit, 8)
    unused = OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(1)])
    assert error_codes(work.ask(OffsetDeleteRequest(GROUP, [unused]), 0)) == {0}
    member = JoinGroupRequest(
        GROUP, 30_000, 30_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")]
    )
    with ExitStack() as stack:
        connection = stack.enter_context(closing(Connection(work._brokers[LEADER])))
        joined = connection.ask(member, 3)
        assert joined.error_code == 0, joined
        assigned = [SyncGroupRequestAssignment(joined.member_id, b"")]
        synced = connection.ask(SyncGroupRequest(GROUP, joined.generation_id, joined.member_id, assignments=assigned), 2)
        assert synced.error_code == 0, synced
        left = connection.ask(LeaveGroupRequest(GROUP, members=[MemberIdentity(joined.member_id)]), 4)
        assert left.error_code == 0, left


def _transactions(work: Workload) -> None:
    work.ask_until_done(FindCoordinatorRequest(key_type=1, coordinator_keys=[TRANSACTION]), 4)
    begun = work.ask_until_done(InitProducerIdRequest(TRANSACTION, 60_000), 4)
    for sequence in range(2):
        topics = [AddPartitionsToTxnTopic("orders", [0])]
        work.ask_until_done(AddPartitionsToTxnRequest([], TRANSACTION, begun.producer_id, begun.producer_epoch, topics), 3)
        data = batch(1, producer_id=begun.producer_id, producer_epoch=begun.producer_epoch, base_sequence=sequence, transactional=True)
        parts = [PartitionProduceData(0, Records(data))]
        produced = ProduceRequest(TRANSACTION, -1, 30_000, [TopicProduceData("orders", partition_data=parts)])
        answer = work.ask(produced, _PRODUCE)
        assert error_codes(answer) == {0}, answer
        ended = work.ask_until_done(EndTxnRequest(TRANSACTION, begun.producer_id, begun.producer_epoch, sequence == 0), 3)
        assert ended.error_code == 0, ended


def _bad_requests(work: Workload) -> None:
    assert error_codes(work.ask(DeleteTopicsRequest(topic_names=["unknown"], timeout_ms=60_000), _DELETE)) == {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    unknown = OffsetCommitRequest(
        "strangers", 7, "nobody", topics=[OffsetCommitRequestTopic("orders", partitions=[OffsetCommitRequestPartition(0, 1)])]
    )
    work.ask_until_done(unknown, 8)


class Cluster(Workload):
    """`stop`, which kills, and `start` are those of the cluster."""

    def __init__(self, brokers: Mapping[int, str], stop: Callable[[int], None], start: Callable[[int], None]) -> None:
        super().__init__(brokers)
        self.stop = stop
        self.start = start

    def wait_for_brokers(self) -> None:
        """All brokers know each other and the controller."""

        def know(broker: int) -> bool:
            answer = self.metadata(broker)
            return sorted(row.node_id for row in answer.brokers) == self._all and answer.controller_id == LEADER

        wait(lambda: all(know(broker) for broker in self._all), "all brokers know each other, and broker 1 is the controller")


def of_cluster(work: Cluster) -> None:
    """Topics are created, moved and deleted; brokers fail and return; a leader is elected uncleanly."""
    work.wait_for_brokers()
    work.create("doomed", [[1, 2, 3]] * 2)
    assert error_codes(work.ask(DeleteTopicsRequest(topic_names=["doomed"], timeout_ms=60_000), _DELETE)) == {0}
    wait(lambda: all("doomed" not in {topic.name for topic in work.metadata(broker).topics} for broker in work._all), "doomed is deleted")
    _move(work)
    _fail_and_return(work)
    _elect_uncleanly(work)


def _move(work: Cluster) -> None:
    work.create("moved", [[1, 2]])
    for _ in range(4):
        assert work.produce("moved", batch(10)) == ErrorCode.NONE
    target = ReassignableTopic("moved", [ReassignablePartition(0, [1, 3])])
    assert error_codes(work.ask(AlterPartitionReassignmentsRequest(60_000, topics=[target]), 0)) == {0}
    wait(lambda: not work.ask(ListPartitionReassignmentsRequest(), 0).topics, "moved is moved")
    wait(lambda: all(_replicas(work, broker, "moved") == [1, 3] for broker in work._all), "all brokers know it")


def _replicas(work: Workload, broker: int, topic: str) -> list[int]:
    return next((list(row.partitions[0].replica_nodes) for row in work.metadata(broker).topics if row.name == topic), [])


def _fail_and_return(work: Cluster) -> None:
    """Broker 2 leads a partition, fails and returns, and is elected again as its preferred leader."""
    work.create("theirs", [[2, 1, 3]])
    work.stop(2)
    wait(lambda: work.leader("theirs") == 1, "broker 1 leads")
    work.start(2)
    wait(lambda: _are_in_sync_without(work, 0), "broker 2 is in sync")
    preferred = ElectLeadersRequest(0, [TopicPartitions("theirs", [0])])
    assert error_codes(work.ask(preferred, 2)) == {0}
    work.wait_in_sync("theirs", "orders", "__consumer_offsets")


def _are_in_sync_without(work: Workload, stopped: int) -> bool:
    """All replicas but those of this broker are in the ISR, where there is a leader."""
    parts = [part for topic in work.metadata().topics for part in topic.partitions if part.leader_id >= 0]
    return all(set(part.isr_nodes) >= set(part.replica_nodes) - {stopped} for part in parts)


def _elect_uncleanly(work: Cluster) -> None:
    """Broker 3 is the only one in sync and fails. Broker 2 becomes the leader when the topic allows it."""
    work.create("unclean", [[3, 2]])
    work.stop(2)
    wait(lambda: work.isr("unclean") == [3], "broker 3 is alone in sync")
    assert work.produce("unclean", batch(1), acks=1, broker=3) == ErrorCode.NONE
    work.stop(3)
    wait(lambda: work.leader("unclean") == -1, "unclean has no leader")
    work.start(2)
    wait(lambda: _are_in_sync_without(work, 3), "broker 2 is in sync again")
    setting = AlterConfigsResource(2, "unclean", [AlterableConfig("unclean.leader.election.enable", 0, "true")])
    assert error_codes(work.ask(IncrementalAlterConfigsRequest([setting]), 1)) == {0}
    wait(lambda: work.leader("unclean") == 2, "broker 2 leads unclean")
