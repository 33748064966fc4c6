"""The leader's part of a classic group: it assigns the partitions, and watches the topics of all members for changes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from barnabas.client.consumer.assignors.assignor import Assignment, ConsumerPartitionAssignor, RebalanceProtocol, Subscription
from barnabas.client.consumer.assignors.protocol import deserialize_subscription, serialize_assignment
from barnabas.client.consumer.membership.membership import Subscriptions
from barnabas.client.consumer.membership.metadata_watch import MetadataWatch, Snapshot
from barnabas.client.errors import IllegalState
from barnabas.client.network.metadata import Metadata
from barnabas.protocol.messages.join_group_response import JoinGroupResponseMember
from barnabas.topic_partition import TopicPartition

log = logging.getLogger(__name__)

COOPERATIVE_STICKY: Final = "cooperative-sticky"
KEEP_TO_SUBSCRIPTIONS: Final = frozenset({"range", "roundrobin", "sticky", COOPERATIVE_STICKY})
METADATA_WAIT_MS: Final = 60_000


class Leader:
    def __init__(self, metadata: Metadata, subscriptions: Subscriptions, watch: MetadataWatch, protocol: RebalanceProtocol | None) -> None:
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._watch = watch
        self._protocol = protocol
        self._assigned_from: Snapshot | None = None
        self._leads = False

    @property
    def out_of_date(self) -> bool:
        """Whether the topics have changed since this leader assigned their partitions."""
        if self._assigned_from is None or self._assigned_from is self._watch.seen:
            return False
        if self._assigned_from != self._watch.seen:
            return True
        self._assigned_from = self._watch.seen  # equal content: the next comparison by identity is immediate
        return False

    def step_down(self) -> None:
        self._leads = False
        self._subscriptions.reset_group_subscription()

    def joined(self) -> None:
        """Only the leader of the current generation watches the topics."""
        if not self._leads:
            self._assigned_from = None

    async def assign(
        self, assignor: ConsumerPartitionAssignor, members: Sequence[JoinGroupResponseMember], skip: bool, generation: int
    ) -> dict[str, bytes]:
        """The serialized assignments by member id. Empty if a returning static leader keeps the previous assignment."""
        subscriptions = {joined.member_id: deserialize_subscription(joined.metadata, joined.group_instance_id) for joined in members}
        topics = {topic for subscription in subscriptions.values() for topic in subscription.topics}
        await self._watch_topics(topics)
        self._leads = True
        if skip:
            log.info("Skipped assignment for returning static leader at generation %d", generation)
            self._assigned_from = self._watch.seen
            return {}
        assignments = assignor.assign(self._metadata.cluster, subscriptions)
        if self._protocol is RebalanceProtocol.COOPERATIVE and assignor.name != COOPERATIVE_STICKY:
            check_cooperative(subscriptions, assignments)
        await self._watch_assigned_topics(assignor.name, assignments, topics)
        self._assigned_from = self._watch.seen
        log.info("Finished assignment for group at generation %d: %s", generation, assignments)
        return {member: serialize_assignment(assignment) for member, assignment in assignments.items()}

    async def _watch_topics(self, topics: Collection[str]) -> None:
        if self._subscriptions.group_subscribe(topics):
            if self._subscriptions.has_pattern_subscription():
                self._metadata.request_update_for_new_topics()
            else:
                self._metadata.set_topics(self._subscriptions.metadata_topics())
        if self._metadata.update_requested:
            await self._metadata.wait_for_update(self._metadata.update_version, METADATA_WAIT_MS)
        self._watch.look_again()

    async def _watch_assigned_topics(self, name: str, assignments: Mapping[str, Assignment], topics: set[str]) -> None:
        """Watches topics that an assignor of the application assigned without a subscription, and warns of topics that it left out."""
        if name in KEEP_TO_SUBSCRIPTIONS:
            return
        assigned = {partition.topic for assignment in assignments.values() for partition in assignment.partitions}
        if topics - assigned:
            log.warning("The following subscribed topics are not assigned to any members: %s", sorted(topics - assigned))
        if assigned - topics:
            log.info("The following not-subscribed topics are assigned, and are watched from now on: %s", sorted(assigned - topics))
            await self._watch_topics(topics | assigned)


def check_cooperative(subscriptions: Mapping[str, Subscription], assignments: Mapping[str, Assignment]) -> None:
    """Raises an error if a partition is assigned to a member before its owner has revoked it."""
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member, assignment in assignments.items():
        owned = set(subscriptions[member].owned_partitions)
        added |= set(assignment.partitions) - owned
        revoked |= owned - set(assignment.partitions)
    if added & revoked:
        log.error(
            "With the COOPERATIVE protocol, owned partitions cannot be reassigned to other members; however the assignor has reassigned "
            "partitions %s which are still owned by some members",
            sorted(map(str, added & revoked)),
        )
        raise IllegalState("Assignor supporting the COOPERATIVE protocol violates its requirements")
