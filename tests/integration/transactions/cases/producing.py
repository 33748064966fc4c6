"""Produce of transactional and idempotent batches: verification, sequences, epochs, and batches that contradict their request."""

from __future__ import annotations

from dataclasses import replace

from tests.integration.transactions.cases.case import case, cases
from tests.integration.transactions.play import END_V2, PRODUCE_V2, Play

SEQUENCE_MAX = 2**31 - 1
ALL = range(3, 14)
SOME = (3, 11, 12, 13)  # the first; the last that has partitions added; the first that leaves it to the broker; with topic ids


@cases("produce: in a transaction", ALL)
def _produced(play: Play, version: int) -> None:
    who = play.init()
    if version < PRODUCE_V2:
        play.add(who)
    play.produce(who, version=version)
    play.produce(who, 1, count=3, version=version)
    play.describe(play.id())
    play.end(who, version=END_V2 if version >= PRODUCE_V2 else 4)
    play.log()


@cases("produce: to a partition that was not added", SOME)
def _not_added(play: Play, version: int) -> None:
    who = play.init()
    play.produce(who, version=version)
    play.add(who, (1,))
    play.produce(who, version=version)
    play.produce(who, partition=1, version=version)
    play.describe(play.id())


@cases("produce: with the epoch of who was fenced", SOME)
def _fenced(play: Play, version: int) -> None:
    before = play.init()
    play.add(before)
    play.produce(before)
    now = play.init()
    play.produce(before, 1, version=version)
    play.produce(before, partition=1, version=version)
    play.produce(replace(now, epoch=now.epoch + 1), version=version)
    play.log()


@cases("produce: with a producer id that is not that of the transactional id", SOME)
def _other_id(play: Play, version: int) -> None:
    who = play.init()
    play.add(who)
    play.produce(replace(who, id=who.id + 1_000_000), version=version)
    play.produce(replace(who, transactional_id=play.id("never")), version=version)
    play.log()


@cases("produce: a transactional batch without a transactional id", SOME)
def _no_id(play: Play, version: int) -> None:
    who = play.init()
    play.add(who)
    play.produce(who, version=version, sent_as=None)
    play.log()


@cases("produce: a plain batch with a transactional id", SOME)
def _plain(play: Play, version: int) -> None:
    who = play.init()
    play.produce(who, version=version, transactional=False)
    play.add(who, (1,))
    play.produce(who, partition=1, version=version)
    play.produce(who, 1, partition=1, version=version, transactional=False)
    play.log()
    play.log(1)


@cases("produce: a gap in the sequence", SOME)
def _gap(play: Play, version: int) -> None:
    who = play.init()
    play.add(who)
    play.produce(who, version=version)
    play.produce(who, 5, version=version)
    play.produce(who, 1, version=version)
    play.log()


@cases("produce: a batch again", SOME)
def _again(play: Play, version: int) -> None:
    who = play.init()
    play.add(who)
    for sequence in range(7):
        play.produce(who, sequence, version=version)
    for sequence in (6, 2, 1, 0):
        play.produce(who, sequence, version=version)
    play.log()


@cases("produce: the first batch does not begin at 0", SOME)
def _first(play: Play, version: int) -> None:
    who = play.init()
    play.add(who)
    play.produce(who, 3, version=version)
    play.log()


@case("produce: sequences without transactions")
def _idempotent(play: Play) -> None:
    who = play.init(None)
    for sequence, count in ((0, 1), (1, 3), (4, 1), (4, 1), (1, 3), (1, 2), (6, 1), (0, 1), (5, 1)):
        play.produce(who, sequence, count=count, transactional=False)
    play.produce(replace(who, epoch=1), 6, transactional=False)
    play.produce(replace(who, epoch=1), 0, transactional=False)
    play.produce(who, 6, transactional=False)
    play.log()
    play.producers()


@case("produce: a sequence that wraps around")
def _wrap(play: Play) -> None:
    who = play.init(None)
    play.produce(who, SEQUENCE_MAX - 1, count=1, transactional=False)
    play.produce(who, SEQUENCE_MAX, count=3, transactional=False)
    play.produce(who, 2, count=1, transactional=False)
    play.produce(who, SEQUENCE_MAX, count=3, transactional=False)
    play.log()
    play.producers()


@case("produce: an id that was never given out")
def _never_given(play: Play) -> None:
    who = play.init(None)
    stranger = replace(who, id=77_000_000)
    play.produce(stranger, 9, transactional=False)
    play.produce(stranger, 10, transactional=False)
    play.produce(stranger, 12, transactional=False)
    play.log()


@case("produce: a control batch of a client")
def _control(play: Play) -> None:
    who = play.init()
    play.add(who)
    play.produce(who, control=True)
    play.produce(who, control=True, transactional=False, sent_as=None)
    play.log()


@case("produce: without waiting for all")
def _acks(play: Play) -> None:
    who = play.init()
    play.add(who)
    play.produce(who, acks=1)
    play.produce(who, 1, acks=1, version=PRODUCE_V2)
    play.log()


@case("produce: today's client after it was told the end")
def _next(play: Play) -> None:
    who = play.init()
    play.produce(who, version=PRODUCE_V2)
    later = play.end(who, version=END_V2)
    play.produce(later, 1, version=PRODUCE_V2)
    play.produce(later, 0, version=PRODUCE_V2)
    play.produce(who, 1, version=PRODUCE_V2)
    play.describe(play.id())
    play.log()


@case("produce: in several partitions at once, by old and new means")
def _several(play: Play) -> None:
    who = play.init()
    play.produce(who, partition=0, version=PRODUCE_V2)
    play.add(who, (1,))
    play.produce(who, partition=1)
    play.produce(who, partition=2, version=13)
    play.describe(play.id())
    play.end(who, version=END_V2)
    for partition in range(3):
        play.log(partition)
