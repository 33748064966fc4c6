"""What the tools find on a broker: transactions in every state that lasts, one that hangs; and a history whose files are compared.

All is done by one conversation, so that two fresh brokers give out the same producer ids and write the same offsets. Verification has to
be off (`transaction.partition.verification.enable=false`): with it nothing can be made to hang any more.
"""

from __future__ import annotations

import time
from contextlib import closing

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.integration.transactions.play import END_V2, OFFSETS_V2, PARTITIONS, PRODUCE_V2, Play, wake

STAGE = "stage"
EMPTY, ONGOING, COMMITTED, ABORTED, OFFSETS, HANGING = "empty", "ongoing", "committed", "aborted", "offsets", "hanging"
HANGING_PARTITION, HANGING_OFFSET = 2, 2
HOUR_MS = 3_600_000

HISTORY = "history"
START_MS = 1_700_000_000_000
SEGMENT_MS = "10000"  # between a record of START_MS and a marker of now a segment ends
TURNS = 6
WAIT_S = 60


def staged(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    history = NewTopic(HISTORY, 1, 1, config={"segment.ms": SEGMENT_MS, "retention.ms": "-1"})
    for made in admin.create_topics([NewTopic(STAGE, PARTITIONS, 1), history]).values():
        made.result(WAIT_S)
    wake(bootstrap, STAGE)
    with closing(Play(bootstrap, STAGE)) as play:
        _states(play)
    with closing(Play(bootstrap, HISTORY)) as play:
        _history(play)


def _states(play: Play) -> None:
    play.init(EMPTY)
    who = play.init(ONGOING, timeout_ms=900_000)
    play.produce(who, version=PRODUCE_V2)
    play.produce(who, partition=1, count=3, version=PRODUCE_V2)
    for name, committed in ((COMMITTED, True), (ABORTED, False)):
        who = play.init(name)
        play.produce(who, partition=2, version=PRODUCE_V2)
        play.end(who, committed, version=END_V2)
    play.commit_offsets(play.init(OFFSETS, timeout_ms=900_000), {0: 4, 1: 5}, version=OFFSETS_V2)
    old_ms = int(time.time() * 1000) - HOUR_MS
    play.produce(play.init(HANGING), partition=1, timestamp_ms=old_ms)


def _history(play: Play) -> None:
    """Two producers that take turns; one commits, the other aborts every second time; both are open at once now and then."""
    one, two, plain = play.init("one"), play.init("two"), play.init(None)
    for turn in range(TURNS):
        at_ms = START_MS + turn * 20_000
        play.produce(one, count=2, version=PRODUCE_V2, timestamp_ms=at_ms)
        play.produce(two, count=3, version=PRODUCE_V2, timestamp_ms=at_ms + 1)
        play.produce(plain, turn, transactional=False, sent_as=None, timestamp_ms=at_ms + 2)
        one = play.end(one, version=END_V2)
        if turn % 3 != 1:
            two = play.end(two, turn % 2 == 0, version=END_V2)
        else:
            play.produce(two, 3, count=2, version=PRODUCE_V2, timestamp_ms=at_ms + 3)
            two = play.end(two, False, version=END_V2)
