"""InitProducerId: ids and epochs, who may have a new one, and what is refused."""

from __future__ import annotations

from dataclasses import replace

from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from tests.integration.transactions.cases.case import case, cases
from tests.integration.transactions.play import END_V2, PRODUCE_V2, Play

TRANSACTION = 1  # the key type of FindCoordinator


@cases("init: without a transactional id", range(6))
def _plain(play: Play, version: int) -> None:
    first, second = (play.init(None, version=version) for _ in range(2))
    play.tell(f"another one: {first.id != second.id}")


@cases("init: twice for one transactional id", range(6))
def _twice(play: Play, version: int) -> None:
    play.init(version=version)
    play.init(version=version)
    play.describe(play.id())


@cases("init: with a transaction timeout of none", (0, 5))
def _timeouts(play: Play, version: int) -> None:
    for timeout_ms in (0, -1, -(1 << 31)):
        play.init(timeout_ms=timeout_ms, version=version)
    play.init(None, timeout_ms=0, version=version)


@cases("init: with a transaction timeout that is too long", (0, 5))
def _too_long(play: Play, version: int) -> None:
    play.init(timeout_ms=900_001, version=version)
    play.init(timeout_ms=900_000, version=version)


@cases("init: with an empty transactional id", (0, 5))
def _empty(play: Play, version: int) -> None:
    play.ask(InitProducerIdRequest("", 60_000), version)


@case("init: in the version that Kafka does not offer yet")
def _unstable(play: Play) -> None:
    play.ask(InitProducerIdRequest("one", 60_000), 6)


@cases("find-coordinator: of a transactional id", range(1, 7))
def _coordinator(play: Play, version: int) -> None:
    keys = ["one", "two", ""] if version >= 4 else []
    play.ask(FindCoordinatorRequest("" if keys else "one", TRANSACTION, keys), version)


@case("find-coordinator: of a kind that there is not")
def _kind(play: Play) -> None:
    play.ask(FindCoordinatorRequest("", 7, ["one"]), 4)
    play.ask(FindCoordinatorRequest("one", 7), 3)


@cases("init: a producer asks for its next epoch", range(3, 6))
def _next_epoch(play: Play, version: int) -> None:
    who = play.init(version=version)
    again = play.init(of=who, version=version)
    play.init(of=who, version=version)  # a retry
    later = play.init(of=again, version=version)
    play.init(of=who, version=version)  # two epochs ago
    play.init(of=replace(later, epoch=later.epoch + 1), version=version)
    play.describe(play.id())


@case("init: the next epoch of another producer id")
def _other_id(play: Play) -> None:
    who = play.init()
    play.init(of=replace(who, id=who.id + 1_000_000))
    play.init(of=replace(who, id=who.id, epoch=-1))
    play.init(of=replace(who, id=-1, epoch=0))
    play.init(of=replace(who, epoch=-2))


@case("init: the next epoch of an id that nobody has")
def _unknown(play: Play) -> None:
    who = play.init(None)
    play.init(of=replace(who, transactional_id=play.id("never"), id=12_345_678, epoch=3))
    play.describe(play.id("never"))


@case("init: the next epoch without a transactional id")
def _next_epoch_without(play: Play) -> None:
    who = play.init(None)
    play.init(of=who)


@case("init: while a transaction is open")
def _open(play: Play) -> None:
    who = play.init()
    play.add(who, (0, 1))
    play.produce(who)
    play.produce(who, partition=1)
    play.init()
    play.describe(play.id())
    play.log()
    play.log(1)


@case("init: a producer asks for its next epoch while its transaction is open")
def _open_next(play: Play) -> None:
    who = play.init()
    play.produce(who, version=PRODUCE_V2)
    again = play.init(of=who)
    play.produce(again, version=PRODUCE_V2)
    again = play.end(again, version=END_V2)
    play.describe(play.id())
    play.log()


@case("init: at once after a commit, while the first hears of it late")
def _after_commit(play: Play) -> None:
    who = play.init()
    play.add(who)
    play.produce(who)
    play.end(who)
    play.init()
    play.end(who)
    play.produce(who, sequence=1)
    play.add(who)


@case("init: a transaction timeout that changes")
def _timeout_changes(play: Play) -> None:
    play.init(timeout_ms=10_000)
    play.describe(play.id())
    play.init(timeout_ms=20_000)
    play.describe(play.id())
