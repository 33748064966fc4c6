"""The life of a group: members come, are killed and leave while a producer goes on, and what must hold of all that they told."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient

from tests.integration.groups.member import Member, Members, Seat

PARTITIONS = 6
RECORDS_PER_S = 200
WAIT_S = 40


@dataclass(frozen=True)
class Scenario:
    """Who is in a group: those that begin it, the one that joins them, and the one that is killed then (by its place)."""

    name: str
    strategy: str
    first: tuple[str, ...]  # a client's name, or client:strategy where members differ
    joins: str
    killed: int


@dataclass(frozen=True)
class Outcome:
    """What came of it. All three should be empty, and there should be no problem."""

    missing: list[tuple[int, int]]  # records, as (partition, offset), that were sent and that no member read
    held_by_two: list[tuple[int, str, str]]  # partitions that a member held before another had let go of them
    repeated: list[tuple[int, int]]  # records read twice though nobody that read them was killed
    problem: str = ""  # why it did not come to its end


def outcome_of(members: Sequence[Member], ends: dict[int, int]) -> Outcome:
    """`ends` are the end offsets of the partitions: all before them was sent."""
    counts = Counter(record for member in members for record in records_of(member))
    excused = {record for member in members if member.ended_ns is not None for record in records_of(member)}
    spans = sorted((span for member in members for span in spans_of(member)), key=lambda span: (span[0], span[1]))
    return Outcome(
        missing=[(partition, offset) for partition, end in ends.items() for offset in range(end) if (partition, offset) not in counts],
        held_by_two=[(one[0], one[3], next_[3]) for one, next_ in itertools.pairwise(spans) if one[0] == next_[0] and next_[1] < one[2]],
        repeated=[record for record, count in counts.items() if count > 1 and record not in excused],
    )


def records_of(member: Member) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, first, last in member.told.reads for offset in range(first, last + 1)]


def spans_of(member: Member) -> list[tuple[int, int, int, str]]:
    """When it held what: (partition, from, to, client)."""
    spans: list[tuple[int, int, int, str]] = []
    since: dict[int, int] = {}
    end_ns = member.ended_ns or time.monotonic_ns()
    for moment, held in [*member.told.holds, (end_ns, frozenset[int]())]:
        for partition in [one for one in since if one not in held]:
            spans.append((partition, since.pop(partition), moment, member.client))
        for partition in held:
            since.setdefault(partition, moment)
    return spans


def play(scenario: Scenario, seat: Seat, java_classes: Callable[[], Path]) -> Outcome:
    members = Members(seat, java_classes)
    try:
        _live(scenario, members, seat)
        return outcome_of(members.all, end_offsets(seat))
    except (AssertionError, OSError, confluent_kafka.KafkaException) as problem:
        return Outcome([], [], [], repr(problem).replace("\\n", "\n"))
    finally:
        members.end()


def _live(scenario: Scenario, members: Members, seat: Seat) -> None:
    with producing(seat):
        for who in scenario.first:
            add(members, who)
        settle(members, "the first members share the partitions")
        add(members, scenario.joins)
        settle(members, "the one that joined holds a share")
        members.all[scenario.killed].kill()
        settle(members, "the share of the one that was killed is taken over")
        for member in members.alive[:-1]:
            member.stop()
            settle(members, f"the share of {member.client}, which left, is taken over")
        members.alive[0].stop()
    add(members, scenario.first[0])
    wait_until_committed(members, seat)
    members.alive[0].stop()


def add(members: Members, who: str, instance: str = "-") -> Member:
    client, _, strategy = who.partition(":")
    return members.add(client, strategy=strategy or None, instance=instance)


def settle(members: Members, what: str) -> None:
    members.wait(what, lambda: members.settled(PARTITIONS), WAIT_S)


@contextmanager
def producing(seat: Seat) -> Generator[None, None, None]:
    """Records to all partitions in turn as long as the block runs, all of them acknowledged at its end."""
    stopping = threading.Event()
    producer = confluent_kafka.Producer({"bootstrap.servers": seat.bootstrap, "enable.idempotence": True, "linger.ms": 5})
    failures: list[str] = []

    def produce() -> None:
        for number in itertools.count():
            if stopping.wait(1 / RECORDS_PER_S):
                return
            producer.produce(seat.topic, str(number).encode(), partition=number % PARTITIONS, on_delivery=delivered)
            producer.poll(0)

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(str(error))

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
        left = producer.flush(WAIT_S)
    assert not failures and not left, f"{left} records not sent, {failures[:3]}"


def end_offsets(seat: Seat) -> dict[int, int]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": seat.bootstrap, "group.id": "none"})
    try:
        return {
            partition: consumer.get_watermark_offsets(confluent_kafka.TopicPartition(seat.topic, partition), WAIT_S)[1]
            for partition in range(PARTITIONS)
        }
    finally:
        consumer.close()


def committed(seat: Seat) -> dict[int, int]:
    """What the group has committed, as an administrator sees it."""
    admin = AdminClient({"bootstrap.servers": seat.bootstrap})
    consumer_group_offsets = admin.list_consumer_group_offsets([confluent_kafka.ConsumerGroupTopicPartitions(seat.group)])
    return {one.partition: one.offset for one in consumer_group_offsets[seat.group].result(WAIT_S).topic_partitions}


def wait_until_committed(members: Members, seat: Seat) -> None:
    ends = end_offsets(seat)
    last = {partition: end - 1 for partition, end in ends.items() if end}

    def all_read() -> bool:
        positions = {(partition, offset) for member in members.all for partition, _, offset in member.told.reads}
        return all(record in positions for record in last.items())

    members.wait("all records are read", all_read, WAIT_S)
    deadline = time.monotonic() + WAIT_S
    while (now := committed(seat)) != ends:
        assert time.monotonic() < deadline, f"{seat.group} has committed {now}, not {ends}\n{members.show()}"
