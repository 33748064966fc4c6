"""ElectLeaders by hand, in each version, about the topics that the tools have left: what no tool sends, and what none shows."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tests.integration.transactions.wire import Connection, Names, text_of

PREFERRED, UNCLEAN, UNKNOWN = 0, 1, 5
ALL = "all partitions"

_LISTS: Final[dict[str, list[tuple[str, list[int]]] | None]] = {
    "some": [("assigned", [3, 0]), ("defaults", [0])],
    "none": [],
    "no partition of a topic": [("assigned", [])],
    "a topic that is not there": [("nowhere", [0]), ("assigned", [1])],
    "partitions that are not there": [("assigned", [9, 0, -1])],
    "names that cannot be": [("a/b", [0]), ("", [0])],
    "doubles": [("assigned", [0, 0]), ("defaults", [0]), ("assigned", [0, 1])],
    ALL: None,
}
_TYPES: Final = {0: {"preferred": PREFERRED}, 1: {"preferred": PREFERRED, "unclean": UNCLEAN, "unknown": UNKNOWN}}
_TYPES[2] = _TYPES[1]

# By name: version and request.
ELECTIONS: Final = {
    f"v{version} {kind}: {name}": (
        version,
        ElectLeadersRequest(number, None if wanted is None else [TopicPartitions(*topic) for topic in wanted], 10_000),
    )
    for version, kinds in _TYPES.items()
    for kind, number in kinds.items()
    for name, wanted in _LISTS.items()
} | {f"v{version}: no time": (version, ElectLeadersRequest(0, [TopicPartitions("assigned", [0])], 0)) for version in _TYPES}


def ask(name: str, bootstrap: str) -> str:
    version, request = ELECTIONS[name]
    connection = Connection(bootstrap)
    try:
        answer = connection.ask(request, version)
    finally:
        connection.close()
    results = answer.replica_election_results
    if request.topic_partitions is None:
        results = sorted(results, key=lambda result: result.topic)  # they come in the order of a hash map
    topics = [f"{result.topic} {[text_of(one, Names()) for one in result.partition_result]}" for result in results]
    return "\n".join([f"error {answer.error_code}", *topics])
