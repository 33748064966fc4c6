"""AddPartitionsToTxn: of clients, and of brokers for many producers at once; verification."""

from __future__ import annotations

from dataclasses import replace

from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from tests.integration.transactions.cases.case import case, cases
from tests.integration.transactions.play import END_V2, Play

ALL = range(6)
SOME = (0, 3, 4, 5)  # of clients; and of brokers


@cases("partitions: added, and added again", ALL)
def _added(play: Play, version: int) -> None:
    who = play.init()
    play.add(who, (0, 2), version=version)
    play.describe(play.id())
    play.add(who, (2, 1), version=version)
    play.describe(play.id())
    play.end(who, False)
    play.describe(play.id())


@cases("partitions: of a topic that is not there", SOME)
def _unknown(play: Play, version: int) -> None:
    who = play.init()
    play.add(who, topics={play.topic: [0], "nowhere": [0]}, version=version)
    play.add(who, topics={play.topic: [0, 99]}, version=version)
    play.add(who, topics={"": [0]}, version=version)
    play.describe(play.id())


@cases("partitions: none at all", SOME)
def _none(play: Play, version: int) -> None:
    who = play.init()
    play.add(who, (), version=version)
    play.add(who, topics={}, version=version)
    play.describe(play.id())


@cases("partitions: added by who may not", SOME)
def _refused(play: Play, version: int) -> None:
    who = play.init()
    now = play.init()
    play.add(who, version=version)
    play.add(replace(now, epoch=now.epoch + 1), version=version)
    play.add(replace(now, id=now.id + 1_000_000), version=version)
    play.add(replace(now, transactional_id=play.id("never")), version=version)
    play.add(replace(now, transactional_id=""), version=version)
    play.describe(play.id())


@cases("partitions: added once the transaction has ended", SOME)
def _after_end(play: Play, version: int) -> None:
    who = play.init()
    play.add(who, version=version)
    play.end(who)
    play.add(who, (1,), version=version)
    play.describe(play.id())
    play.end(who, False)
    play.add(who, (2,), version=version)
    play.describe(play.id())


@cases("partitions: added with the epoch from before a commit", SOME)
def _after_end_v2(play: Play, version: int) -> None:
    who = play.init()
    play.add(who, version=version)
    later = play.end(who, version=END_V2)
    play.add(who, version=version)
    play.add(later, version=version)
    play.describe(play.id())


@cases("partitions: verified", range(4, 6))
def _verified(play: Play, version: int) -> None:
    who = play.init()
    play.verify(who, version=version)
    play.add(who, (0, 1))
    play.verify(who, (0, 1), version=version)
    play.verify(who, (1, 2), version=version)
    play.verify(replace(who, epoch=who.epoch + 1), version=version)
    play.verify(replace(who, id=who.id + 1_000_000), version=version)
    play.verify(replace(who, transactional_id=play.id("never")), version=version)
    play.verify(replace(who, transactional_id=""), version=version)
    play.end(who)
    play.verify(who, version=version)


@cases("partitions: of several producers at once", range(4, 6))
def _several(play: Play, version: int) -> None:
    one, two = play.init("one"), play.init("two")
    topics = [AddPartitionsToTxnTopic(play.topic, [0, 1])]

    def of(who_id: str, producer_id: int, epoch: int, verify: bool) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(who_id, producer_id, epoch, verify, topics)

    play.add_many([of(play.id("one"), one.id, one.epoch, False), of(play.id("two"), two.id, two.epoch + 3, False)], version)
    play.add_many([of(play.id("one"), one.id, one.epoch, True), of(play.id("two"), two.id, two.epoch, True)], version)
    play.add_many([of(play.id("never"), two.id, two.epoch, True), of(play.id("two"), two.id, two.epoch, False)], version)
    play.describe(play.id("one"), play.id("two"))


@case("partitions: internal ones")
def _internal(play: Play) -> None:
    who = play.init()
    play.add(who, topics={"__transaction_state": [0]})
    play.add(who, topics={"__consumer_offsets": [0]})
    play.describe(play.id())
    play.end(who, False)
