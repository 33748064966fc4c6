"""The broker is killed after each step of a transaction, and in the middle of its end: what follows goes on as if nothing had happened."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from tests.chaos import topics
from tests.chaos.mortal import MortalBroker, mortal, seconds, seed
from tests.integration.transactions.play import END_V2, OFFSETS_V2, PRODUCE_V2, Play, Producer, wake
from tests.integration.transactions.wire import Connection

pytestmark = pytest.mark.timeout(7200)

PARTITIONS = 3
KINDS = [(version, committed) for version in (END_V2 - 1, END_V2) for committed in (True, False)]
NOT_YET = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS)
DEADLINE_S = 30
Step = Callable[[Play, "Transaction"], None]


class Transaction:
    """One that is brought to its end step by step, over several lives of its broker."""

    def __init__(self, topic: str, version: int, committed: bool) -> None:
        self.topic = topic
        self.version = version
        self.committed = committed
        self.who = Producer(None, -1, -1)

    @property
    def is_v2(self) -> bool:
        return self.version >= END_V2


def _init(play: Play, one: Transaction) -> None:
    one.who = play.init()


def _produce_first(play: Play, one: Transaction) -> None:
    if not one.is_v2:
        play.add(one.who, range(PARTITIONS))
    _produce(play, one, 0)


def _produce_rest(play: Play, one: Transaction) -> None:
    for partition in range(1, PARTITIONS):
        _produce(play, one, partition)


def _offsets(play: Play, one: Transaction) -> None:
    if not one.is_v2:
        play.add_offsets(one.who)
    answer = play.commit_offsets(one.who, {0: 7}, version=OFFSETS_V2 if one.is_v2 else 4)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE, play.lines[-1]


def _end(play: Play, one: Transaction) -> None:
    request = EndTxnRequest(one.who.transactional_id or "", one.who.id, one.who.epoch, one.committed)
    assert play.ask(request, one.version).error_code == ErrorCode.NONE, play.lines[-1]


STEPS: list[Step] = [_init, _produce_first, _produce_rest, _offsets, _end]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Generator[MortalBroker, None, None]:
    with mortal(tmp_path_factory.mktemp("steps")) as one:
        topics.make_topics(one.bootstrap, ["wake"], 1)
        wake(one.bootstrap, "wake")
        yield one


@pytest.mark.parametrize("kill_after", range(len(STEPS)), ids=lambda number: STEPS[number].__name__.strip("_"))
def test_a_transaction_goes_on_after_the_broker_was_killed_behind_a_step(broker: MortalBroker, kill_after: int) -> None:
    begun = [Transaction(f"steps-{kill_after}-{version}-{committed}", version, committed) for version, committed in KINDS]
    topics.make_topics(broker.bootstrap, [one.topic for one in begun], PARTITIONS)
    _walk(broker, begun, STEPS[: kill_after + 1])
    broker.kill_and_start()
    _walk(broker, begun, STEPS[kill_after + 1 :])
    for one in begun:
        check(broker, one, one.committed)


def test_a_broker_killed_while_it_ends_a_transaction_ends_it_in_all_partitions_or_in_none(broker: MortalBroker) -> None:
    chance = random.Random(seed())
    rounds = max(4, int(seconds() / 3))
    topics.make_topics(broker.bootstrap, [f"ends-{number}" for number in range(rounds)], PARTITIONS)
    for number in range(rounds):
        one = Transaction(f"ends-{number}", *KINDS[number % len(KINDS)])
        _walk(broker, [one], STEPS[:-1])
        with closing(Connection(broker.bootstrap)) as connection:
            connection.send(EndTxnRequest(one.who.transactional_id or "", one.who.id, one.who.epoch, one.committed), one.version)
            time.sleep(chance.uniform(0, 0.006))
            broker.kill_and_start()
        _walk(broker, [one], STEPS[-1:])
        check(broker, one, one.committed)


def check(broker: MortalBroker, one: Transaction, committed: bool) -> None:
    """Every partition and the group's offset tell the same."""
    with closing(Play(broker.bootstrap, one.topic)) as play:
        play.settle(one.who)
        offset = play.offsets(stable=True).groups[0].topics[0].partitions[0].committed_offset
    assert offset == (7 if committed else -1)
    assert topics.values(broker.bootstrap, one.topic, PARTITIONS, topics.COMMITTED) == [["v0"] if committed else []] * PARTITIONS
    assert topics.values(broker.bootstrap, one.topic, PARTITIONS, topics.UNCOMMITTED) == [["v0"]] * PARTITIONS


def _walk(broker: MortalBroker, begun: list[Transaction], steps: list[Step]) -> None:
    for one in begun:
        with closing(Play(broker.bootstrap, one.topic)) as play:
            for step in steps:
                step(play, one)


def _produce(play: Play, one: Transaction, partition: int) -> None:
    """A record; a broker that has just begun may not know yet what it leads."""
    deadline = time.monotonic() + DEADLINE_S
    while code := _produced(play.produce(one.who, partition=partition, version=PRODUCE_V2 if one.is_v2 else 11)):
        assert code in NOT_YET and time.monotonic() < deadline, play.lines[-1]
        time.sleep(0.05)


def _produced(answer: Any) -> int:
    code: int = answer.responses[0].partition_responses[0].error_code
    return code
