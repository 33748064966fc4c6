"""The state machine of partitions: the valid transitions, and the work of each.

    NonExistent ──▶ New ──▶ Online ◀──▶ Offline ──▶ NonExistent
                     └────────────────────▲

New: replicas are assigned, there is no leader yet. Online: there is a leader. Offline: the leader is offline, or none was found. Only the
transition to Online writes to the metadata store and sends requests: it creates the states of new partitions and elects leaders for the
others. A partition whose transition fails is logged and keeps its state; the others are not affected.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from barnabas import loggers
from barnabas.controller import elections, steps
from barnabas.controller.config import ControllerConfig
from barnabas.controller.context import ControllerContext, LeaderAndIsr, PartitionStatus
from barnabas.controller.elections import ElectionResult, ElectionStrategy
from barnabas.controller.states.request_batch import RequestBatch
from barnabas.controller.steps import ControllerMoved, StateChangeFailed, Steps
from barnabas.loggers import TRACE, Prefixed
from barnabas.metadata.errors import NoNode, SessionExpired, TreeError
from barnabas.topic_partition import TopicPartition

VALID_PREVIOUS_STATES: Final[Mapping[PartitionStatus, frozenset[PartitionStatus]]] = {
    PartitionStatus.NEW: frozenset({PartitionStatus.NON_EXISTENT}),
    PartitionStatus.ONLINE: frozenset({PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
    PartitionStatus.OFFLINE: frozenset({PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
    PartitionStatus.NON_EXISTENT: frozenset({PartitionStatus.OFFLINE}),
}

UNCLEAN_LEADER_ELECTION_ENABLE: Final = "unclean.leader.election.enable"

# The result of each election: the new leader and ISR, or the error.
ElectionOutcomes = dict[TopicPartition, "LeaderAndIsr | Exception"]

_log = logging.getLogger(__name__)
_state_changes = logging.getLogger(loggers.STATE_CHANGE)


class PartitionStateMachine:
    def __init__(
        self, controller_id: int, context: ControllerContext, config: ControllerConfig, new_batch: Callable[[], RequestBatch]
    ) -> None:
        self._controller_id = controller_id
        self._log = Prefixed(_log, f"[PartitionStateMachine controllerId={controller_id}] ")
        self._context = context
        self._config = config
        self._new_batch = new_batch

    def startup(self) -> Steps[None]:
        """At a failover: sets the state of each partition from the context, then elects leaders for the partitions without one."""
        self._log.info("Initializing partition state")
        for partition in self._context.all_partitions():
            state = self._context.leadership.get(partition)
            if state is None:
                status = PartitionStatus.NEW
            elif self._context.is_replica_online(state.leader, partition):
                status = PartitionStatus.ONLINE
            else:
                status = PartitionStatus.OFFLINE
            self._context.put_partition_state(partition, status)
        self._log.info("Triggering online partition state changes")
        yield from self.trigger_online()

    def trigger_online(self, topic: str | None = None) -> Steps[ElectionOutcomes]:
        """Elects leaders for the partitions without one, of all topics or of one."""
        context = self._context
        if topic is None:
            waiting = context.partitions_in(PartitionStatus.OFFLINE, PartitionStatus.NEW)
        else:
            states = (PartitionStatus.OFFLINE, PartitionStatus.NEW)
            waiting = [partition for partition in context.partitions_of(topic) if context.partition_state(partition) in states]
        partitions = [partition for partition in waiting if not context.is_topic_queued_for_deletion(partition.topic)]
        return (yield from self.handle_state_changes(partitions, PartitionStatus.ONLINE, ElectionStrategy.OFFLINE))

    def handle_state_changes(
        self, partitions: Sequence[TopicPartition], target: PartitionStatus, strategy: ElectionStrategy = ElectionStrategy.OFFLINE
    ) -> Steps[ElectionOutcomes]:
        if not partitions:
            return {}
        try:
            valid = yield from self._valid(partitions, target)
            if target is not PartitionStatus.ONLINE:
                yield from steps.in_turns(valid, lambda partition: self._put_state(partition, target))
                return {}
            batch = self._new_batch()
            outcomes = yield from self._bring_online(valid, strategy, batch)
            batch.send()
            return outcomes
        except ControllerMoved:
            self._log.error("Controller moved to another broker when moving some partitions to %s state", target)
            raise
        except SessionExpired:
            raise
        except Exception as error:
            self._log.exception("Error while moving some partitions to %s state", target)
            return dict.fromkeys(partitions, error)

    def _put_state(self, partition: TopicPartition, target: PartitionStatus) -> None:
        """Changes to a state without a leader, and logs it: a new partition at INFO, the others at TRACE, as Kafka does."""
        context = self._context
        if target is PartitionStatus.NEW:
            if _state_changes.isEnabledFor(logging.INFO):
                _state_changes.info(
                    "[Controller id=%d epoch=%d] Changed partition %s state from %s to %s with assigned replicas %s",
                    self._controller_id,
                    context.epoch,
                    partition,
                    context.partition_state(partition),
                    target,
                    ",".join(map(str, context.replicas(partition))),
                )
        elif _state_changes.isEnabledFor(TRACE):
            _state_changes.log(
                TRACE,
                "[Controller id=%d epoch=%d] Changed partition %s state from %s to %s",
                self._controller_id,
                context.epoch,
                partition,
                context.partition_state(partition),
                target,
            )
        context.put_partition_state(partition, target)

    def _put_online(self, partition: TopicPartition, state: LeaderAndIsr) -> None:
        context = self._context
        if _state_changes.isEnabledFor(logging.INFO):
            _state_changes.info(
                "[Controller id=%d epoch=%d] Changed partition %s from %s to %s with state %s",
                self._controller_id,
                context.epoch,
                partition,
                context.partition_state(partition),
                PartitionStatus.ONLINE,
                state,
            )
        context.put_partition_state(partition, PartitionStatus.ONLINE)

    def _valid(self, partitions: Sequence[TopicPartition], target: PartitionStatus) -> Steps[list[TopicPartition]]:
        valid: list[TopicPartition] = []

        def check(partition: TopicPartition) -> None:
            if self._context.partition_state(partition) in VALID_PREVIOUS_STATES[target]:
                valid.append(partition)
            else:
                self._log_failure(partition, target, self._invalid_transition(partition, target))

        yield from steps.in_turns(partitions, check)
        return valid

    def _bring_online(
        self, partitions: Sequence[TopicPartition], strategy: ElectionStrategy, batch: RequestBatch
    ) -> Steps[ElectionOutcomes]:
        new = [partition for partition in partitions if self._context.partition_state(partition) is PartitionStatus.NEW]
        led_before = [partition for partition in partitions if self._context.partition_state(partition) is not PartitionStatus.NEW]
        if new:
            yield from self._initialize(new, batch)
        outcomes: ElectionOutcomes = {}
        while led_before:
            finished, led_before = yield from self._elect(led_before, strategy, batch)
            outcomes |= finished
        for partition, outcome in outcomes.items():
            if isinstance(outcome, Exception):
                self._log_failure(partition, PartitionStatus.ONLINE, outcome)
            else:
                self._put_online(partition, outcome)
        return outcomes

    def _initialize(self, partitions: Sequence[TopicPartition], batch: RequestBatch) -> Steps[None]:
        """Creates the states of new partitions: the first live replica leads, and all live replicas are in sync, as the logs are empty."""
        context = self._context
        states: dict[TopicPartition, LeaderAndIsr] = {}

        def choose(partition: TopicPartition) -> None:
            live = tuple(replica for replica in context.replicas(partition) if context.is_replica_online(replica, partition))
            if live:
                states[partition] = LeaderAndIsr(live[0], live, controller_epoch=context.epoch)
            else:
                assigned = ",".join(map(str, context.replicas(partition)))
                reason = (
                    f"Controller {self._controller_id} epoch {context.epoch} encountered error during state change of partition "
                    f"{partition} from New to Online, assigned replicas are [{assigned}], live brokers are "
                    f"[{','.join(map(str, context.live_brokers))}]. No assigned replica is alive."
                )
                self._log_failure(partition, PartitionStatus.NEW, reason)

        def announce(written: tuple[TopicPartition, TreeError | None]) -> None:
            partition, error = written
            if error is not None:
                self._log_failure(partition, PartitionStatus.ONLINE, error)
                return
            state = context.leadership[partition] = states[partition]
            batch.add_leader_and_isr(state.isr, partition, state, is_new=True)
            self._put_online(partition, state)

        yield from steps.in_turns(partitions, choose)
        written = yield from steps.create_states(states, context.epoch_version)
        yield from steps.in_turns(written.items(), announce)

    def _elect(
        self, partitions: Sequence[TopicPartition], strategy: ElectionStrategy, batch: RequestBatch
    ) -> Steps[tuple[ElectionOutcomes, list[TopicPartition]]]:
        """Returns the outcomes, and the partitions whose znode changed between the read and the write, which must be tried again."""
        context = self._context
        outcomes: ElectionOutcomes = {}
        current: dict[TopicPartition, LeaderAndIsr] = {}
        for partition, state in (yield from steps.read_states(partitions)).items():
            if isinstance(state, LeaderAndIsr) and state.controller_epoch <= context.epoch:
                current[partition] = state
            else:
                outcomes[partition] = self._election_error(partition, state)
        elected: dict[TopicPartition, LeaderAndIsr] = {}
        recipients = {}
        for result in (yield from self._choose(current, strategy)):
            if result.leader_and_isr is None:
                fault = f"Failed to elect leader for partition {result.partition} under strategy {strategy.value}"
                outcomes[result.partition] = StateChangeFailed(fault)
            else:
                elected[result.partition] = result.leader_and_isr
                recipients[result.partition] = result.recipients
        written, again = yield from steps.update_states(elected, context.epoch, context.epoch_version)
        for partition, outcome in written.items():
            outcomes[partition] = outcome
            if isinstance(outcome, LeaderAndIsr):
                context.leadership[partition] = outcome
                if outcome.leader not in current[partition].isr:
                    context.unclean_leader_elections += 1
                    self._log.warning(
                        "No broker in ISR is alive for %s. Elect leader %d from live brokers %s. There's potential data loss.",
                        partition,
                        outcome.leader,
                        ",".join(map(str, recipients[partition])),
                    )
                batch.add_leader_and_isr(recipients[partition], partition, outcome, is_new=False)
        return outcomes, again

    def _choose(self, current: Mapping[TopicPartition, LeaderAndIsr], strategy: ElectionStrategy) -> Steps[list[ElectionResult]]:
        context = self._context
        if strategy is ElectionStrategy.REASSIGN:
            return [elections.reassigned_leader(context, partition, state) for partition, state in current.items()]
        if strategy is ElectionStrategy.PREFERRED:
            return [elections.preferred_leader(context, partition, state) for partition, state in current.items()]
        if strategy is ElectionStrategy.CONTROLLED_SHUTDOWN:
            return [elections.controlled_shutdown_leader(context, partition, state) for partition, state in current.items()]
        allow_all = strategy is ElectionStrategy.OFFLINE_UNCLEAN
        lost = [partition for partition, state in current.items() if not elections.has_live_isr(context, partition, state)]
        topics = [] if allow_all else list(dict.fromkeys(partition.topic for partition in lost))
        allowed = yield from self._topics_that_allow_unclean(topics)
        return [
            elections.offline_leader(context, partition, state, allow_all or partition.topic in allowed)
            for partition, state in current.items()
        ]

    def _topics_that_allow_unclean(self, topics: Sequence[str]) -> Steps[set[str]]:
        if not topics:
            return set()
        allowed = set()
        default = "true" if self._config.unclean_leader_election_enable else "false"
        for topic, config in (yield from steps.read_topic_configs(topics)).items():
            if isinstance(config, TreeError):
                self._log.error("The config of topic %s could not be read, so no unclean leader is elected for it: %s", topic, config)
            elif config.get(UNCLEAN_LEADER_ELECTION_ENABLE, default).strip().lower() == "true":
                allowed.add(topic)
        return allowed

    def _election_error(self, partition: TopicPartition, state: LeaderAndIsr | Exception) -> Exception:
        if isinstance(state, LeaderAndIsr):
            return StateChangeFailed(
                f"Aborted leader election for partition {partition} since the LeaderAndIsr path was already written by another controller. "
                f"This probably means that another controller was elected with epoch {state.controller_epoch}."
            )
        if isinstance(state, NoNode):
            status = self._context.partition_state(partition)
            return StateChangeFailed(f"LeaderAndIsr information doesn't exist for partition {partition} in {status} state")
        return state

    def _invalid_transition(self, partition: TopicPartition, target: PartitionStatus) -> str:
        allowed = ",".join(str(state) for state in sorted(VALID_PREVIOUS_STATES[target]))
        return (
            f"Partition {partition} should be in one of {allowed} states before moving to {target} state. "
            f"Instead it is in {self._context.partition_state(partition)} state"
        )

    def _log_failure(self, partition: TopicPartition, target: PartitionStatus, reason: object) -> None:
        epoch = self._context.epoch
        _state_changes.error(
            "[Controller id=%d epoch=%d] Controller %d epoch %d failed to change state for partition %s from %s to %s: %s",
            self._controller_id,
            epoch,
            self._controller_id,
            epoch,
            partition,
            self._context.partition_state(partition),
            target,
            reason,
        )
