"""Makes the membership that a consumer's settings ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.client.clock import Clock
from barnabas.client.config import ClientConfig
from barnabas.client.consumer.classic_membership import ClassicMembership
from barnabas.client.consumer.config import is_consumer_protocol
from barnabas.client.consumer.consumer_membership import ConsumerMembership
from barnabas.client.consumer.interceptors import ConsumerInterceptors
from barnabas.client.consumer.membership import Membership
from barnabas.client.consumer.rebalance_listener import CallUser, call_here
from barnabas.client.consumer.subscription_state import SubscriptionState
from barnabas.client.metadata import Metadata
from barnabas.client.metrics import Metrics

if TYPE_CHECKING:
    from barnabas.client.network_client import NetworkClient


def make_membership(
    config: ClientConfig,
    client: NetworkClient,
    metadata: Metadata,
    subscriptions: SubscriptionState,
    *,
    clock: Clock,
    metrics: Metrics,
    interceptors: ConsumerInterceptors,
    wake: Callable[[], None],
    call_user: CallUser = call_here,
) -> Membership | None:
    """None without `group.id`: then partitions are assigned by the application, and nothing can be committed.

    `wake` is called, on the loop, when a poll that waits for records should look at the membership again. `call_user` runs what belongs to
    the application (listeners) where the application runs. No task is started before the first call of a coroutine.
    """
    if config["group.id"] is None:
        return None
    kind = ConsumerMembership if is_consumer_protocol(config) else ClassicMembership
    return kind(
        config,
        client,
        metadata,
        subscriptions,
        clock=clock,
        metrics=metrics,
        interceptors=interceptors,
        wake=wake,
        call_user=call_user,
    )
