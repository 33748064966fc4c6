"""WriteTxnMarkers, as coordinators send it: to producers known and unknown, of epochs old and new, and to end a transaction that hangs."""

from __future__ import annotations

from dataclasses import replace

from tests.integration.transactions.cases.case import case, cases
from tests.integration.transactions.play import PRODUCE_V2, Play, Producer

BOTH = range(1, 3)


@cases("markers: of a producer that is unknown", BOTH)
def _unknown(play: Play, version: int) -> None:
    stranger = Producer(None, 88_000_000, 4)
    play.markers(play.marker(stranger), version=version)
    play.markers(play.marker(stranger, False, partitions=(1,)), version=version)
    play.log()
    play.log(1)
    play.producers(0, 1)


@cases("markers: to what is not there", BOTH)
def _nowhere(play: Play, version: int) -> None:
    who = play.init()
    play.markers(play.marker(who, topic="nowhere"), version=version)
    play.markers(play.marker(who, partitions=(0, 99)), version=version)
    play.markers(version=version)
    play.markers(play.marker(who, partitions=()), version=version)


@cases("markers: of an open transaction, told past its coordinator", BOTH)
def _open(play: Play, version: int) -> None:
    who = play.init()
    play.produce(who, version=PRODUCE_V2)
    play.producers()
    play.markers(play.marker(who, False), version=version)
    play.producers()
    play.log()
    play.describe(play.id())
    play.markers(play.marker(who, False), version=version)
    play.log()


@cases("markers: of epochs before and after", BOTH)
def _epochs(play: Play, version: int) -> None:
    play.init()
    who = play.init()
    play.produce(who, version=PRODUCE_V2)
    play.markers(play.marker(replace(who, epoch=who.epoch - 1)), version=version)
    play.markers(play.marker(replace(who, epoch=who.epoch + 1)), version=version)
    play.markers(play.marker(replace(who, epoch=who.epoch)), version=version)
    play.markers(play.marker(replace(who, epoch=-1)), version=version)
    play.log()
    play.producers()


@cases("markers: of coordinators before and after", BOTH)
def _coordinators(play: Play, version: int) -> None:
    who = play.init()
    play.produce(who, version=PRODUCE_V2)
    play.markers(play.marker(who, coordinator_epoch=5), version=version)
    play.markers(play.marker(who, coordinator_epoch=4), version=version)
    play.markers(play.marker(who, coordinator_epoch=5), version=version)
    play.markers(play.marker(who, coordinator_epoch=-1), version=version)
    play.log()
    play.producers()


@cases("markers: several in one request", BOTH)
def _several(play: Play, version: int) -> None:
    one, two = play.init("one"), play.init("two")
    for who in (one, two):
        for partition in range(2):
            play.produce(who, partition=partition, version=PRODUCE_V2)
    play.markers(play.marker(one, partitions=(0, 1)), play.marker(two, False, partitions=(0, 1, 99)), version=version)
    play.log()
    play.log(1)


@case("markers: to the offsets of groups")
def _offsets(play: Play) -> None:
    who = play.init()
    play.commit_offsets(who, {0: 3}, version=5)
    described = play.describe(play.id())
    partition = described.transaction_states[0].topics[0].partitions[0]
    play.markers(play.marker(who, True, topic="__consumer_offsets", partitions=(partition,)))
    play.offsets(stable=True)
    play.markers(play.marker(replace(who, epoch=9), False, topic="__consumer_offsets", partitions=(partition,)))
