"""The connection to the coordinator of a group: finds the coordinator when needed, and drops it when it is unreachable or no longer
coordinator.

All requests of a membership go through this class, on a connection of their own that no fetch blocks. All callers share one lookup of the
coordinator, which continues if one of them stops waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from barnabas.client.clock import Clock
from barnabas.client.cluster import Node
from barnabas.client.errors import (
    CoordinatorNotAvailable,
    Disconnected,
    GroupAuthorization,
    KafkaError,
    NotCoordinator,
    Timeout,
)
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.broker_versions import BrokerVersions
from barnabas.client.network.network_client import GROUP_COORDINATOR, NetworkClient
from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)
T = TypeVar("T")


class CoordinatorRequestManager:
    def __init__(self, client: NetworkClient, group_id: str, *, clock: Clock, backoff: ExponentialBackoff) -> None:
        self.on_found: list[Callable[[], None]] = []
        self._client = client
        self._group_id = group_id
        self._clock = clock
        self._backoff = backoff
        self._node: Node | None = None
        self._lookup: asyncio.Task[None] | None = None
        self._next_lookup_ms = 0
        self._failures = 0

    @property
    def node(self) -> Node | None:
        """The coordinator; None if it must be looked up, also because its connection is broken."""
        if self._node is not None and self._is_unreachable(self._node.id):
            self.mark_unknown("coordinator unavailable", disconnected=True)
        return self._node

    @property
    def is_unknown(self) -> bool:
        return self._node is None

    def mark_unknown(self, reason: object, *, disconnected: bool = False) -> None:
        """Drops the coordinator. Requests in flight to it fail, so that no caller waits for a broker that is no longer coordinator."""
        if self._node is not None:
            log.info("Group coordinator %s is unavailable or invalid due to cause: %s. Rediscovery will be attempted.", self._node, reason)
            node, self._node = self._node, None
            if not disconnected:
                self._client.disconnect(node.id)

    async def ensure_ready(self, deadline_ms: int) -> bool:
        """Whether the coordinator was found before the deadline. Raises an error that makes further lookups pointless."""
        while self.node is None:
            if self._lookup is None and self._next_lookup_ms > self._clock.monotonic_ms():
                await sleep_until(min(deadline_ms, self._next_lookup_ms), self._clock)
                if self._next_lookup_ms > self._clock.monotonic_ms():
                    return False
            lookup = self._lookup or self.look_up()  # also one that failed in the meantime
            if not await wait_until(lookup, deadline_ms, self._clock):
                return False
            if self._lookup is lookup:
                self._lookup = None
            problem = lookup.exception()
            if problem is None and self.node is not None:
                break
            if problem is not None and not (isinstance(problem, KafkaError) and problem.retriable):
                raise problem
            log.debug("Coordinator discovery failed: %s", problem or "it cannot be connected to yet")
            self._next_lookup_ms = self._clock.monotonic_ms() + self._backoff.backoff_ms(self._failures)
            self._failures += 1
        self._failures = 0
        return True

    def look_up(self) -> asyncio.Task[None]:
        """The lookup in progress; starts one if there is none."""
        if self._lookup is None or self._lookup.done():
            self._lookup = start(self._find())
        return self._lookup

    async def send(
        self,
        kind: type[Message],
        build: Callable[[int], Message],
        expected: type[M],
        *,
        timeout_ms: int | None = None,
        max_version: int | None = None,
    ) -> M:
        """Sends the request of `build` in the highest common version, at most `max_version`."""
        node = self.node
        if node is None:
            raise CoordinatorNotAvailable("The coordinator is not available.")
        try:
            versions = await self._versions(node.id, self._client.request_timeout_ms if timeout_ms is None else timeout_ms)
            version = versions.choose(BY_NAME[kind.__name__.removesuffix("Request")].key, highest=max_version)
            response = await self._client.send(node.id, build(version), timeout_ms=timeout_ms, version=version)
        except Disconnected as problem:
            self.mark_unknown(problem, disconnected=True)
            raise
        assert isinstance(response, expected)
        return response

    def note(self, error: KafkaError) -> None:
        """Handles an error in a response: some errors mean that the broker is not the coordinator."""
        if isinstance(error, (CoordinatorNotAvailable, NotCoordinator)):
            self.mark_unknown(f"error response {type(error).__name__}")

    def timeout(self, message: str) -> Timeout:
        """A Timeout with the last connection error as its cause."""
        return self._client.timeout(message)

    async def close(self) -> None:
        if self._lookup is not None:
            await end(self._lookup)
            self._lookup = None

    def _is_unreachable(self, node_id: int) -> bool:
        """Whether the connection broke and the reconnect back-off is not over."""
        return self._client.connection_failed(node_id) and self._client.delay_ms(node_id) > 0

    async def _versions(self, node_id: int, timeout_ms: int) -> BrokerVersions:
        """The coordinator's API versions. Connects if necessary, because they are unknown before that."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while (versions := self._client.versions(node_id)) is None:
            self._client.ready(node_id)
            if self._is_unreachable(node_id):
                raise self._client.authentication_error(node_id) or Disconnected("The coordinator could not be connected to")
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                raise self._client.timeout(f"The coordinator could not be connected to within {timeout_ms} ms")
            await self._client.wait_for_change(left_ms)
        return versions

    async def _find(self) -> None:
        try:
            self._node = await self._client.find_coordinator(self._group_id, GROUP_COORDINATOR, own_connection=True)
        except GroupAuthorization:
            raise GroupAuthorization(group_id=self._group_id) from None
        log.info("Discovered group coordinator %s", self._node)
        self._client.ready(self._node.id)
        self._lookup = None
        for tell in self.on_found:
            tell()


def start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task whose exception may never be retrieved."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(_retrieve_exception)
    return task


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


async def end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def wait_until(task: asyncio.Task[Any], deadline_ms: int, clock: Clock) -> bool:
    """Whether the task ended before the deadline; otherwise it continues."""
    if not task.done():
        left_ms = max(0, deadline_ms - clock.monotonic_ms())
        await asyncio.wait([task], timeout=left_ms / 1000)
    return task.done()


async def wait_for(event: asyncio.Event, timeout_ms: int) -> None:
    """Waits until the event is set or the timeout is over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(1, timeout_ms) / 1000):
            await event.wait()


async def sleep_until(deadline_ms: int, clock: Clock) -> None:
    await asyncio.sleep(max(0, deadline_ms - clock.monotonic_ms()) / 1000)
