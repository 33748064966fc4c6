"""What a sink that decides first and ends transactions later builds on: which answers tell it that it is too late, or done already."""

from __future__ import annotations

from dataclasses import replace

from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from tests.integration.transactions.cases.case import case, cases
from tests.integration.transactions.cases.ending import opened
from tests.integration.transactions.play import END_V2, PRODUCE_V2, Play

BOTH = range(4, 6)


@cases("fencing: ended by another process that knows the producer", BOTH)
def _handed_over(play: Play, version: int) -> None:
    who = opened(play, version)
    other = Play(play.bootstrap, play.topic)
    other.end(who, version=version)
    other.end(who, version=version)
    other.close()
    for line in other.lines:
        play.tell(f"other: {line}")
    play.log()


@cases("fencing: a first producer once the id was initialised again", BOTH)
def _fenced(play: Play, version: int) -> None:
    who = opened(play, version)
    now = play.init()
    play.end(who, version=version)
    play.end(who, False, version=version)
    play.produce(who, 1, version=PRODUCE_V2 if version >= END_V2 else 11)
    play.add(who)
    play.add_offsets(who)
    play.init(of=who)
    play.init(of=now)


@cases("fencing: an end told again once the id was initialised again", BOTH)
def _late_retry(play: Play, version: int) -> None:
    for committed in (True, False):
        who = opened(play, version, who=play.init(f"{committed}"))
        play.end(who, committed, version=version)
        play.init(f"{committed}")
        play.end(who, True, version=version)
        play.end(who, False, version=version)


@cases("fencing: a zombie's late produce", BOTH)
def _zombie(play: Play, version: int) -> None:
    who = opened(play, version)
    play.end(who, version=version)
    play.produce(who, 1)
    play.produce(who, 1, version=PRODUCE_V2)
    play.describe(play.id())
    play.producers()
    play.log()


@cases("fencing: a commit after the timeout", BOTH)
def _late_commit(play: Play, version: int) -> None:
    who = play.init(timeout_ms=200)
    opened(play, version, who=who)
    play.wait_for_state(who, "CompleteAbort")
    play.end(who, version=version)
    play.end(replace(who, epoch=who.epoch + 1), version=version)
    play.init()


@cases("fencing: a commit without rows", BOTH)
def _no_rows(play: Play, version: int) -> None:
    who = play.init()
    play.end(who, version=version)
    play.init()


@case("fencing: open ones found by their prefix")
def _by_prefix(play: Play) -> None:
    for name in ("a-1", "a-2", "b-1"):
        opened(play, END_V2, who=play.init(name))
    play.init("a-3")
    play.end(opened(play, END_V2, who=play.init("a-4")), version=END_V2)
    pattern = f"{play.topic}-a-.*"
    play.listed(ListTransactionsRequest(["Ongoing"], transactional_id_pattern=pattern))
    play.init("a-1")
    play.listed(ListTransactionsRequest(["Ongoing"], transactional_id_pattern=pattern))
    play.listed(ListTransactionsRequest([], transactional_id_pattern=pattern))
