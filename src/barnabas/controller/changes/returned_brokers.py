"""Brokers that went and came back while nobody was the controller: their replicas may lack what they had not flushed.

A controller that sees a broker bounce takes its replicas out of their ISRs before it speaks to it again. One that is elected later finds
the broker registered and in sync, as if nothing had happened; only the tree knows that its registration is younger than what was written of
the partition. Where others of an ISR have been there all the time, they have everything, and one of them leads.
"""

from __future__ import annotations

import logging

from barnabas.controller import steps
from barnabas.controller.context import ControllerContext, LeaderAndIsr
from barnabas.controller.steps import Steps
from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


def leave_out_returned(context: ControllerContext) -> Steps[None]:
    """At a failover, when everything is read and nobody has been told anything."""
    changed: dict[TopicPartition, LeaderAndIsr] = {}

    def look(found: tuple[TopicPartition, LeaderAndIsr]) -> None:
        partition, state = found
        stayed = tuple(replica for replica in state.isr if _has_stayed(context, replica, state))
        if stayed and len(stayed) < len(state.isr) and not context.is_topic_queued_for_deletion(partition.topic):
            leader = (
                state.leader if state.leader in stayed else next(each for each in (*context.replicas(partition), *stayed) if each in stayed)
            )
            changed[partition] = state.elected(leader, stayed)

    yield from steps.in_turns(list(context.leadership.items()), look)
    if not changed:
        return
    _log.info("Leaving replicas that came back out of the ISRs of %d partitions", len(changed))
    written, _ = yield from steps.update_states(changed, context.epoch, context.epoch_version)
    for partition, outcome in written.items():
        if isinstance(outcome, LeaderAndIsr):
            context.leadership[partition] = outcome


def _has_stayed(context: ControllerContext, broker_id: int, state: LeaderAndIsr) -> bool:
    """Registered before the state was written; and alive, or it could not lead."""
    broker = context.live_brokers.get(broker_id)
    return broker is not None and broker.epoch <= state.zxid
