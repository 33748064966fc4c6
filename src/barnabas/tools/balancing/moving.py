"""Carries a plan out: throttles, the reassignment, its progress, preferred leaders at the end.

The state of a reassignment is in the cluster, not here. So a run that ends early loses nothing: the next one finds the reassignments in
progress, waits for them and removes the throttles.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from barnabas.administration import replica_moves
from barnabas.administration.copy_progress import CopiedBytes, CopyProgress, pending_copies
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.tools.administration.status_text import size_text
from barnabas.tools.balancing.cluster_load import ClusterLoad
from barnabas.tools.balancing.plan import Plan
from barnabas.tools.balancing.plan_text import counted, progress_line
from barnabas.tools.balancing.sampling import described_partitions, live_nodes, load_between, replica_sizes, sample
from barnabas.tools.balancing.throttles import Throttles
from barnabas.tools.command_line.failures import ToolError, message_of
from barnabas.tools.command_line.progress import RedrawnLine
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

INTERRUPTED: Final = (
    "The moves that have begun go on in the cluster, with their throttle. Run the same command again to follow them and to remove the "
    "throttle, or cancel them with `barnabas balance --cancel`."
)
INTERRUPTED_CODE: Final = 130  # as a shell reports ^C
SAMPLE_S: Final = 10
TIMEOUT_S: Final = 60
_POLL_S: Final = 0.5
_LINE_S: Final = 10.0  # between two lines of progress that are not on a terminal


class Mover:
    """`timeout_s` is how long a broker that gets replicas may be away, or the cluster without an answer, before `wait` gives up."""

    def __init__(self, admin: Admin, timeout_s: float) -> None:
        self._admin = admin
        self._timeout_s = timeout_s
        self._throttles = Throttles(admin)
        self.touched: set[TopicPartition] = set()

    def look(self, sample_s: float) -> ClusterLoad:
        """What brokers carry. Takes `sample_s` seconds, in which traffic is measured."""
        first = sample(self._admin, time.monotonic())
        if sample_s <= 0:
            return load_between(first, first)
        print(f"Measuring traffic for {sample_s:g} s.", file=sys.stderr, flush=True)
        time.sleep(max(0.0, first.monotonic_s + sample_s - time.monotonic()))
        return load_between(first, sample(self._admin, time.monotonic()))

    def in_progress(self) -> dict[TopicPartition, Any]:
        return self._admin.list_partition_reassignments()

    def resume(self) -> None:
        """Waits for the reassignments that another run has begun."""
        reassignments = self.in_progress()
        if reassignments:
            print(f"Continuing {counted(len(reassignments), 'reassignment')} in progress.", flush=True)
            self.touched |= set(reassignments)
            self._wait(self._sizes_now(reassignments))

    def apply(self, plan: Plan, rate: int) -> None:
        """Begins all moves of a plan, or none, and waits until they are complete."""
        alive = {node.id for node in live_nodes(self._admin)}
        dead = sorted({broker for move in plan.moves for broker in move.adding} - alive)
        if dead:
            raise ToolError(
                f"broker {dead[0]} died after the plan was made: start it, or run the command again without it; nothing was moved"
            )
        self._begin(plan, rate, alive)
        self.touched |= set(plan.targets)
        self._wait({(move.partition, broker): move.bytes for move in plan.moves for broker in move.adding})
        current = {one.partition: one.replicas for one in described_partitions(self._admin)}
        missed = [str(move.partition) for move in plan.moves if current.get(move.partition, move.after) != move.after]
        if missed:
            self._throttles.remove()
            raise ToolError(f"{missed[0]} was not moved, because its reassignment was cancelled or replaced: run the command again")

    def cancel(self) -> int:
        """Cancels all reassignments in progress and removes the throttles; returns how many it has cancelled."""
        reassignments = self.in_progress()
        if reassignments:
            outcomes = self._admin.alter_partition_reassignments(dict.fromkeys(reassignments))
            failures = {key: error for key, error in outcomes.errors.items() if error.code != ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
            if failures:
                partition, error = min(failures.items())
                raise ToolError(f"the reassignment of {partition} cannot be cancelled: {message_of(error)}")
        self._throttles.remove()
        return len(reassignments)

    def end(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Removes throttles and elects the preferred leaders, of all partitions or of these."""
        topics = self._throttles.remove()
        if topics:
            print(f"Removed the throttles of all brokers and of {', '.join(topics)}.", flush=True)
        elected = self._elect(partitions)
        if elected:
            print(f"Elected the preferred leaders of {counted(elected, 'partition')}.", flush=True)

    # Beginning

    def _begin(self, plan: Plan, rate: int, alive: Collection[int]) -> None:
        moves = replica_moves.moves({}, plan.targets, {move.partition: move.before for move in plan.moves})
        copied = {partition: move for partition, move in moves.items() if move.destinations}
        try:
            if copied:
                self._throttles.set(copied, rate, alive)
                print(f"Copies are throttled to {rate} bytes a second ({size_text(rate)}/s) on each broker.", flush=True)
            outcomes = self._admin.alter_partition_reassignments(plan.targets, allow_replication_factor_change=True)
        except KafkaError:
            self._remove_unused_throttles()
            raise
        if outcomes.errors:
            begun = list(outcomes.successes)
            if begun:
                self._admin.alter_partition_reassignments(dict.fromkeys(begun))
            self._throttles.remove()
            partition, error = min(outcomes.errors.items())
            raise ToolError(f"the cluster refuses to move {partition}: {message_of(error)}; the other moves were cancelled")

    def _remove_unused_throttles(self) -> None:
        """A request that failed may have begun moves nevertheless, and these need their throttles. The next run finds throttles that
        could not be removed."""
        with suppress(KafkaError):
            if not self.in_progress():
                self._throttles.remove()

    def _sizes_now(self, reassignments: Mapping[TopicPartition, Any]) -> dict[tuple[TopicPartition, int], int]:
        sizes = replica_sizes(self._admin, [node.id for node in live_nodes(self._admin)])
        largest: dict[TopicPartition, int] = {}
        for (partition, _), size in sizes.items():
            largest[partition] = max(size, largest.get(partition, 0))
        return {
            (partition, broker): largest.get(partition, 0)
            for partition, reassignment in reassignments.items()
            for broker in reassignment.adding_replicas
        }

    # Waiting

    def _wait(self, sizes: Mapping[tuple[TopicPartition, int], int]) -> None:
        progress, screen = CopyProgress(sizes), ProgressScreen()
        away_since: dict[int, float] = {}
        failing_since: float | None = None
        while True:
            now = time.monotonic()
            try:
                reassignments = self.in_progress()
                if not reassignments:
                    break
                pending = pending_copies((partition, one.adding_replicas) for partition, one in reassignments.items())
                alive = {node.id for node in live_nodes(self._admin)}
                present = replica_sizes(self._admin, progress.receivers & alive)
                failing_since = None
            except KafkaError as error:  # such as a controller that moves
                failing_since = now if failing_since is None else failing_since
                if now - failing_since > self._timeout_s:
                    raise ToolError(f"the cluster does not answer: {message_of(error)}. {INTERRUPTED}") from error
            else:
                screen.show(progress.at(now, pending, present), now)
                self._check_alive({broker for _, broker in pending}, alive, away_since, now)
            time.sleep(_POLL_S)
        screen.end(progress.at(time.monotonic(), (), {}))

    def _check_alive(self, receivers: Iterable[int], alive: Collection[int], away_since: dict[int, float], now: float) -> None:
        for broker in sorted(receivers):
            if broker in alive:
                away_since.pop(broker, None)
            elif now - away_since.setdefault(broker, now) >= self._timeout_s:
                raise ToolError(
                    f"broker {broker} is away for {self._timeout_s:g} s while replicas move to it: start it and run the command again, or "
                    "cancel all moves with `barnabas balance --cancel`"
                )

    def _elect(self, partitions: Collection[TopicPartition] | None) -> int:
        from barnabas.client.admin.topics.elections import ElectionType

        alive = {node.id for node in live_nodes(self._admin)}
        others = [
            one.partition
            for one in described_partitions(self._admin)
            if one.leader not in (None, one.replicas[0])
            and one.replicas[0] in alive
            and (partitions is None or one.partition in partitions)
        ]
        return len(self._admin.elect_leaders(ElectionType.PREFERRED, others).successes) if others else 0


class ProgressScreen:
    """A line that is redrawn on a terminal's stderr; elsewhere a line on stdout every ten seconds."""

    def __init__(self) -> None:
        self._line = RedrawnLine()
        self._printed_s: float | None = None

    def show(self, progress: CopiedBytes, monotonic_s: float) -> None:
        self._line.show(progress_line(progress))
        if not self._line.is_visible and (self._printed_s is None or monotonic_s - self._printed_s >= _LINE_S):
            self._printed_s = monotonic_s
            print(progress_line(progress), flush=True)

    def end(self, progress: CopiedBytes) -> None:
        self._line.clear()
        print(progress_line(progress), flush=True)
