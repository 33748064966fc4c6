"""Brokers that restarted while there was no controller: their replicas may lack records that were not flushed.

An active controller removes the replicas of a bounced broker from their ISRs before it sends requests to it. A controller that is elected
later finds the broker registered and in the ISR. It detects the restart because the zxid of the registration is greater than that of the
last write of the partition's state. The replicas of the ISR that did not restart have all records, and one of them leads.
"""

from __future__ import annotations

import logging

from barnabas.controller import steps
from barnabas.controller.context import ControllerContext, LeaderAndIsr
from barnabas.controller.steps import Steps
from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


def leave_out_returned(context: ControllerContext) -> Steps[None]:
    """Removes restarted brokers from ISRs. Called at a failover, after the context is read and before any request is sent."""
    changed: dict[TopicPartition, LeaderAndIsr] = {}

    def check(item: tuple[TopicPartition, LeaderAndIsr]) -> None:
        partition, state = item
        stayed = tuple(replica for replica in state.isr if _has_stayed(context, replica, state))
        if stayed and len(stayed) < len(state.isr) and not context.is_topic_queued_for_deletion(partition.topic):
            candidates = (state.leader, *context.replicas(partition), *stayed)
            leader = next(replica for replica in candidates if replica in stayed)
            changed[partition] = state.elected(leader, stayed)

    yield from steps.in_turns(list(context.leadership.items()), check)
    if not changed:
        return
    _log.info("Removing replicas of restarted brokers from the ISRs of %d partitions", len(changed))
    written, _ = yield from steps.update_states(changed, context.epoch, context.epoch_version)
    for partition, outcome in written.items():
        if isinstance(outcome, LeaderAndIsr):
            context.leadership[partition] = outcome


def _has_stayed(context: ControllerContext, broker_id: int, state: LeaderAndIsr) -> bool:
    """Whether a broker is live and registered before the state was written."""
    broker = context.live_brokers.get(broker_id)
    return broker is not None and broker.epoch <= state.zxid
