"""KIP-890: no log has an open transaction that its coordinator does not know and would never end, however late a request is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.transactions.transaction_verification import Support, TransactionVerification
from barnabas.broker.transactions.transactional_produce import TransactionalProduce
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.slices import Records
from barnabas.records.control import end_txn_marker
from barnabas.records.validation.validation import COORDINATOR
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import NOW, Appended, Replicas
from tests.unit.broker.verifying import ID, PRODUCER, transactional
from tests.unit.coordinator.coordinator_host import Time

PARTITIONS = [TopicPartition("orders", index) for index in range(2)]
FIRST_WITH_BUMP = 2  # the transaction version

# A step: what happens, to which partition, and by how many epochs its producer is behind.
KINDS = ["produce", "produce", "answer", "answer", "finish", "end", "mark", "tick"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(PARTITIONS), st.integers(0, 1)), min_size=10, max_size=40)


class Coordinator:
    """Of one transactional id, as it should be: it decides when it is asked, and its answers come when they come."""

    def __init__(self, bumps: bool) -> None:
        self.bumps = bumps  # an epoch with every end
        self.epoch = 0
        self.partitions: set[TopicPartition] = set()
        self.is_ending = False
        self.answers: list[Callable[[], None]] = []  # on their way

    def add_or_verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[TopicPartition],
        *,
        add: bool,
        on_done: Callable[[Mapping[TopicPartition, int]], None],
    ) -> None:
        codes = {partition: self._decide(partition, producer_epoch, add) for partition in partitions}
        self.answers.append(lambda: on_done(codes))

    def _decide(self, partition: TopicPartition, epoch: int, add: bool) -> int:
        if epoch != self.epoch:
            return int(ErrorCode.PRODUCER_FENCED)
        if self.is_ending:
            return int(ErrorCode.CONCURRENT_TRANSACTIONS)
        if add:
            self.partitions.add(partition)
        return 0 if partition in self.partitions else int(ErrorCode.TRANSACTION_ABORTABLE)


class World:
    def __init__(self, replicas: Replicas, bumps: bool) -> None:
        self.replicas = replicas
        self.coordinator = Coordinator(bumps)
        self.time = Time()
        self.verification = TransactionVerification(replicas.manager, self.coordinator, replicas.config, replicas.clock, self.time)
        self.sent = {(partition, epoch): 0 for partition in PARTITIONS for epoch in range(50)}
        for partition in PARTITIONS:
            replicas.lead(partition)

    def step(self, what: str, partition: TopicPartition, behind: int) -> None:
        coordinator = self.coordinator
        if what == "produce":
            self._produce(partition, max(0, coordinator.epoch - behind))
        elif what == "answer" and coordinator.answers:
            coordinator.answers.pop(0)()
        elif what in ("end", "finish") and coordinator.partitions:
            coordinator.is_ending = True
        if what in ("mark", "finish") and coordinator.is_ending:
            self._mark()
        if what == "tick":
            self.replicas.pass_time(20)
            self.time.advance(20)

    def _produce(self, partition: TopicPartition, epoch: int) -> None:
        if not self.coordinator.bumps and not self.coordinator.is_ending and epoch == self.coordinator.epoch:
            self.coordinator.partitions.add(partition)  # by its own AddPartitionsToTxn
        support = Support.ADD_PARTITION if self.coordinator.bumps else Support.GENERIC_ERROR
        data = transactional(self.sent[partition, epoch], epoch=epoch)

        def done(results: list[PartitionAppend]) -> None:
            self.sent[partition, epoch] += results[0].error == 0

        call = AppendCall([(partition, data)], done, timeout_ms=1000, required_acks=-1)
        produce = TransactionalProduce(self.replicas.manager, support, call)
        produce.begin(self.verification, ID)

    def _mark(self) -> None:
        coordinator = self.coordinator
        if coordinator.bumps:
            coordinator.epoch += 1
        version = FIRST_WITH_BUMP if coordinator.bumps else 0
        for partition in coordinator.partitions:
            appended = Appended()
            marker = Records(end_txn_marker(False, PRODUCER, coordinator.epoch, 0, NOW))
            self.replicas.manager.append_records(
                AppendCall(
                    [(partition, marker)], appended, timeout_ms=1000, required_acks=-1, origin=COORDINATOR, transaction_version=version
                )
            )
            assert appended.error == 0
        coordinator.partitions = set()
        coordinator.is_ending = False

    def hanging(self) -> list[TopicPartition]:
        hanging = []
        for partition in PARTITIONS:
            entry = self.replicas.log(partition).producers.last_entry(PRODUCER)
            if entry is not None and entry.current_txn_first_offset >= 0:
                is_known = partition in self.coordinator.partitions and entry.producer_epoch == self.coordinator.epoch
                hanging += [] if is_known else [partition]
        return hanging


@pytest.mark.parametrize("bumps", [False, True])
@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_no_transaction_is_open_that_its_coordinator_does_not_know_of(
    tmp_path_factory: pytest.TempPathFactory, bumps: bool, steps: list[tuple[str, TopicPartition, int]]
) -> None:
    replicas = Replicas(tmp_path_factory.mktemp("hanging"))
    world = World(replicas, bumps)
    try:
        for step in steps:
            world.step(*step)
            assert world.hanging() == []
        for _ in range(2 * len(steps)):  # and what was still under way
            world.step("answer", PARTITIONS[0], 0)
            world.step("tick", PARTITIONS[0], 0)
            assert world.hanging() == []
    finally:
        replicas.close()
