"""The ACLs in the metadata store: conflicts, failures, and notifications of other brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from barnabas.broker.security.authorizer.acl_store import UPDATE_RETRIES_MAX, AclStore, Entries
from barnabas.errors import KafkaError
from barnabas.metadata.change_listener import CHANGE_EXPIRATION_MS
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import BadVersion
from barnabas.metadata.local import LocalTree
from barnabas.metadata.tree import CreateMode, Multi, TreeRequest, TreeResponse
from barnabas.security.acl import AccessControlEntry, ResourcePattern
from tests.unit.broker.security.authorizer.acls import PREFIXED, acl

ORDERS = acl("orders").pattern
ALICE = acl("orders").entry
BOB = acl("orders", principal="User:bob").entry


class Contended(TreeClient):
    """Another broker changes a node before each write of this one, `conflicts` times."""

    conflicts = 0

    async def handle(self, requests: Sequence[TreeRequest[Any]]) -> list[TreeResponse[Any]]:
        if self.conflicts and any(isinstance(request, Multi) for request in requests):
            self.conflicts -= 1
            return [TreeResponse(request, None, BadVersion("/kafka-acl/Topic/orders")) for request in requests]
        return await super().handle(requests)


class Kept:
    """A store, and the ACLs that it reports."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000  # of the machine of the metadata store
        self.monotonic_ms = 0
        self.client = Contended(LocalTree(lambda: self.now_ms), lambda: None)
        self.acls: dict[ResourcePattern, Entries] = {}
        self.store = AclStore(self.client, lambda: self.monotonic_ms, self.acls.__setitem__, self._loaded, backoff_s=0)

    def _loaded(self, acls: Mapping[ResourcePattern, Entries]) -> None:
        self.acls.clear()
        self.acls.update(acls)

    async def add(self, entry: AccessControlEntry, pattern: ResourcePattern = ORDERS) -> KafkaError | None:
        return (await self.store.change({pattern: lambda entries: [*entries, entry]}))[pattern]

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


def with_store(test: Callable[[Kept], Awaitable[None]]) -> None:
    async def life() -> None:
        kept = Kept()
        await kept.client.connect()
        await kept.store.start()
        try:
            await test(kept)
        finally:
            await kept.store.close()
            await kept.client.close()

    asyncio.run(life())


def test_a_write_that_meets_another_is_tried_again_on_what_is_there_now() -> None:
    async def test(kept: Kept) -> None:
        await kept.add(ALICE)
        kept.client.conflicts = UPDATE_RETRIES_MAX
        assert await kept.add(BOB) is None
        assert list(kept.acls[ORDERS]) == [ALICE, BOB]

    with_store(test)


def test_a_write_that_always_meets_another_fails_and_changes_nothing() -> None:
    async def test(kept: Kept) -> None:
        await kept.add(ALICE)
        kept.client.conflicts = UPDATE_RETRIES_MAX + 1
        error = await kept.add(BOB)
        assert str(error) == f"Failed to update ACLs for {ORDERS} after trying a maximum of 10 times"
        assert list(kept.acls[ORDERS]) == [ALICE]

    with_store(test)


def test_without_a_session_a_change_fails_and_is_not_obeyed() -> None:
    async def test(kept: Kept) -> None:
        await kept.client._session.close()  # type: ignore[union-attr]
        error = await kept.add(ALICE)
        assert type(error) is KafkaError
        assert kept.acls == {}

    with_store(test)


def test_a_change_is_written_with_its_notification_or_not_at_all() -> None:
    async def test(kept: Kept) -> None:
        await kept.client.delete("/kafka-acl-changes")
        assert await kept.add(ALICE) is not None
        assert await kept.client.get("/kafka-acl/Topic/orders") is None
        assert kept.acls == {}

    with_store(test)


def test_each_pattern_of_a_change_has_its_own_result() -> None:
    async def test(kept: Kept) -> None:
        too_long = ResourcePattern(ORDERS.resource_type, "n" * 2_000_000)
        errors = await kept.store.change({too_long: lambda _: [ALICE], ORDERS: lambda _: [ALICE]})
        assert type(errors[too_long]) is KafkaError
        assert errors[ORDERS] is None
        assert list(kept.acls) == [ORDERS]

    with_store(test)


def test_a_notification_that_cannot_be_read_does_not_hold_up_those_behind_it() -> None:
    async def test(kept: Kept) -> None:
        await kept.client.create("/kafka-acl/Topic/orders", b'{"version":1,"acls":[]}')
        await kept.client.set_data(
            "/kafka-acl/Topic/orders",
            b'{"version":1,"acls":[{"host":"*","permissionType":"Allow","operation":"Read","principal":"User:alice"}]}',
        )
        for data in (b"", b"TOPIC", b"\xff", b"PLANET:earth", b"Topic:orders"):
            await kept.client.create("/kafka-acl-changes/acl_changes_", data, CreateMode.PERSISTENT_SEQUENTIAL)
        for data in (b"{", b"[]", b'{"version":2,"resourceType":"TOPIC","name":"a","patternType":"PREFIXED"}'):
            await kept.client.create("/kafka-acl-extended-changes/acl_changes_", data, CreateMode.PERSISTENT_SEQUENTIAL)
        await kept.settle()
        assert list(kept.acls[ORDERS]) == [ALICE]

    with_store(test)


def test_old_notifications_are_deleted_with_the_next_change() -> None:
    async def test(kept: Kept) -> None:
        await kept.add(ALICE)
        await kept.add(ALICE, acl("ord", pattern_type=PREFIXED).pattern)
        await kept.settle()
        kept.monotonic_ms += CHANGE_EXPIRATION_MS + 1
        await kept.add(BOB)
        await kept.settle()
        changes = await kept.client.children("/kafka-acl-changes")
        assert changes is not None
        assert changes.names == ["acl_changes_0000000001"]

    with_store(test)


def test_a_clock_that_is_set_deletes_no_notification() -> None:
    """Another broker may not have read it yet, and would obey an ACL that is no more."""

    async def test(kept: Kept) -> None:
        await kept.add(ALICE)
        await kept.settle()
        for step_ms in (100 * CHANGE_EXPIRATION_MS, -200 * CHANGE_EXPIRATION_MS):
            kept.now_ms += step_ms
            await kept.add(BOB, acl(f"other{step_ms}").pattern)
            await kept.settle()
        changes = await kept.client.children("/kafka-acl-changes")
        assert changes is not None and len(changes.names) == 3

    with_store(test)
