"""Our assignors against Apache Kafka's own classes, on random groups: the same partitions to the same members, and the same bytes."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas.client.consumer.assignors import Assignment, Subscription, make_assignors
from barnabas.client.consumer.assignors.assignor import AbstractPartitionAssignor
from barnabas.client.consumer.assignors.protocol import serialize_assignment, serialize_subscription
from barnabas.client.consumer.assignors.sticky_assignor import write_user_data
from barnabas.topic_partition import TopicPartition
from tests import kafka

pytestmark = pytest.mark.java

ORACLE = Path(__file__).parents[1] / "java" / "AssignorOracle.java"
CASES = 400  # of each assignor
NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")

Result = dict[str, list[TopicPartition]]


@dataclass(frozen=True)
class Case:
    assignor: str
    topics: dict[str, list[frozenset[str]]]
    members: dict[str, Subscription]

    def line(self) -> str:
        topics = ",".join(
            f"{topic}={'/'.join('+'.join(sorted(racks)) for racks in partition_racks)}" for topic, partition_racks in self.topics.items()
        )
        return f"{self.assignor}\t{topics}\t{';'.join(_member(name, one) for name, one in self.members.items())}"

    @property
    def exact(self) -> bool:
        """Where subscriptions differ, Kafka's sticky assignors pick among equal partitions of a topic by the order of a hash set.

        The cooperative one then holds back whichever it picked if that has an owner, so that not even the counts are determined.
        """
        topics = [set(one.topics) for one in self.members.values()]
        return "sticky" not in self.assignor or all(one == topics[0] for one in topics)

    def kept(self, result: Result) -> int:
        return sum(len(set(given) & set(self.members[member].owned_partitions)) for member, given in result.items())

    def ours(self, order: list[str]) -> Result:
        """Members in the order in which Kafka walked through them, which settles ties."""
        (assignor,) = make_assignors([self.assignor], {})
        assert isinstance(assignor, AbstractPartitionAssignor)
        subscribed = {topic for one in self.members.values() for topic in one.topics}
        topics = {topic: partitions for topic, partitions in self.topics.items() if topic in subscribed}
        return assignor.assign_partitions(topics, {name: self.members[name] for name in order})


@pytest.mark.parametrize("name", NAMES)
def test_gives_every_member_what_kafkas_assignor_gives_it(name: str) -> None:
    made = random.Random(f"assign {name}")
    cases = [_case(made, name) for _ in range(CASES)]
    for case, answer in zip(cases, _oracle(cases), strict=True):
        if "failed" in answer:
            continue  # Kafka's general sticky assignor trips over an earlier owner that takes no part
        theirs = {member: _partitions(given) for member, given in answer.items()}
        ours = case.ours(list(answer))
        if case.exact:
            assert _sorted(ours) == _sorted(theirs), case.line()
        elif name == "sticky":
            assert _per_topic(ours) == _per_topic(theirs), case.line()
            assert case.kept(ours) >= case.kept(theirs), case.line()


def test_writes_subscriptions_and_assignments_as_kafka_does() -> None:
    made = random.Random("bytes")
    cases = [_case(made, made.choice(NAMES)) for _ in range(CASES)]
    for case, plain, hexed in zip(cases, _oracle(cases), _oracle(cases, "bytes"), strict=True):
        for member, subscription in case.members.items():
            given = Assignment(tuple(_partitions(plain[member])))
            ours = f"{serialize_subscription(subscription).hex()},{serialize_assignment(given).hex()}"
            assert ours == hexed[member], case.line()


def _case(made: random.Random, assignor: str) -> Case:
    racks = ["a", "b", "c"] if made.random() < 0.4 else []
    names = [f"t{number}" for number in range(made.randint(1, 5))]
    copies = made.randint(1, 3)
    topics = {name: [_racks(made, racks, copies) for _ in range(made.choice((1, 2, 3, 5, 5, 8)))] for name in names}
    if made.random() < 0.2:
        topics.pop(made.choice(names))
    uniform = made.random() < 0.5
    chosen = made.sample(names, made.randint(1, len(names)))
    members: dict[str, Subscription] = {}
    free = [TopicPartition(topic, number) for topic, partitions in topics.items() for number in range(len(partitions))]
    made.shuffle(free)
    for number in range(made.randint(1, 7)):
        mine = chosen if uniform else made.sample(names, made.randint(1, len(names)))
        owned = [free.pop() for _ in range(min(len(free), made.choice((0, 0, 1, 2, 4, 9))))]
        owned = [one for one in owned if one.topic in mine or made.random() < 0.2]
        generation = made.choice((-1, 4, 5, 5, 5))
        members[f"m{number:02}-{made.randrange(1000)}"] = Subscription(
            tuple(mine),
            _user_data(assignor, owned, generation, made),
            tuple(owned),
            generation,
            made.choice([*racks, None]) if racks else None,
            f"i{made.randrange(10_000)}" if made.random() < 0.2 else None,
        )
    return Case(assignor, topics, members)


def _racks(made: random.Random, racks: list[str], copies: int) -> frozenset[str]:
    return frozenset(made.sample(racks, copies)) if racks else frozenset()


def _user_data(assignor: str, owned: list[TopicPartition], generation: int, made: random.Random) -> bytes | None:
    if assignor == "sticky" and made.random() < 0.9:
        return write_user_data(owned, generation)
    if assignor == "cooperative-sticky" and made.random() < 0.5:
        return generation.to_bytes(4, "big", signed=True)
    return None


def _member(name: str, one: Subscription) -> str:
    owned = ",".join(f"{topic}:{partition}" for topic, partition in one.owned_partitions)
    data = (one.user_data or b"").hex()
    words = (name, one.group_instance_id or "", one.rack_id or "", str(one.generation_id), ",".join(one.topics), owned, data)
    return "|".join(words)


def _oracle(cases: list[Case], *arguments: str) -> list[dict[str, str]]:
    """By case, what Kafka's program told of each member."""
    command = kafka.source_command(kafka.available(kafka.prepare), ORACLE, *arguments)
    lines = "\n".join(case.line() for case in cases)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120, check=True)
    return [dict(part.split("=", 1) for part in line.split(";")) for line in done.stdout.splitlines()]


def _partitions(text: str) -> list[TopicPartition]:
    pairs = (one.split(":") for one in text.split("+") if one)
    return [TopicPartition(topic, int(number)) for topic, number in pairs]


def _per_topic(result: Mapping[str, list[TopicPartition]]) -> dict[str, Counter[str]]:
    return {member: Counter(one.topic for one in given) for member, given in result.items()}


def _sorted(result: Mapping[str, list[TopicPartition]]) -> dict[str, list[TopicPartition]]:
    return {member: sorted(given) for member, given in result.items()}
