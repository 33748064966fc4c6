"""Proposes where the replicas of one broker go so that it can be stopped: one move for each of its replicas, and no other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.tools.balancing.cluster_load import ClusterLoad
from barnabas.tools.balancing.load_board import LEADERS, LoadBoard
from barnabas.tools.balancing.plan import Plan

_NAMES_MAX: Final = 5


class CannotDrain(Exception):
    """The replicas of the broker cannot go anywhere. The text is for the user."""


class DrainPlanner:
    """`broker` may be dead: its replicas are then copied from the leaders alone."""

    def __init__(self, load: ClusterLoad, broker: int) -> None:
        self._load = load
        self._broker = broker
        self._targets = [other for other in load.open_ids if other != broker]
        self._cordoned = [other for other in load.cordoned_ids if other != broker]
        self._board = LoadBoard(load, self._targets, self._cordoned)

    def plan(self) -> Plan:
        board, broker = self._board, self._broker
        concerned = [index for index, replicas in enumerate(board.replicas) if broker in replicas]
        self._check(concerned)
        # The largest first: small ones fill the gaps that remain.
        for index in sorted(concerned, key=lambda one: (-board.partitions[one].bytes, -board.partitions[one].rate, one)):
            board.move(index, broker, self._target(index))
            self._choose_leader(index)
        return Plan.between(self._load, board.assignment())

    def _check(self, concerned: Sequence[int]) -> None:
        board, broker = self._board, self._broker
        if not self._targets and self._cordoned:
            raise CannotDrain(
                f"all brokers but {broker} are cordoned, and get no replicas: remove cordoned.log.dirs of one before you drain it"
            )
        if not self._targets:
            raise CannotDrain(f"broker {broker} is the only broker: start another one before you drain it")
        too_many = [index for index in concerned if len(board.replicas[index]) > len(self._targets) + self._kept_on_cordoned(index)]
        if too_many:
            count = max(len(board.replicas[index]) for index in too_many)
            topics = {board.partitions[index].partition.topic for index in too_many}
            raise CannotDrain(
                f"without broker {broker}, {_counted(len(self._targets), 'broker')}{' without a cordon' if self._cordoned else ''} cannot "
                f"keep the {count} replicas of {_some(topics)}: "
                "start another broker, or lower their replication factor with reassign-partitions"
            )
        leaderless = [str(board.partitions[index].partition) for index in concerned if board.partitions[index].leader is None]
        if leaderless:
            raise CannotDrain(
                f"{_some(leaderless)} cannot be copied without a leader: start the brokers that have their replicas, then drain {broker}"
            )

    def _kept_on_cordoned(self, index: int) -> int:
        return sum(other in self._board.replicas[index] for other in self._cordoned)

    def _target(self, index: int) -> int:
        """The broker with room that keeps the most racks; among those the one after which brokers are most even."""
        board, broker = self._board, self._broker
        others = [one for one in board.replicas[index] if one != broker]
        possible = [target for target in self._targets if target not in others and board.has_room(index, target)]
        if not possible:
            one = board.partitions[index]
            raise CannotDrain(f"no broker has room for the {one.bytes} bytes of {one.partition}: add disks or another broker")

        def order(target: int) -> tuple[int, float, int, int]:
            cost = round(board.cost_of_arrival(index, broker, target), 9)
            return -board.racks([*others, target]), cost, board.replicas_of_topic(index, target), target

        return min(possible, key=order)

    def _choose_leader(self, index: int) -> None:
        """If the broker was the preferred leader, the replica whose broker leads least follows it; otherwise nothing changes."""
        board = self._board
        if board.partitions[index].replicas[0] != self._broker:
            return
        first = board.replicas[index][0]
        alive = [one for one in board.replicas[index] if one in board.loads]
        leads = {one: board.loads[one][LEADERS] - (one == first) for one in alive}
        leader = min(alive, key=lambda one: (leads[one], one != first, one))
        if leader != first:
            board.lead(index, leader)


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - _NAMES_MAX
    return ", ".join(ordered[:_NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
