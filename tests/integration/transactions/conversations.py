"""Tells all cases to a broker, and takes down what it said."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.integration.transactions.cases import CASES
from tests.integration.transactions.play import PARTITIONS, Play, wake

WAIT_S = 60


def told(bootstrap: str, names: Iterable[str]) -> dict[str, list[str]]:
    """By case the lines of its conversation with a broker."""
    topics = {name: "t-" + re.sub(r"\W+", "-", name) for name in names}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(topic, PARTITIONS, 1) for topic in ["wake", *topics.values()]]
    for made in admin.create_topics(new).values():
        made.result(WAIT_S)
    wake(bootstrap, "wake")
    return {name: _tell(bootstrap, name, topic) for name, topic in topics.items()}


def _tell(bootstrap: str, name: str, topic: str) -> list[str]:
    play = Play(bootstrap, topic)
    try:
        CASES[name](play)
    except (AssertionError, OSError) as problem:
        play.tell(f"{bootstrap}: {problem!r} {traceback.format_exc(limit=-3)}")
    finally:
        play.close()
    return [line.replace(topic, "TOPIC") for line in play.lines]
