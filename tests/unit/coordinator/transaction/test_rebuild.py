"""A coordinator is a fold over its log, and a transaction ends once: after any sequence of requests, failures and crashes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordinator.transaction.shard import ID_BYTES
from barnabas.coordinator.transaction.transaction_metadata import TransactionMetadata
from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.errors import NotEnoughReplicas
from barnabas.protocol.coordinator_log import TRANSACTION_RECORDS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.records.batch import read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.reader import read_records
from barnabas.topic_partition import TopicPartition
from tests.unit.coordinator.coordinator_host import Answers, MemoryLog
from tests.unit.coordinator.transaction.test_init_producer_id import LAST
from tests.unit.coordinator.transaction.transaction_host import TransactionHost

KINDS = [
    *("init", "init", "init_expected", "init_stale", "add", "add", "add_stale", "add_offsets", "verify"),
    *("commit", "commit", "abort", "commit_old", "abort_old", "commit_stale", "time", "time", "exhaust"),
    *("refuse", "accept", "hold", "release_log", "hold_markers", "release_markers", "fail_marker", "crash", "lose_uncommitted"),
]
STEP = st.tuples(st.sampled_from(KINDS), st.integers(0, 3), st.sampled_from(["x", "y"]))
STEPS = st.lists(STEP, min_size=20, max_size=100)  # short ones never get anywhere, and are found by shrinking
TOPICS = [TopicPartition("t", number) for number in range(4)]


class World:
    """Clients that do what the steps say with what they were last told, a log and partitions that fail, brokers that crash."""

    def __init__(self) -> None:
        self.host = TransactionHost()
        self.epoch = 5
        self.given: dict[str, list[tuple[int, int]]] = {"x": [], "y": []}  # producer ids and epochs, in the order they were given
        self.told_to_zombies: list[Answers] = []  # when they wanted to go on
        self.ended: list[tuple[str, bool]] = []  # what clients were told has ended, and whether it was committed

    def run(self, kind: str, number: int, name: str) -> None:
        host = self.host
        current, stale = self._producer(name, 0), self._producer(name, number)
        if kind.startswith("init"):
            self._init(name, {"init": (-1, -1), "init_expected": current, "init_stale": stale}[kind])
        elif kind in ("add", "add_stale"):
            self._add(name, stale if kind == "add_stale" else current, number)
        elif kind == "add_offsets" and host.log.held_at is None:
            host.add_offsets(current, transactional_id=name)
        elif kind == "verify" and host.log.held_at is None:
            host.verify(current, *TOPICS, transactional_id=name)
        elif kind in ("commit", "abort", "commit_old", "abort_old", "commit_stale"):
            self._end(name, stale if kind == "commit_stale" else current, kind.startswith("commit"), 4 if kind.endswith("old") else 5)
        elif kind == "time":
            host.time.advance([10, 1_000, 11_000, 80_000][number])
        elif kind == "exhaust":
            self._exhaust(name)
        else:
            self._fault(kind, number)

    def _fault(self, kind: str, number: int) -> None:
        host = self.host
        if kind in ("refuse", "accept"):
            host.log.error = NotEnoughReplicas() if kind == "refuse" else None
        elif kind == "hold":
            host.hold()
        elif kind == "release_log":
            host.commit_log()
        elif kind == "hold_markers":
            host.partitions.held = True
        elif kind == "release_markers":
            host.partitions.release()
        elif kind == "fail_marker":
            host.partitions.codes = {TOPICS[number]: int(ErrorCode.NOT_LEADER_OR_FOLLOWER)} if number else {}
        elif kind == "crash":
            self._crash()
        elif kind == "lose_uncommitted" and host.log.held_at is not None:
            committed = host.log.held_at
            host.coordinator.on_resignation(0, None)
            host.log.batches[0] = [batch for batch in host.log.batches.get(0, []) if batch[1] <= committed]
            self._crash()

    def _crash(self) -> None:
        self.epoch += 1
        self.host.partitions.held = False
        self.host.partitions._waiting.clear()
        self.host.log.held_at = None
        self.host.log.error = None
        self.host = self.host.again(self.epoch)

    def _producer(self, name: str, back: int) -> tuple[int, int]:
        given_before = self.given[name]
        return given_before[max(len(given_before) - 1 - back, 0)] if given_before else (-1, -1)

    def _exhaust(self, name: str) -> None:
        """As if there had been thousands of transactions."""
        shard, log = self.host.shard, self.host.log
        transaction = shard.visible(name)
        if (
            transaction is None
            or not transaction.state.is_settled
            or shard._is_busy(name)
            or log.held_at is not None
            or log.error is not None
        ):
            return
        later = transaction.with_epoch(max(LAST - 1, transaction.producer_epoch), -1, transaction.timeout_ms, self.host.time.now)
        shard._write(lambda: shard._step(transaction, later, None))
        self.given[name].append((later.producer_id, later.producer_epoch))

    def _init(self, name: str, expected: tuple[int, int]) -> None:
        def answered(response: InitProducerIdResponse) -> None:
            if response.error_code == 0:
                self.given[name].append((response.producer_id, response.producer_epoch))

        self.host.asked_init(name, expected=expected, respond=answered)

    def _add(self, name: str, producer: tuple[int, int], number: int) -> None:
        is_zombie = producer < self._producer(name, 0)
        answers = self.host.asked_add(producer, TOPICS[number], transactional_id=name, version=3 + number % 2)
        if is_zombie:
            self.told_to_zombies.append(answers)

    def _end(self, name: str, producer: tuple[int, int], committed: bool, version: int) -> None:
        def answered(response: EndTxnResponse) -> None:
            if response.error_code == 0:
                self.ended.append((name, committed))
                if version >= 5:
                    self.given[name].append((response.producer_id, response.producer_epoch))

        self.host.asked_end(producer, committed=committed, transactional_id=name, version=version, respond=answered)

    def heal(self) -> None:
        """Nothing fails any more, and enough time passes for everything that was left undone."""
        self.host.partitions.codes = {}
        self.host.log.error = None
        self.host.commit_log()
        self.host.partitions.release()
        self.host.time.advance(100_000)


def history(log: MemoryLog) -> Iterator[tuple[str, TransactionMetadata | None]]:
    """What the log says, record by record."""
    for _, _, data in log.batches.get(0, []):
        for batch in read_batches(data):
            for record in read_records(data, batch):
                assert record.key is not None
                record_type, key = TRANSACTION_RECORDS.read_key(record.key)
                name: str = key.transactional_id  # type: ignore[attr-defined]
                value: Any = None if record.value is None else TRANSACTION_RECORDS.read_value(record_type, record.value)
                yield name, None if value is None else TransactionMetadata.of_record(name, value)


def compacted(log: MemoryLog) -> MemoryLog:
    """The last record of each key, each in a batch of its own, at its offset."""
    last: dict[bytes | None, Any] = {}
    for _, _, data in log.batches.get(0, []):
        for batch in read_batches(data):
            for record in read_records(data, batch):
                last.pop(record.key, None)
                last[record.key] = record
    result = MemoryLog()
    for record in last.values():
        builder = BatchBuilder(base_offset=record.offset)
        builder.append_at(record.offset, record.timestamp, record.key, record.value)
        result.batches.setdefault(0, []).append((record.offset, record.offset + 1, builder.build()))
    return result


def logged(host: TransactionHost) -> dict[str, TransactionMetadata]:
    return {name: transaction._replace(last_producer_epoch=-1) for name, transaction in host.shard.transactions.items()}


def world_after(steps: list[tuple[str, int, str]]) -> World:
    world = World()
    for step in steps:
        world.run(*step)
    return world


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_the_log_gives_the_same_state(steps: list[tuple[str, int, str]]) -> None:
    world = world_after(steps)
    assert world.host.shard.memory.used == sum(ID_BYTES + len(name) for name in world.host.shard.transactions)
    for log in (world.host.log, compacted(world.host.log)):
        copy = MemoryLog()
        copy.batches = {0: list(log.batches.get(0, []))}
        assert logged(TransactionHost(copy)) == logged(world.host)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_no_producer_is_given_an_epoch_that_is_older_than_another_had_before(steps: list[tuple[str, int, str]]) -> None:
    for given_in_order in world_after(steps).given.values():
        assert given_in_order == sorted(given_in_order)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_no_producer_goes_on_after_another_was_given_a_newer_epoch(steps: list[tuple[str, int, str]]) -> None:
    assert all(answers.one != 0 for answers in world_after(steps).told_to_zombies)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_every_transaction_ends_once_and_everywhere_the_same(steps: list[tuple[str, int, str]]) -> None:
    world = world_after(steps)
    world.heal()
    states: dict[str, TransactionState] = {}
    decided: set[tuple[str, int, int, bool, TopicPartition]] = set()
    outcomes: set[tuple[str, bool]] = set()
    for name, transaction in history(world.host.log):
        if transaction is None:
            states.pop(name, None)
            continue
        assert transaction.state.may_follow(states.get(name, TransactionState.EMPTY))  # so: one decision, then its completion
        states[name] = transaction.state
        if transaction.state.is_prepared:
            committed = transaction.state is TransactionState.PREPARE_COMMIT
            outcomes.add((name, committed))
            decided |= {
                (name, transaction.producer_id, transaction.producer_epoch, committed, partition) for partition in transaction.partitions
            }
    assert not any(state.is_prepared for state in states.values())
    marked = {
        (m.transactional_id, m.producer_id, m.producer_epoch, m.committed, partition) for partition, m in world.host.partitions.written
    }
    assert marked == decided  # none is missing, and none was written for what the log does not have
    assert set(world.ended) <= outcomes


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_from_version_5_on_the_epoch_of_a_marker_is_newer_than_all_that_was_written_before(steps: list[tuple[str, int, str]]) -> None:
    world = world_after(steps)
    world.heal()
    newest: dict[tuple[str, int], int] = {}
    for name, transaction in history(world.host.log):
        if transaction is None:
            continue
        producer = (name, transaction.producer_id)
        if transaction.state.is_prepared and transaction.client_transaction_version >= 2 and newest[producer] <= LAST:
            assert transaction.producer_epoch > newest[producer]
        assert transaction.producer_epoch >= newest.get(producer, -1)
        newest[producer] = transaction.producer_epoch
