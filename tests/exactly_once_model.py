"""A model of everything around the exactly-once writer: a broker's log and coordinator, and drivers that run batches, crash and come back.

The steps are those of the real thing (`pyspark_barnabas.exactly_once.steps`), taken one at a time in any order. Any process may be killed
between two steps, or go on as a zombie long after it was given up; whatever it had sent may still arrive, at any later time. Answers get
lost. Transactions time out. The log is compacted at any time, as far as tombstones allow. What read_committed readers see must be each row
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pyspark_barnabas.exactly_once.decision_log import DecisionLog
from pyspark_barnabas.exactly_once.errors import ExactlyOnceError
from pyspark_barnabas.exactly_once.records import Record, Slot, Tombstone, Transaction, decode, encode
from pyspark_barnabas.exactly_once.steps import (
    Append,
    Begun,
    End,
    Initialize,
    ListOpen,
    Names,
    ReadLog,
    Report,
    RunOf,
    Step,
    abort,
    begin,
    commit,
)

PREFIX = "p"
TIMEOUT_MS = 1000
LIMIT_MS = 500


class Fenced(Exception):
    """A produce of somebody whose epoch is over."""


@dataclass
class Coordinated:
    """What the coordinator knows of one transactional id, with transactions of the second version."""

    producer_id: int
    epoch: int = -1
    open_rows: list[int] | None = None
    opened_ms: int = 0
    committed: dict[int, bool] = field(default_factory=dict)  # how the transaction of each epoch ended


class Broker:
    """The decision log, the coordinator and the topic."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.log: list[tuple[bytes, bytes | None, int]] = []
        self._folded = DecisionLog()
        self.ids: dict[Slot, Coordinated] = {}
        self.visible: Counter[int] = Counter()

    def read(self) -> DecisionLog:
        """Who reads decides upon its next step before anything else happens: one for all will do."""
        return self._folded

    def append(self, records: tuple[Record | Tombstone, ...]) -> None:
        for record in records:
            key, value = encode(PREFIX, record)
            self.log.append((key, value, self.now_ms))
            self._folded.apply(key, decode(key, value), self.now_ms)

    def compact(self, up_to: int) -> None:
        """What a tombstone in the first part of the log says may go, goes."""
        last = {key: index for index, (key, _, _) in enumerate(self.log[:up_to])}
        kept = [entry for index, entry in enumerate(self.log[:up_to]) if last[entry[0]] == index and entry[1] is not None]
        self.log = kept + self.log[up_to:]
        self._folded = DecisionLog()
        for key, value, timestamp_ms in self.log:
            self._folded.apply(key, decode(key, value), timestamp_ms)

    def initialize(self, slot: Slot) -> Transaction:
        known = self.ids.setdefault(slot, Coordinated(len(self.ids)))
        self._end(known, False)
        known.epoch += 1
        return Transaction(slot, known.producer_id, known.epoch)

    def produce(self, transaction: Transaction, row: int) -> None:
        known = self.ids[transaction.slot]
        if known.epoch != transaction.epoch:
            raise Fenced
        if known.open_rows is None:
            known.open_rows, known.opened_ms = [], self.now_ms
        known.open_rows.append(row)

    def end(self, transaction: Transaction, commit: bool) -> bool:
        """Whether it was open, or had been ended so before."""
        known = self.ids[transaction.slot]
        if known.epoch == transaction.epoch and known.open_rows is not None:
            self._end(known, commit)
            return True
        return known.epoch == transaction.epoch + 1 and known.committed.get(transaction.epoch) is commit

    def _end(self, known: Coordinated, commit: bool) -> None:
        if known.open_rows is None:
            return
        if commit:
            self.visible.update(known.open_rows)
        known.committed[known.epoch] = commit
        known.open_rows = None
        known.epoch += 1

    def open(self) -> list[Transaction]:
        return [Transaction(slot, known.producer_id, known.epoch) for slot, known in self.ids.items() if known.open_rows is not None]

    def is_open(self, slot: Slot) -> bool:
        known = self.ids.get(slot)
        return known is not None and known.open_rows is not None

    def time_out(self) -> None:
        for known in self.ids.values():
            if known.open_rows is not None and self.now_ms - known.opened_ms > TIMEOUT_MS:
                self._end(known, False)


class Counting:
    def __init__(self) -> None:
        self.count = 0

    def nonce(self) -> str:
        self.count += 1
        return f"n{self.count}"


@dataclass
class Attempt:
    """A process that works at one thing: a task's attempt, or a driver's commit or abort."""

    work: Generator[Any, Any, Any]
    pending: Step | Produce | None = None  # what it has made up its mind to do next, on what it knew then
    result: Any = None
    failure: Exception | None = None
    ended: bool = False


@dataclass(frozen=True)
class Produce:
    transaction: Transaction
    row: int


def task(run: RunOf, partition: int, rows: list[int], names: Names) -> Generator[Step | Produce, Any, Report]:
    """As `stream_writer` has it: nothing is begun without rows."""
    if not rows:
        return Report()
    begun = yield from begin(run, partition, names)
    checksum = sum(row * row + 1 for row in rows)
    if not isinstance(begun, Begun):
        return Report(len(rows), checksum)
    for row in rows:
        yield Produce(begun.transaction, row)
    return Report(len(rows), checksum, begun.transaction, begun.freed)


class World:
    """Batches of a checkpoint, and up to two drivers that work at them."""

    def __init__(self, random: Random, batches: int, partitions: int = 2) -> None:
        self.random = random
        self.broker = Broker()
        self.names = Counting()
        self.partitions = partitions
        self.batches = [[batch * 100 + row for row in range(random.randrange(5))] for batch in range(batches)]
        self.committed = 0  # the checkpoint's commit log
        self.attempts: list[Attempt] = []
        self.frozen: list[Attempt] = []  # stopped for a long while, by the machine or the collector of garbage, and not dead
        self.in_flight: list[Step | Produce] = []  # sent by somebody who is not there any more, or was told that it failed
        self.drivers: list[Generator[None, None, None]] = []
        self.lost_answers = 0.05

    @property
    def finished(self) -> bool:
        return self.committed >= len(self.batches)

    # What happens next

    def chaos(self) -> None:
        """One event: mostly a step of somebody, sometimes a disaster."""
        dice = self.random.random()
        if self._hits_somebody():
            return
        if len(self.drivers) < 2 and dice < 0.05:
            self.drivers.append(self._driver())
        elif dice < 0.08 and self.drivers:
            self.drivers.pop(self.random.randrange(len(self.drivers)))  # its attempts go on as zombies, or are killed below
        elif dice < 0.11 and self.attempts:
            self._kill(self.random.choice(self.attempts))
        elif dice < 0.14 and self.in_flight:
            self._arrives_by_chance()
        elif dice < 0.16:
            self.broker.compact(self.random.randrange(len(self.broker.log) + 1))
        elif dice < 0.165:
            self.broker.now_ms += self.random.choice((50, 200, TIMEOUT_MS))
            self._expire()
        elif dice < 0.19 and self.attempts:
            self.frozen.append(self.attempts.pop(self.random.randrange(len(self.attempts))))
        elif dice < 0.2 and self.frozen:
            self._thaw()
        elif dice < 0.5 and self.drivers:
            self._drive(self.random.choice(self.drivers))
        elif self.attempts:
            self._step(self.random.choice(self.attempts))

    def peace(self) -> None:
        """One driver comes, and nothing goes wrong any more, but zombies and what is in flight still may come in between."""
        self.lost_answers = 0.0
        self.drivers = [self._driver()]
        for _ in range(20_000):
            if self.finished:
                break
            self._hits_somebody()
            if self.in_flight and self.random.random() < 0.02:
                self._arrives_by_chance()
            if self.frozen and self.random.random() < 0.02:
                self._thaw()
            if not self.drivers:
                self.drivers = [self._driver()]
            self._drive(self.drivers[0])
            if self.attempts:
                self._step(self.random.choice(self.attempts))
        assert self.finished, "the last driver did not come through"
        while self.frozen:
            self._thaw()
        while self.attempts:
            self._step(self.random.choice(self.attempts))
        for step in self.in_flight:
            self._arrive_late(step)
        self.broker.now_ms += 10 * TIMEOUT_MS
        self.broker.time_out()

    def _hits_somebody(self) -> bool:
        """What would do harm if it came just now soon comes: an InitProducerId of long ago, sent or about to be sent, for an id that
        another has a transaction open with. By chance alone it would hardly ever come in between."""
        for step in self.in_flight:
            if self._is_harmful(step) and self.random.random() < 0.15:
                self.in_flight.remove(step)
                self._arrive_late(step)
                return True
        for attempt in self.frozen:
            if self._is_harmful(attempt.pending) and self.random.random() < 0.15:
                self.frozen.remove(attempt)
                self.attempts.append(attempt)
                self._step(attempt)
                return True
        return False

    def _arrives_by_chance(self) -> None:
        """An InitProducerId mostly waits for a worse moment."""
        step = self.in_flight.pop(self.random.randrange(len(self.in_flight)))
        if isinstance(step, Initialize) and self.random.random() < 0.9:
            self.in_flight.append(step)
        else:
            self._arrive_late(step)

    def _is_harmful(self, step: Step | Produce | None) -> bool:
        return isinstance(step, Initialize) and self.broker.is_open(step.slot)

    def _thaw(self) -> None:
        self.attempts.append(self.frozen.pop(self.random.randrange(len(self.frozen))))

    def _expire(self) -> None:
        """What is decided is ended in time: drivers decide early enough, and brokers are not away for so long in this world."""
        if self.broker.read().undone is None:
            self.broker.time_out()

    # Drivers

    def _drive(self, driver: Generator[None, None, None]) -> None:
        try:
            next(driver)
        except StopIteration:
            if driver in self.drivers:
                self.drivers.remove(driver)

    def _driver(self) -> Generator[None, None, None]:
        """Spark's way: the batch after the last committed one, its tasks with retries and speculation, commit, or abort and the end."""
        while not self.finished:
            batch = self.committed
            run = RunOf("q", batch, f"token-{self.names.nonce()}", LIMIT_MS)
            reports = yield from self._stage(run, self.batches[batch])
            work = self._start(commit(run, [report for report in reports if report is not None], self.names))
            if None in reports:
                work.ended, work.failure = True, ExactlyOnceError("a task failed")
            while not work.ended:
                yield
            if work.failure is not None:
                ending = self._start(abort(run, [report for report in reports if report is not None], self.names))
                while not ending.ended:
                    yield
                return
            self.committed = max(self.committed, batch + 1)
            yield

    def _stage(self, run: RunOf, rows: list[int]) -> Generator[None, None, list[Report | None]]:
        spread: list[list[int]] = [[] for _ in range(self.partitions)]
        for row in rows:
            self.random.choice(spread).append(row)
        reports: list[Report | None] = [None] * self.partitions
        running = {number: [self._start(task(run, number, some, self.names))] for number, some in enumerate(spread)}
        tries = Counter(dict.fromkeys(running, 1))
        while running:
            yield
            for number in list(running):
                attempts = running[number]
                good = next((one for one in attempts if one.ended and one.failure is None and one.result is not None), None)
                if good is not None:
                    reports[number] = good.result
                    del running[number]
                elif all(one.ended for one in attempts) or (len(attempts) < 2 and self.random.random() < 0.02):
                    if tries[number] == 4:
                        return [None] * self.partitions
                    tries[number] += 1
                    attempts.append(self._start(task(run, number, spread[number], self.names)))
        return reports

    # Attempts

    def _start(self, work: Generator[Any, Any, Any]) -> Attempt:
        attempt = Attempt(work)
        self.attempts.append(attempt)
        return attempt

    def _kill(self, attempt: Attempt) -> None:
        """In the middle of a step, which may yet arrive."""
        if attempt.pending is not None and self.random.random() < 0.5:
            self.in_flight.append(attempt.pending)
        attempt.ended = True
        attempt.failure = ExactlyOnceError("killed")
        self.attempts.remove(attempt)

    def _step(self, attempt: Attempt) -> None:
        """Takes the step that is pending; with its answer the next one is decided upon at once, and taken whenever its turn comes."""
        if not attempt.ended:
            try:
                answer = None if attempt.pending is None else self._take(attempt.pending)
                attempt.pending = attempt.work.send(answer)
            except StopIteration as end:
                attempt.result, attempt.ended = end.value, True
            except (ExactlyOnceError, Fenced) as error:
                attempt.failure, attempt.ended = error, True
        if attempt.ended:
            self.attempts.remove(attempt)

    def _take(self, step: Step | Produce) -> Any:
        self.broker.now_ms += 1
        if isinstance(step, Append | Initialize) and self.random.random() < self.lost_answers:
            self.in_flight.append(step)
            return False if isinstance(step, Append) else None
        return self._arrive(step)

    def _arrive(self, step: Step | Produce) -> Any:
        broker = self.broker
        if isinstance(step, ReadLog):
            return broker.read()
        if isinstance(step, Append):
            broker.append(step.records)
            return True
        if isinstance(step, Initialize):
            return broker.initialize(step.slot)
        if isinstance(step, ListOpen):
            return broker.open()
        if isinstance(step, End):
            return [one for one in step.transactions if not broker.end(one, step.commit)]
        broker.produce(step.transaction, step.row)
        return None

    def _arrive_late(self, step: Step | Produce) -> None:
        """Nobody waits for the answer."""
        with suppress(Fenced):
            self._arrive(step)
