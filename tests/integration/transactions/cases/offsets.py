"""Offsets in transactions: AddOffsetsToTxn, TxnOffsetCommit, and what OffsetFetch shows meanwhile."""

from __future__ import annotations

from dataclasses import replace

from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tests.integration.transactions.cases.case import case, cases
from tests.integration.transactions.play import END_V2, OFFSETS_V2, Play, Producer


def _offsets_added(play: Play, who: Producer, version: int) -> None:
    """As a client of that version of TxnOffsetCommit does it."""
    if version < OFFSETS_V2:
        play.add_offsets(who)


@cases("offsets: added", range(5))
def _added(play: Play, version: int) -> None:
    who = play.init()
    play.add_offsets(who, version=version)
    play.add_offsets(who, version=version)
    play.describe(play.id())
    play.end(who, False)


@cases("offsets: added by who may not", (0, 2, 4))
def _refused(play: Play, version: int) -> None:
    before = play.init()
    now = play.init()
    play.add_offsets(before, version=version)
    play.add_offsets(replace(now, epoch=now.epoch + 1), version=version)
    play.add_offsets(replace(now, id=now.id + 1_000_000), version=version)
    play.add_offsets(replace(now, transactional_id=play.id("never")), version=version)
    play.add_offsets(replace(now, transactional_id=""), version=version)
    play.add_offsets(now, "", version=version)
    play.describe(play.id())


@cases("offsets: committed with the transaction", range(6))
def _committed(play: Play, version: int) -> None:
    who = play.init()
    _offsets_added(play, who, version)
    play.commit_offsets(who, {0: 5, 2: 9}, version=version)
    play.offsets()
    play.offsets(stable=True)
    play.describe(play.id())
    play.end(who, version=END_V2 if version >= OFFSETS_V2 else 4)
    play.offsets()
    play.offsets(stable=True)


@cases("offsets: dropped with the transaction", (0, 3, 5))
def _aborted(play: Play, version: int) -> None:
    who = play.init()
    _offsets_added(play, who, version)
    play.commit_offsets(who, {0: 5}, version=version)
    who = play.end(who, version=END_V2 if version >= OFFSETS_V2 else 4)
    _offsets_added(play, who, version)
    play.commit_offsets(who, {0: 6, 1: 1}, version=version)
    play.offsets(stable=True)
    play.end(who, False, version=END_V2 if version >= OFFSETS_V2 else 4)
    play.offsets(stable=True)


@cases("offsets: committed without being added", (0, 3, 5))
def _not_added(play: Play, version: int) -> None:
    who = play.init()
    play.commit_offsets(who, version=version)
    play.describe(play.id())
    play.offsets(stable=True)


@cases("offsets: committed by who may not", (0, 3, 5))
def _commit_refused(play: Play, version: int) -> None:
    before = play.init()
    now = play.init()
    _offsets_added(play, now, version)
    play.commit_offsets(before, version=version)
    play.commit_offsets(replace(now, epoch=now.epoch + 1), version=version)
    play.commit_offsets(replace(now, id=now.id + 1_000_000), version=version)
    play.commit_offsets(replace(now, transactional_id=play.id("never")), version=version)
    play.commit_offsets(replace(now, transactional_id=""), version=version)
    play.offsets()


@cases("offsets: of what is not there", (0, 3, 5))
def _unknown(play: Play, version: int) -> None:
    who = play.init()
    _offsets_added(play, who, version)
    play.commit_offsets(who, topic="nowhere", version=version)
    play.commit_offsets(who, {0: 1, 99: 1}, version=version)
    play.commit_offsets(who, {0: -1}, version=version)
    play.commit_offsets(who, {0: 1}, metadata="m" * 5000, version=version)
    play.commit_offsets(who, {0: 1}, "", version=version)
    play.commit_offsets(who, {0: 1}, "another", version=version)
    play.offsets()


@cases("offsets: of a group that lives", range(3, 6))
def _of_members(play: Play, version: int) -> None:
    member = _member(play)
    who = play.init()
    _offsets_added(play, who, version)
    play.commit_offsets(who, {0: 1}, generation=1, member=member, version=version)
    play.commit_offsets(who, {0: 2}, generation=2, member=member, version=version)
    play.commit_offsets(who, {0: 3}, generation=0, member=member, version=version)
    play.commit_offsets(who, {0: 4}, generation=1, member="stranger", version=version)
    play.commit_offsets(who, {0: 5}, generation=1, member=member, instance="instance", version=version)
    play.commit_offsets(who, {0: 6}, generation=-1, member=member, version=version)
    play.commit_offsets(who, {0: 7}, version=version)
    play.end(who, version=END_V2 if version >= OFFSETS_V2 else 4)
    play.offsets(stable=True)


@cases("offsets: of a member of a group that has none", range(3, 6))
def _no_group(play: Play, version: int) -> None:
    who = play.init()
    _offsets_added(play, who, version)
    play.commit_offsets(who, {0: 1}, generation=1, member="stranger", version=version)
    play.commit_offsets(who, {0: 1}, generation=-1, member="stranger", version=version)
    play.commit_offsets(who, {0: 1}, instance="instance", version=version)
    play.offsets()


@case("offsets: by two producers at once")
def _two(play: Play) -> None:
    one, two = play.init("one"), play.init("two")
    play.commit_offsets(one, {0: 3, 1: 3}, version=OFFSETS_V2)
    play.commit_offsets(two, {0: 4, 2: 4}, version=OFFSETS_V2)
    play.end(two, version=END_V2)
    play.offsets()
    play.offsets(stable=True)
    play.end(one, version=END_V2)
    play.offsets(stable=True)


@case("offsets: of a transaction that the clock ends")
def _timeout(play: Play) -> None:
    who = play.init(timeout_ms=200)
    play.commit_offsets(who, {0: 3}, version=OFFSETS_V2)
    play.wait_for_state(who, "CompleteAbort")
    play.offsets(stable=True)
    play.commit_offsets(who, {0: 4}, version=OFFSETS_V2)
    play.commit_offsets(who, {0: 4})
    play.add_offsets(who)
    play.offsets(stable=True)


def _member(play: Play) -> str:
    """The one member of a group in its first generation."""
    group = play.group("group")
    protocol = JoinGroupRequestProtocol("range", b"")
    request = JoinGroupRequest(group, 30_000, 30_000, "", None, "consumer", [protocol])
    member: str = play.ask(request, 5, told=False).member_id
    request.member_id = member
    play.ask(request, 5, told=False)
    play.ask(SyncGroupRequest(group, 1, member, assignments=[SyncGroupRequestAssignment(member, b"")]), 4, told=False)
    play.ask(HeartbeatRequest(group, 1, member), 3)
    return member
