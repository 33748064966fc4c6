"""Sixty members of a group with 20 MB of metadata each, and a session of half an hour; then ids of members, given out and never used."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from benchmarks.wire import Client
from tests.attack.expressions import find_coordinator
from tests.attack.wire import address, frame, send

MEMBERS = 60
METADATA_BYTES = 20_000_000
SESSION_TIMEOUT_MS = 1_800_000
REBALANCE_TIMEOUT_MS = 1_800_000
WITHOUT_MEMBER_ID = 3  # the last version in which a member need not come back with an id
WITH_MEMBER_ID = 5
IDS = 5_000
LONG_CLIENT_ID = "a" * 8_000


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    with Client(*address(bootstrap)) as client:
        find_coordinator(client)
    member = frame(_join("large", METADATA_BYTES), WITHOUT_MEMBER_ID)
    pending = frame(_join("pending", 10), WITH_MEMBER_ID, LONG_CLIENT_ID)
    yield
    # Each waits for the others, so each has its connection.
    await send(bootstrap, [member] * MEMBERS, connections=MEMBERS)
    await send(bootstrap, [pending] * IDS, connections=4)


def _join(group_id: str, size: int) -> JoinGroupRequest:
    protocol = JoinGroupRequestProtocol("range", bytes(size))
    return JoinGroupRequest(group_id, SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS, "", None, "consumer", [protocol])
