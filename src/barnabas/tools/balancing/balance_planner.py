"""Proposes which replicas move so that brokers carry about the same, with few moves.

`BalancePlanner` takes a ClusterLoad and returns a Plan; it sends nothing, and the same load gives the same plan. Preferred leaders change
first, because that copies nothing. Then it takes the broker that is furthest from the mean, as long as one is further than `TOLERANCE`, and
makes the move that evens the brokers most. It never lowers the number of racks of a partition and never raises a broker above the highest
of now, except up to a little more than the mean. Cordoned brokers keep what they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.tools.balancing.cluster_load import ClusterLoad
from barnabas.tools.balancing.load_board import BYTES, LEADERS, REPLICAS, TOLERANCE, TRAFFIC, LoadBoard
from barnabas.tools.balancing.plan import Plan

_MOVED: Final = (BYTES, TRAFFIC, REPLICAS)
_PARTNERS_MAX: Final = 8  # brokers considered on the other side of a move; the extremes suffice, and 100 brokers take seconds
_GAIN_MIN: Final = 1e-9

Move = tuple[int, int, int]  # partition, source, target


class BalancePlanner:
    def __init__(self, load: ClusterLoad) -> None:
        self._load = load
        self._board = LoadBoard(load, load.open_ids, load.cordoned_ids)

    def plan(self) -> Plan:
        """Leaders and replicas by turns, until neither can be improved. The score falls with each change, so it ends."""
        while self._change_leaders() + self._move_replicas():
            pass
        return Plan.between(self._load, self._board.assignment())

    # Replicas

    def _move_replicas(self) -> int:
        count = 0
        while (move := self._next_move()) is not None:
            self._board.move(*move)
            count += 1
        return count

    def _next_move(self) -> Move | None:
        for broker, dimension in self._uneven():
            move = self._best(broker, dimension)
            if move is not None:
                return move
        return None

    def _uneven(self) -> list[tuple[int, int]]:
        """Brokers too far from the mean of a dimension, the furthest first."""
        board = self._board
        distances = [
            (abs(board.excess(broker, d)) - TOLERANCE[d], broker, d)
            for broker in board.brokers
            for d in _MOVED
            if abs(board.excess(broker, d)) > TOLERANCE[d]
        ]
        return [(broker, d) for _, broker, d in sorted(distances, key=lambda row: (-row[0], _MOVED.index(row[2]), row[1]))]

    def _best(self, broker: int, dimension: int) -> Move | None:
        """The move from or to a broker that lowers the score most. Among equal ones: to a broker with few replicas of the topic, few
        bytes, and the first by name."""
        board = self._board
        best: tuple[float, int, int, Move] | None = None
        for index, source, target in self._candidates(broker, dimension):
            gain = round(board.gain_of_move(index, source, target), 9)
            if gain <= _GAIN_MIN or (best is not None and -gain > best[0]):
                continue  # the cheapest check first
            if not board.may_move(index, source, target) or not board.stays_below_limits(index, source, target):
                continue
            order = (-gain, board.replicas_of_topic(index, target), board.partitions[index].bytes, (index, source, target))
            if best is None or order < best:
                best = order
        return None if best is None else best[3]

    def _candidates(self, broker: int, dimension: int) -> Iterator[Move]:
        board = self._board
        others = sorted((other for other in board.brokers if other != broker), key=lambda other: (board.excess(other, dimension), other))
        if board.excess(broker, dimension) > 0:
            pairs = [(broker, target) for target in others[:_PARTNERS_MAX]]
        else:
            pairs = [(source, broker) for source in reversed(others[-_PARTNERS_MAX:])]
        for source, target in pairs:
            if board.excess(source, dimension) > board.excess(target, dimension):
                yield from ((index, source, target) for index in board.on[source])

    # Leaders

    def _change_leaders(self) -> int:
        count = 0
        while self._shift_lead():
            count += 1
        while self._lighten_leader():
            count += 1
        return count

    def _shift_lead(self) -> bool:
        """Gives one partition of the broker that leads most to one that leads at least two fewer; over others if no partition has a
        replica on both."""
        board = self._board
        for first in sorted(board.brokers, key=lambda broker: (-board.loads[broker][LEADERS], broker)):
            if board.excess(first, LEADERS) <= TOLERANCE[LEADERS]:
                return False
            path = self._path(first)
            if path:
                for index, leader in path:
                    board.lead(index, leader)
                return True
        return False

    def _path(self, first: int) -> list[tuple[int, int]]:
        """The shortest chain of changes, as pairs of partition and new leader, at whose end a broker leads at least two fewer. A broker on
        the way gets one partition and gives one away."""
        board = self._board
        if min(board.loads[broker][LEADERS] for broker in board.brokers) > board.loads[first][LEADERS] - 2:
            return []
        chains: dict[int, list[tuple[int, int]]] = {first: []}
        waiting = [first]
        while waiting:
            broker = waiting.pop(0)
            for index in board.led_by(broker):
                for other in board.replicas[index][1:]:
                    if other in chains or not board.may_lead(other) or not board.lead_stays_below_limits(index, other, (TRAFFIC,)):
                        continue
                    chains[other] = [*chains[broker], (index, other)]
                    if board.loads[other][LEADERS] <= board.loads[first][LEADERS] - 2:
                        if self._lowers_score(chains[other]):
                            return chains[other]
                        continue
                    waiting.append(other)
        return []

    def _lowers_score(self, chain: list[tuple[int, int]]) -> bool:
        board = self._board
        before, undo = board.score(), []
        for index, leader in chain:
            undo.append((index, board.replicas[index][0]))
            board.lead(index, leader)
        lower = board.score() < before - _GAIN_MIN
        for index, leader in reversed(undo):
            board.lead(index, leader)
        return lower

    def _lighten_leader(self) -> bool:
        """Gives a partition of a broker with too much traffic to another leader, if that evens the brokers."""
        board = self._board
        for broker in sorted(board.brokers, key=lambda one: (-board.excess(one, TRAFFIC), one)):
            if board.excess(broker, TRAFFIC) <= TOLERANCE[TRAFFIC]:
                return False
            changes = [
                (-round(board.gain_of_lead(index, other), 9), index, other)
                for index in board.led_by(broker)
                for other in board.replicas[index][1:]
                if board.may_lead(other) and board.lead_stays_below_limits(index, other)
            ]
            if changes and min(changes)[0] < -_GAIN_MIN:
                _, index, other = min(changes)
                board.lead(index, other)
                return True
            if self._exchange_lead(broker):
                return True
        return False

    def _exchange_lead(self, broker: int) -> bool:
        """Exchanges a partition of this leader for one with less traffic: both brokers lead as many as before."""
        board = self._board
        best: tuple[float, int, int] | None = None
        for other in board.brokers:
            ours = [index for index in board.led_by(broker) if other in board.replicas[index]]
            theirs = [index for index in board.led_by(other) if broker in board.replicas[index]] if ours else []
            if not theirs or board.excess(other, TRAFFIC) >= board.excess(broker, TRAFFIC):
                continue
            quiet = min(theirs, key=lambda index: (board.partitions[index].rate * len(board.replicas[index]), index))
            for index in ours:
                change = (-round(board.gain_of_exchange(index, quiet), 9), index, quiet)
                if change[0] < -_GAIN_MIN and (best is None or change < best):
                    best = change
        if best is None:
            return False
        _, index, quiet = best
        other = board.replicas[quiet][0]
        board.lead(quiet, broker)
        board.lead(index, other)
        return True
