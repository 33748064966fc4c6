"""A conversation about transactions with one broker: each verb sends one request and takes down the answer.

A case is a function that is given a `Play`; what two brokers said to it is compared line by line. Answers that only say "not yet" are
asked for again, except where a case wants to see them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.messages.write_txn_markers_request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from barnabas.protocol.slices import Records
from barnabas.records.builder import BatchBuilder
from barnabas.uuid import Uuid
from tests.integration.transactions.wire import Connection, Names, error_codes, text_of

DEADLINE_S = 30
WAKE_S = 60
NOT_YET = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
PARTITIONS = 3
EARLIEST, LATEST = -2, -1
# The first versions in which a client leaves it to the broker to add partitions (KIP-890).
PRODUCE_V2, OFFSETS_V2, END_V2 = 12, 5, 5


@dataclass(frozen=True)
class Producer:
    """A producer as a broker knows it; `replace` makes zombies of it."""

    transactional_id: str | None
    id: int
    epoch: int


class Play:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self.lines: list[str] = []
        self.topic = topic
        self.bootstrap = bootstrap
        self._connection = Connection(bootstrap)
        self._names = Names()

    def close(self) -> None:
        self._connection.close()

    def id(self, name: str = "id") -> str:
        """A transactional id that no other case has."""
        return f"{self.topic}-{name}"

    def ask(self, request: Message, version: int, *, again: bool = True, told: bool = True) -> Any:
        """The answer, taken down; asked for until it is more than "not yet"."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                answer = self._connection.ask(request, version)
            except ConnectionError:
                self.tell(f"{type(request).__name__.removesuffix('Request')} v{version}: closed")
                self._connection.close()
                self._connection = Connection(self.bootstrap)
                return None
            if not again or not NOT_YET.intersection(error_codes(answer)):
                break
            assert time.monotonic() < deadline, f"{type(request).__name__} is answered with {answer} for ever"
            time.sleep(0.01)
        if told:
            self.tell(f"{type(request).__name__.removesuffix('Request')} v{version}: {text_of(answer, self._names)}")
        return answer

    def tell(self, line: str) -> None:
        self.lines.append(line)

    def init(
        self, name: str | None = "id", *, timeout_ms: int = 60_000, of: Producer | None = None, version: int = 5, again: bool = True
    ) -> Producer:
        """InitProducerId for the id of that name, or of a producer that wants a new epoch."""
        transactional_id = of.transactional_id if of else (self.id(name) if name is not None else None)
        request = InitProducerIdRequest(transactional_id, timeout_ms, of.id if of else -1, of.epoch if of else -1)
        answer = self.ask(request, version, again=again)
        return Producer(transactional_id, answer.producer_id, answer.producer_epoch)

    def add(
        self,
        who: Producer,
        partitions: Sequence[int] = (0,),
        *,
        topics: dict[str, list[int]] | None = None,
        version: int = 3,
        again: bool = True,
    ) -> Any:
        partitions_by_topic = topics if topics is not None else {self.topic: list(partitions)}
        listed = [AddPartitionsToTxnTopic(name, numbers) for name, numbers in partitions_by_topic.items()]
        if version < 4:
            return self.ask(AddPartitionsToTxnRequest([], who.transactional_id or "", who.id, who.epoch, listed), version, again=again)
        return self.add_many([AddPartitionsToTxnTransaction(who.transactional_id or "", who.id, who.epoch, False, listed)], version, again)

    def verify(self, who: Producer, partitions: Sequence[int] = (0,), *, version: int = 4) -> Any:
        listed = [AddPartitionsToTxnTopic(self.topic, list(partitions))]
        return self.add_many([AddPartitionsToTxnTransaction(who.transactional_id or "", who.id, who.epoch, True, listed)], version)

    def add_many(self, transactions: list[AddPartitionsToTxnTransaction], version: int = 4, again: bool = True) -> Any:
        """As brokers ask each other, for many producers at once."""
        return self.ask(AddPartitionsToTxnRequest(transactions), version, again=again)

    def produce(
        self,
        who: Producer,
        sequence: int = 0,
        *,
        partition: int = 0,
        count: int = 1,
        version: int = 11,
        transactional: bool = True,
        sent_as: str | None = "",
        control: bool = False,
        acks: int = -1,
        timestamp_ms: int | None = None,
        again: bool = True,
    ) -> Any:
        """One batch; `sent_as` is the transactional id of the request where it is not the producer's."""
        builder = BatchBuilder(
            producer_id=who.id, producer_epoch=who.epoch, base_sequence=sequence, transactional=transactional, control=control
        )
        at_ms = timestamp_ms or int(time.time() * 1000)  # like that of the markers, so that no segment ends between them
        for number in range(count):
            builder.append(at_ms, b"k%d" % number, b"v%d" % (sequence + number))
        data = [PartitionProduceData(partition, Records(builder.build()))]
        topic = TopicProduceData("", self.topic_id(), data) if version >= 13 else TopicProduceData(self.topic, Uuid.ZERO, data)
        transactional_id = who.transactional_id if sent_as == "" else sent_as
        return self.ask(ProduceRequest(transactional_id, acks, 30_000, [topic]), version, again=again)

    def add_offsets(self, who: Producer, group: str = "group", *, version: int = 4, again: bool = True) -> Any:
        request = AddOffsetsToTxnRequest(who.transactional_id or "", who.id, who.epoch, self.group(group))
        return self.ask(request, version, again=again)

    def commit_offsets(
        self,
        who: Producer,
        offsets: dict[int, int] | None = None,
        group: str = "group",
        *,
        topic: str | None = None,
        generation: int = -1,
        member: str = "",
        instance: str | None = None,
        metadata: str = "",
        version: int = 4,
        again: bool = True,
    ) -> Any:
        partitions = [
            TxnOffsetCommitRequestPartition(partition, offset, committed_metadata=metadata)
            for partition, offset in (offsets or {0: 7}).items()
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=who.transactional_id or "",
            group_id=self.group(group),
            producer_id=who.id,
            producer_epoch=who.epoch,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            topics=[TxnOffsetCommitRequestTopic(topic or self.topic, partitions)],
        )
        return self.ask(request, version, again=again)

    def group(self, name: str) -> str:
        return f"{self.topic}-{name}" if name else ""

    def end(self, who: Producer, committed: bool = True, *, version: int = 4, again: bool = True) -> Producer:
        """EndTxn, and until its markers are written; what comes back is the producer as it may go on."""
        answer = self.ask(EndTxnRequest(who.transactional_id or "", who.id, who.epoch, committed), version, again=again)
        if answer.error_code == ErrorCode.NONE:
            self.settle(who)
        if answer.error_code or answer.producer_id < 0:
            return who
        return replace(who, id=answer.producer_id, epoch=answer.producer_epoch)

    def settle(self, who: Producer, timeout_s: float = DEADLINE_S) -> None:
        """Waits for the markers: whoever asks to end a transaction is answered before they are written."""
        deadline = time.monotonic() + timeout_s
        request = DescribeTransactionsRequest([who.transactional_id or ""])
        while (state := self._connection.ask(request, 0).transaction_states[0].transaction_state).startswith("Prepare"):
            assert time.monotonic() < deadline, f"{who.transactional_id} stays {state}"
            time.sleep(0.01)

    def wait_for_state(self, who: Producer, state: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        request = DescribeTransactionsRequest([who.transactional_id or ""])
        while (now := self._connection.ask(request, 0).transaction_states[0].transaction_state) != state:
            assert time.monotonic() < deadline, f"{who.transactional_id} is {now} and not {state}"
            time.sleep(0.05)

    def describe(self, *transactional_ids: str) -> Any:
        return self.ask(DescribeTransactionsRequest(list(transactional_ids)), 0)

    def listed(self, request: ListTransactionsRequest, version: int = 2) -> None:
        """ListTransactions; what other cases have left is not shown."""
        answer = self.ask(request, version, told=False)
        answer.transaction_states = sorted(
            (
                transaction_state
                for transaction_state in answer.transaction_states
                if transaction_state.transactional_id.startswith(f"{self.topic}-")
            ),
            key=lambda state: str(state.transactional_id),
        )
        self.tell(f"ListTransactions v{version}: {text_of(answer, self._names)}")

    def producers(self, *partitions: int, topic: str | None = None) -> Any:
        return self.ask(DescribeProducersRequest([TopicRequest(topic or self.topic, list(partitions or (0,)))]), 0)

    def markers(self, *markers: WritableTxnMarker, version: int = 1) -> Any:
        return self.ask(WriteTxnMarkersRequest(list(markers)), version)

    def marker(
        self,
        who: Producer,
        committed: bool = True,
        *,
        partitions: Sequence[int] = (0,),
        topic: str | None = None,
        coordinator_epoch: int = 0,
    ) -> WritableTxnMarker:
        topics = [WritableTxnMarkerTopic(topic or self.topic, list(partitions))]
        return WritableTxnMarker(who.id, who.epoch, committed, topics, coordinator_epoch)

    def log(self, partition: int = 0) -> None:
        """All of a partition, as both kinds of readers are given it, and where they believe its end to be."""
        for isolation in (0, 1):
            topic = ListOffsetsTopic(self.topic, [ListOffsetsPartition(partition, timestamp=LATEST)])
            self.ask(ListOffsetsRequest(-1, isolation, [topic]), 5)
            fetch_topic = FetchTopic(self.topic, Uuid.ZERO, [FetchPartition(partition, partition_max_bytes=1 << 20)])
            self.ask(FetchRequest(max_wait_ms=0, max_bytes=1 << 20, isolation_level=isolation, topics=[fetch_topic]), 11)

    def offsets(self, group: str = "group", *, stable: bool = False) -> Any:
        topics = OffsetFetchRequestTopics(self.topic, Uuid.ZERO, list(range(PARTITIONS)))
        group_asked = OffsetFetchRequestGroup(self.group(group), topics=[topics])
        return self.ask(OffsetFetchRequest(groups=[group_asked], require_stable=stable), 8)

    def topic_id(self) -> Uuid:
        metadata_request = MetadataRequest([MetadataRequestTopic(name=self.topic)], allow_auto_topic_creation=False)
        found: Uuid = self._connection.ask(metadata_request, 12).topics[0].topic_id
        return found


def wake(bootstrap: str, topic: str) -> None:
    """Until a first transaction is through: the first who asks for a coordinator makes its topic, and its first markers take long."""
    deadline = time.monotonic() + WAKE_S
    with closing(Connection(bootstrap)) as connection:
        for kind in (0, 1):
            while connection.ask(FindCoordinatorRequest("", kind, ["anybody"]), 4).coordinators[0].error_code:
                assert time.monotonic() < deadline, f"{bootstrap} finds no coordinator of type {kind}"
                time.sleep(0.05)
    with closing(Play(bootstrap, topic)) as play:
        who = play.init("first")
        while play.produce(who, version=PRODUCE_V2).responses[0].partition_responses[0].error_code:
            assert time.monotonic() < deadline, play.lines[-1]
            time.sleep(0.05)
        play.end(who, version=END_V2)
        play.settle(who, WAKE_S)
