"""Subscriptions by expressions that take long: to compile, to match one name, or to match many, each in a group of its own (KIP-848)."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator

from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from benchmarks.wire import Client
from tests.attack.wire import address, frame, send

EXPRESSIONS = (
    "(a?){1000}" * 20,  # 80,000 instructions
    "\\pL" * 8_000,  # seconds to parse
    "(?:(?:a|b)?){990}",  # about the largest program that is served
)
GROUPS = 20  # of each expression
TOPICS = 40
NAME_LENGTH = 240
CONNECTIONS = 4
READY_TIMEOUT_S = 30
WARM_UP_GROUPS = 300  # so that every partition of `__consumer_offsets` has a file: creating one is not what is measured


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    with Client(*address(bootstrap)) as client:
        client.create_topics([f"{'ab' * (NAME_LENGTH // 2)}{number:04}" for number in range(TOPICS)])
        find_coordinator(client)
    frames = [frame(_heartbeat(f"g-{number}-{group}", text), 1) for number, text in enumerate(EXPRESSIONS) for group in range(GROUPS)]
    yield
    await send(bootstrap, frames, connections=CONNECTIONS)


def find_coordinator(client: Client) -> None:
    """Until groups are coordinated: the first question creates `__consumer_offsets`."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4).coordinators[0].error_code:
        assert time.monotonic() < deadline, "no group coordinator"
        time.sleep(0.05)
    while client.ask(_heartbeat("ready", "none"), 1).error_code:
        assert time.monotonic() < deadline, "the group coordinator does not serve"
        time.sleep(0.05)
    for number in range(WARM_UP_GROUPS):
        client.ask(_heartbeat(f"ready-{number}", "none"), 1)


def _heartbeat(group_id: str, expression: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id, f"{group_id}-member", 0, rebalance_timeout_ms=60_000, subscribed_topic_regex=expression, topic_partitions=[]
    )
