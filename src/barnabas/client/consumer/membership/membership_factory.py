"""Creates the membership for a consumer's settings."""

from __future__ import annotations

from barnabas.client.consumer.config import is_consumer_protocol
from barnabas.client.consumer.membership.classic_membership import ClassicMembership
from barnabas.client.consumer.membership.consumer_membership import ConsumerMembership
from barnabas.client.consumer.membership.group_member import MemberEnvironment
from barnabas.client.consumer.membership.membership import Membership


def make_membership(environment: MemberEnvironment) -> Membership | None:
    """None without `group.id`: then the application assigns partitions, and nothing can be committed.

    No task is started before the first call of a coroutine.
    """
    if environment.config["group.id"] is None:
        return None
    return ConsumerMembership(environment) if is_consumer_protocol(environment.config) else ClassicMembership(environment)
