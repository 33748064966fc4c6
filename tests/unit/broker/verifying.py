"""Partitions on real logs whose records of transactions are verified, with a coordinator of transactions that says what the test wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.transactions.transaction_verification import Errors, Guards, Support, TransactionVerification
from barnabas.protocol.slices import Records
from barnabas.records.control import end_txn_marker
from barnabas.records.validation.validation import COORDINATOR
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import NOW, TP, Appended, Replicas, records
from tests.unit.coordinator.coordinator_host import Time

PRODUCER = 9
ID = "payments"


class Question(NamedTuple):
    transactional_id: str
    producer_id: int
    epoch: int
    partitions: list[TopicPartition]
    add: bool


class ToldVerifier:
    """Answers with `code`, or with one for each partition, at once; or, while it is held, when it is let go."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.code = 0
        self.codes: dict[TopicPartition, int] = {}
        self.is_held = False
        self._held: list[Callable[[], None]] = []

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
        self.asked.append(Question(transactional_id, producer_id, producer_epoch, partitions, add))

        def answer() -> None:
            on_done({partition: self.codes.get(partition, self.code) for partition in partitions})

        if self.is_held:
            self._held.append(answer)
        else:
            answer()

    def let_go(self) -> None:
        """Of the oldest question."""
        self._held.pop(0)()


class Verified:
    """What came out of a verification, when it has come."""

    def __init__(self) -> None:
        self.errors: Errors | None = None
        self.guards: Guards = {}

    def __call__(self, errors: Errors, guards: Guards) -> None:
        assert self.errors is None, "it is answered once"
        self.errors, self.guards = errors, guards

    @property
    def is_done(self) -> bool:
        return self.errors is not None

    @property
    def code(self) -> int:
        """Of the one partition."""
        assert self.errors is not None
        return self.errors.get(TP, 0)


class Verifying:
    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.verifier = ToldVerifier()
        self.time = Time()
        self.verification = TransactionVerification(replicas.manager, self.verifier, replicas.config, replicas.clock, self.time)

    def verify(
        self,
        support: Support = Support.ADD_PARTITION,
        *,
        sequence: int = 0,
        epoch: int = 0,
        partitions: tuple[TopicPartition, ...] = (TP,),
        transactional_id: str = ID,
        retries: bool = False,
    ) -> Verified:
        verified = Verified()
        sequences = dict.fromkeys(partitions, sequence)
        self.verification.verify(support, transactional_id, PRODUCER, epoch, sequences, verified, retries=retries)
        return verified

    def append(self, verified: Verified, sequence: int = 0, *, epoch: int = 0, partition: TopicPartition = TP) -> int:
        """A batch of the transaction, with what its verification has brought; its error."""
        appended = Appended()
        data = transactional(sequence, epoch=epoch)
        call = AppendCall([(partition, data)], appended, timeout_ms=1000, required_acks=-1)
        call.verification_guards = verified.guards
        self.replicas.manager.append_records(call)
        return appended.error

    def end(self, *, epoch: int = 0, committed: bool = True, partition: TopicPartition = TP) -> int:
        """A marker, from past the coordinator; its error."""
        appended = Appended()
        marker = Records(end_txn_marker(committed, PRODUCER, epoch, 0, NOW))
        self.replicas.manager.append_records(
            AppendCall([(partition, marker)], appended, timeout_ms=1000, required_acks=-1, origin=COORDINATOR, transaction_version=0)
        )
        return appended.error

    def pass_time(self, ms: int) -> None:
        self.replicas.pass_time(ms)
        self.time.advance(ms)


def transactional(sequence: int = 0, count: int = 1, *, epoch: int = 0, producer_id: int = PRODUCER, **how: Any) -> Records:
    return records(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True, **how)
