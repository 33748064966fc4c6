"""Chooses the replicas of one partition that a conversion keeps, and the broker of each afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.layout.errors import NotConvertible
from barnabas.metadata.znodes.topics import PartitionState
from barnabas.topic_partition import TopicPartition

_SYNC_FIRST: Final = "start the brokers as they were, wait until all replicas are in sync, and stop them"


@dataclass(frozen=True)
class Candidate:
    """A replica on disk. `high_watermark` is the checkpointed one."""

    node: int
    log_end_offset: int
    latest_epoch: int
    high_watermark: int


@dataclass(frozen=True)
class Placement:
    """`homes` maps the current broker of each kept replica to its new broker. The other brokers among `replicas` begin empty and fetch
    everything from the leader."""

    replicas: tuple[int, ...]
    homes: Mapping[int, int]


def in_order_of_trust(partition: TopicPartition, state: PartitionState, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The leader first, if it is in sync; then the rest of the ISR, the longest log first; then the others. Raises NotConvertible if the
    first of them may lack acknowledged records."""
    is_in_sync = {candidate.node: candidate.node in state.isr for candidate in candidates}
    if not any(is_in_sync.values()):
        raise NotConvertible(
            f"no replica of {partition} is clean: its ISR is {_listed(state.isr)}, but there are logs of "
            f"{_listed(is_in_sync) if is_in_sync else 'no broker'} only; {_SYNC_FIRST}"
        )
    ordered = sorted(
        candidates,
        key=lambda candidate: (
            not is_in_sync[candidate.node],
            candidate.node != state.leader,
            -candidate.latest_epoch,
            -candidate.log_end_offset,
            candidate.node,
        ),
    )
    committed = max(candidate.high_watermark for candidate in candidates)
    if ordered[0].log_end_offset < committed:
        raise NotConvertible(
            f"no replica of {partition} is clean: that of broker {ordered[0].node} ends at {ordered[0].log_end_offset}, "
            f"but records up to {committed} were acknowledged; {_SYNC_FIRST}"
        )
    return ordered


def spread(source: int | None, factor: int, brokers: Sequence[int], first: int) -> Placement:
    """For a partition with one replica or none: `factor` replicas, round-robin over the brokers from number `first` on, so that the
    preferred leaders of many partitions are spread. If the first broker gets a replica, it gets the existing one: it starts first, and
    can lead before the others have started."""
    start = first % len(brokers)
    replicas = (*brokers[start:], *brokers[:start])[:factor]
    home = brokers[0] if brokers[0] in replicas else replicas[0]
    return Placement(replicas, {} if source is None else {source: home})


def keep(ordered: Sequence[Candidate], replicas: Sequence[int], factor: int, brokers: Sequence[int], first: int) -> Placement:
    """Keeps the `factor` most trusted replicas. A replica stays on its broker where possible; the others go to the brokers without one,
    round-robin from number `first` on."""
    kept = [candidate.node for candidate in ordered[:factor]]
    homes = {node: node for node in kept if node in brokers}
    start = first % len(brokers)
    free = [node for node in (*brokers[start:], *brokers[:start]) if node not in homes]
    for node in kept:
        if node not in homes:
            homes[node] = free.pop(0)
    as_before = [node for node in replicas if node in free]
    empty = [*as_before, *(node for node in free if node not in as_before)][: factor - len(homes)]
    placed = [homes.get(node, node) for node in replicas if node in homes or node in empty]
    return Placement(tuple(dict.fromkeys((*placed, *empty))), homes)


def _listed(nodes: Sequence[int] | Mapping[int, bool]) -> str:
    return ", ".join(map(str, sorted(nodes))) or "empty"
