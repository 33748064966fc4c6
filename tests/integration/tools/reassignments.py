"""AlterPartitionReassignments and ListPartitionReassignments by hand, on brokers that have nobody to move anything to."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.integration.transactions.wire import Connection, Names, text_of

HERE: Final = -100  # stands for the broker itself

# What is asked for: by topic, partitions and the brokers each is to be on.
_ALTERATIONS: Final[dict[str, list[tuple[str, list[tuple[int, list[int] | None]]]]]] = {
    "nothing": [],
    "no partition of a topic": [("assigned", [])],
    "where it is": [("assigned", [(0, [HERE]), (2, [HERE])])],
    "taken back": [("assigned", [(0, None), (9, None)]), ("nowhere", [(0, None)])],
    "nowhere": [("assigned", [(0, []), (1, [HERE])])],
    "twice on one broker": [("assigned", [(0, [HERE, HERE])])],
    "brokers that are not there": [("assigned", [(0, [77]), (1, [HERE, 78]), (2, [79, HERE, 78])])],
    "a broker that cannot be": [("assigned", [(0, [-1])])],
    "not there": [("nowhere", [(0, [HERE])]), ("assigned", [(9, [HERE]), (-1, [HERE])]), ("a/b", [(0, [HERE])])],
}
_QUESTIONS: Final[dict[str, list[tuple[str, list[int]]] | None]] = {
    "all": None,
    "none": [],
    "some": [("assigned", [0, 1])],
    "not there": [("nowhere", [0]), ("assigned", [9])],
}

REASSIGNMENTS: Final = [
    *(
        f"alter v{version}, {kind}: {name}"
        for name in _ALTERATIONS
        for version, kind in ((0, "any size"), (1, "any size"), (1, "same size"))
    ),
    *(f"list: {name}" for name in _QUESTIONS),
]


def ask(name: str, bootstrap: str, broker_id: int) -> str:
    what, wanted = name.split(": ")
    connection = Connection(bootstrap)
    try:
        if what == "list":
            return text_of(connection.ask(_question(wanted), 0), Names())
        answer = connection.ask(_alteration(wanted, what.endswith("any size"), broker_id), int(what.split(",")[0][-1]))
        return text_of(answer, Names())
    finally:
        connection.close()


def _question(name: str) -> ListPartitionReassignmentsRequest:
    topics = _QUESTIONS[name]
    return ListPartitionReassignmentsRequest(
        10_000, None if topics is None else [ListPartitionReassignmentsTopics(*topic) for topic in topics]
    )


def _alteration(name: str, any_size: bool, broker_id: int) -> AlterPartitionReassignmentsRequest:
    topics = [
        ReassignableTopic(topic, [ReassignablePartition(number, _placed(replicas, broker_id)) for number, replicas in partitions])
        for topic, partitions in _ALTERATIONS[name]
    ]
    return AlterPartitionReassignmentsRequest(10_000, any_size, topics)


def _placed(replicas: list[int] | None, broker_id: int) -> list[int] | None:
    return None if replicas is None else [broker_id if replica == HERE else replica for replica in replicas]
