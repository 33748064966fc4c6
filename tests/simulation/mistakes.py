"""Known mistakes, put into the real broker for as long as a test lasts: the simulator has to find each of them. Only where it is not
compiled, since compiled classes cannot be changed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from barnabas.broker.follower_fetch import FollowerFetch, Following, State
from barnabas.broker.isr import InSyncReplicas, IsrResult
from barnabas.broker.isr_proposals import IsrProposals
from barnabas.broker.partition import REPLICATED, Partition
from barnabas.controller import term
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

NOT_LEADER = 6


def acknowledge_before_the_isr_has_it() -> Any:
    def check_replicated(self: Partition, required_offset: int) -> int:
        return REPLICATED if self.leader_log is not None else NOT_LEADER

    return changed(Partition, "check_replicated", check_replicated)


def let_the_high_watermark_run_ahead() -> Any:
    """To the leader's own end, whoever has what."""

    def move(self: Partition, log: Any, now_ms: int) -> bool:
        return log.maybe_increment_high_watermark(log.end) is not None

    return changed(Partition, "maybe_increment_leader_high_watermark", move)


def truncate_to_the_high_watermark() -> Any:
    def add(self: FollowerFetch, partition: TopicPartition, topic_id: Uuid, leader_epoch: int) -> None:
        self._followed[partition] = Following(topic_id, leader_epoch, self._logs.high_watermark(partition), State.TRUNCATING)

    return changed(FollowerFetch, "add", add)


def shrink_the_isr_without_asking() -> Any:
    """The leader decides by itself, and the controller does not hear of it."""

    def submit(self: IsrProposals, partition: Any, isr: Any, leader_epoch: int, partition_epoch: int, on_done: Callable[..., None]) -> None:
        on_done(IsrResult(0, isr, leader_epoch, partition_epoch))

    return changed(IsrProposals, "submit", submit)


def take_a_replica_into_the_isr_that_is_behind() -> Any:
    def maybe_expand(self: InSyncReplicas, replica: Any) -> None:
        if self.proposed is None and replica.broker_id not in self.committed and self._partition.host.isr_updates is not None:
            self._propose(self.committed | {replica.broker_id})

    return changed(InSyncReplicas, "maybe_expand", maybe_expand)


def trust_brokers_that_came_back() -> Any:
    def nothing(context: Any) -> Generator[Any, Any, None]:
        yield from ()

    return changed(term, "leave_out_returned", nothing)


def do_not_check_the_leader_epoch() -> Any:
    def local_log(self: Partition, current_leader_epoch: int, require_leader: bool) -> Any:
        log = self.leader_log if require_leader else self.log
        if log is None:
            raise self._not_leader()
        return log

    return changed(Partition, "local_log", local_log)


@contextmanager
def changed(where: Any, name: str, what: Any) -> Generator[None, None, None]:
    right = getattr(where, name)
    setattr(where, name, what)
    try:
        yield
    finally:
        setattr(where, name, right)


MISTAKES = [
    acknowledge_before_the_isr_has_it,
    let_the_high_watermark_run_ahead,
    truncate_to_the_high_watermark,
    shrink_the_isr_without_asking,
    take_a_replica_into_the_isr_that_is_behind,
    trust_brokers_that_came_back,
    do_not_check_the_leader_epoch,
]
