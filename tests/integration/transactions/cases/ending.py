"""EndTxn: commit and abort, once, twice, without a transaction, and by who may not."""

from __future__ import annotations

from dataclasses import replace

from tests.integration.transactions.cases.case import case, cases
from tests.integration.transactions.play import END_V2, PRODUCE_V2, Play, Producer

ALL = range(6)
SOME = (0, 4, 5)  # the first, the last, and the one that gives a new epoch


def opened(play: Play, version: int, sequence: int = 0, who: Producer | None = None) -> Producer:
    """A producer with one record in an open transaction, as a client of that version of EndTxn gets there."""
    who = who or play.init()
    if version >= END_V2:
        play.produce(who, sequence, version=PRODUCE_V2)
    else:
        play.add(who)
        play.produce(who, sequence)
    return who


@cases("end: commit, and what is in the log", ALL)
def _commit(play: Play, version: int) -> None:
    play.end(opened(play, version), version=version)
    play.describe(play.id())
    play.log()
    play.producers()


@cases("end: abort, and what is in the log", ALL)
def _abort(play: Play, version: int) -> None:
    play.end(opened(play, version), False, version=version)
    play.describe(play.id())
    play.log()
    play.producers()


@cases("end: three transactions after each other", SOME)
def _three(play: Play, version: int) -> None:
    who = play.init()
    for number, committed in enumerate((True, False, True)):
        opened(play, version, 0 if version >= END_V2 else number, who)
        who = play.end(who, committed, version=version)
    play.describe(play.id())
    play.log()


@cases("end: the same end twice", SOME)
def _twice(play: Play, version: int) -> None:
    for committed in (True, False):
        who = opened(play, version, who=play.init(f"{committed}"))
        play.end(who, committed, version=version)
        play.end(who, committed, version=version)
        play.end(who, committed, version=version)
        play.describe(play.id(f"{committed}"))


@cases("end: the other end, once one was told", SOME)
def _other(play: Play, version: int) -> None:
    for committed in (True, False):
        who = opened(play, version, who=play.init(f"{committed}"))
        play.end(who, committed, version=version)
        play.end(who, not committed, version=version)
        play.describe(play.id(f"{committed}"))


@cases("end: the other end in the new epoch", range(5, 6))
def _other_new(play: Play, version: int) -> None:
    for committed in (True, False):
        who = opened(play, version, who=play.init(f"{committed}"))
        later = play.end(who, committed, version=version)
        play.end(later, not committed, version=version)
        play.end(later, committed, version=version)
        play.describe(play.id(f"{committed}"))


@cases("end: without a transaction", SOME)
def _nothing(play: Play, version: int) -> None:
    who = play.init("commit")
    play.end(who, True, version=version)
    play.describe(play.id("commit"))
    who = play.init("abort")
    later = play.end(who, False, version=version)
    play.describe(play.id("abort"))
    play.end(who, False, version=version)
    play.end(later, False, version=version)
    play.describe(play.id("abort"))


@cases("end: without a transaction after one", SOME)
def _nothing_after(play: Play, version: int) -> None:
    for first in (True, False):
        for second in (True, False):
            name = f"{first}-{second}"
            who = play.init(name)
            later = play.end(opened(play, version, who=who), first, version=version)
            later = play.end(later, second, version=version)
            play.end(later, second, version=version)
            play.describe(play.id(name))


@cases("end: by who may not", SOME)
def _refused(play: Play, version: int) -> None:
    before = play.init()
    now = opened(play, version)
    play.end(before, version=version)
    play.end(replace(now, epoch=now.epoch + 1), version=version)
    play.end(replace(now, id=now.id + 1_000_000), version=version)
    play.end(replace(now, transactional_id=play.id("never")), version=version)
    play.end(replace(now, transactional_id=""), version=version)
    play.end(replace(now, epoch=-1), version=version)
    play.describe(play.id())


@cases("end: with partitions that have no records", SOME)
def _empty_partitions(play: Play, version: int) -> None:
    who = play.init()
    play.add(who, (0, 1, 2))
    play.produce(who)
    play.end(who, version=version)
    play.log(0)
    play.log(1)


@case("end: begun by a client of old, ended by one of today")
def _old_to_new(play: Play) -> None:
    who = play.init()
    play.add(who)
    play.produce(who)
    later = play.end(who, version=END_V2)
    play.describe(play.id())
    play.produce(later, version=PRODUCE_V2)
    play.end(later)
    play.describe(play.id())
    play.log()


@case("end: by the clock")
def _timeout(play: Play) -> None:
    who = play.init(timeout_ms=200)
    play.add(who, (0, 1))
    play.produce(who)
    play.wait_for_state(who, "CompleteAbort")
    play.describe(play.id())
    play.log()
    play.end(who)
    play.end(who, version=END_V2)
    play.add(who)
    play.produce(who, 1)
    play.produce(who, 1, version=PRODUCE_V2)
    play.init(of=who)
    play.describe(play.id())


@case("end: by the clock, and the client of today")
def _timeout_v2(play: Play) -> None:
    who = play.init(timeout_ms=200)
    play.produce(who, version=PRODUCE_V2)
    play.wait_for_state(who, "CompleteAbort")
    play.produce(who, 1, version=PRODUCE_V2)
    play.end(who, version=END_V2)
    play.end(who, False, version=END_V2)
    play.init()
    play.describe(play.id())
    play.log()
