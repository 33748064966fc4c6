"""Makes the membership that a consumer's settings ask for."""

from __future__ import annotations

from barnabas.client.consumer.config import is_consumer_protocol
from barnabas.client.consumer.membership.classic_membership import ClassicMembership
from barnabas.client.consumer.membership.consumer_membership import ConsumerMembership
from barnabas.client.consumer.membership.group_member import MemberEnvironment
from barnabas.client.consumer.membership.membership import Membership


def make_membership(given: MemberEnvironment) -> Membership | None:
    """None without `group.id`: then partitions are assigned by the application, and nothing can be committed.

    No task is started before the first call of a coroutine.
    """
    if given.config["group.id"] is None:
        return None
    return ConsumerMembership(given) if is_consumer_protocol(given.config) else ClassicMembership(given)
