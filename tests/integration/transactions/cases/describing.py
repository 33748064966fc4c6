"""ListTransactions, DescribeTransactions and DescribeProducers."""

from __future__ import annotations

from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from tests.integration.transactions.cases.case import case, cases
from tests.integration.transactions.cases.ending import opened
from tests.integration.transactions.play import END_V2, PRODUCE_V2, Play


def _staged(play: Play) -> list[int]:
    """Transactions in four states; their producer ids."""
    empty = play.init("empty")
    ongoing = opened(play, 4, who=play.init("ongoing"))
    committed = opened(play, END_V2, who=play.init("committed"))
    play.end(committed, version=END_V2)
    aborted = opened(play, 4, who=play.init("aborted"))
    play.end(aborted, False)
    for who in (committed, aborted):
        play.settle(who)
    return [who.id for who in (empty, ongoing, committed, aborted)]


@cases("list: all, by state and by producer", range(3))
def _listed(play: Play, version: int) -> None:
    ids = _staged(play)
    play.listed(ListTransactionsRequest(), version)
    for states in (["Ongoing"], ["Empty", "CompleteCommit"], ["CompleteAbort"], ["Nonsense"], ["Ongoing", "Nonsense"], ["ongoing"], [""]):
        play.listed(ListTransactionsRequest(states), version)
    play.listed(ListTransactionsRequest([], ids[:2]), version)
    play.listed(ListTransactionsRequest(["Ongoing"], ids[:1]), version)
    play.listed(ListTransactionsRequest([], [999_999_999]), version)
    play.listed(ListTransactionsRequest(["Dead", "PrepareEpochFence", "PrepareCommit", "PrepareAbort"]), version)


@cases("list: those that last long", range(1, 3))
def _long(play: Play, version: int) -> None:
    _staged(play)
    play.listed(ListTransactionsRequest(duration_filter=0), version)
    play.listed(ListTransactionsRequest(duration_filter=1_000_000), version)
    play.listed(ListTransactionsRequest(duration_filter=-1), version)
    play.listed(ListTransactionsRequest(duration_filter=-5), version)


@case("list: by pattern")
def _pattern(play: Play) -> None:
    _staged(play)
    for pattern in (".*", f"{play.topic}-.*ed", f"{play.topic}-(empty|aborted)", f"{play.topic}", "", "ongoing"):
        play.listed(ListTransactionsRequest(transactional_id_pattern=pattern))
    play.listed(ListTransactionsRequest(["Ongoing"], transactional_id_pattern=f"{play.topic}-o.*"))
    for pattern in ("(", "[a", "*"):
        play.listed(ListTransactionsRequest(transactional_id_pattern=pattern))


@case("describe: transactions in each state")
def _described(play: Play) -> None:
    _staged(play)
    play.describe(*(play.id(name) for name in ("empty", "ongoing", "committed", "aborted")))
    play.describe(play.id("never"))
    play.describe("")
    play.describe()
    play.describe(play.id("empty"), play.id("never"), play.id("empty"))


@case("describe: producers of a partition")
def _producers(play: Play) -> None:
    plain = play.init(None)
    play.produce(plain, transactional=False, count=3)
    play.produce(plain, 3, transactional=False, count=2)
    _staged(play)
    play.producers(0)
    play.producers(0, 1, 2)
    play.producers(99)
    play.producers(0, topic="nowhere")
    play.producers(0, topic="no/topic")
    play.ask(DescribeProducersRequest([]), 0)


@case("describe: a reader waits behind the first open transaction")
def _stable(play: Play) -> None:
    one, two = play.init("one"), play.init("two")
    for number in range(2):
        play.produce(one, number, version=PRODUCE_V2)
        play.produce(two, number, version=PRODUCE_V2)
    play.log()
    one = play.end(one, version=END_V2)
    play.log()
    two = play.end(two, False, version=END_V2)
    play.log()
    play.produce(one, 0, version=PRODUCE_V2)
    play.log()
    play.producers()
