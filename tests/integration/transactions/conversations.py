"""Tells all cases to a broker, and takes down what it said."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Iterable
from contextlib import closing

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.integration.transactions.cases import CASES
from tests.integration.transactions.play import LATEST, PARTITIONS, Play, wake
from tests.integration.transactions.wire import Connection, error_codes

WAIT_S = 60
AT_ONCE = 50
NO_TOPIC = ("find-coordinator: ", "init: with", "init: twice", "init: a transaction timeout")  # cases that need none


def told(bootstrap: str, names: Iterable[str]) -> dict[str, list[str]]:
    """By case the lines of its conversation with a broker."""
    topics = {name: "t-" + re.sub(r"\W+", "-", name) for name in names}
    _make(bootstrap, ["wake"])
    wake(bootstrap, "wake")
    _make(bootstrap, [topic for name, topic in topics.items() if not name.startswith(NO_TOPIC)])
    return {name: _tell(bootstrap, name, topic) for name, topic in topics.items()}


def _make(bootstrap: str, topics: list[str]) -> None:
    """Topics, a few at a time, each with leaders that answer."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for some in (topics[at : at + AT_ONCE] for at in range(0, len(topics), AT_ONCE)):
        for made in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in some]).values():
            made.result(WAIT_S)
    _await_leaders(bootstrap, topics)


def _await_leaders(bootstrap: str, topics: list[str]) -> None:
    partitions = [ListOffsetsPartition(partition, timestamp=LATEST) for partition in range(PARTITIONS)]
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic, partitions) for topic in topics])
    deadline = time.monotonic() + WAIT_S
    with closing(Connection(bootstrap)) as connection:
        while any(error_codes(connection.ask(request, 5))):
            assert time.monotonic() < deadline, f"{bootstrap} does not lead all of {topics}"
            time.sleep(0.1)


def _tell(bootstrap: str, name: str, topic: str) -> list[str]:
    play = Play(bootstrap, topic)
    try:
        CASES[name](play)
    except (AssertionError, OSError) as problem:
        play.tell(f"{bootstrap}: {problem!r} {traceback.format_exc(limit=-3)}")
    finally:
        play.close()
    return [line.replace(topic, "TOPIC") for line in play.lines]
