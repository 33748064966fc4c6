"""Routing and retries of admin calls.

`Calls` is between the methods of the admin client and the network. A method supplies the route, the request and a function that reads the
response. `Calls` applies the deadline (default.api.timeout.ms for the call, request.timeout.ms for each attempt), the retries with their
back-off, and one of two ways of routing: `request` sends to one node at a time, `request_by_node` serves keys that live on different nodes
and may move meanwhile. An error that is not retriable is never retried, and nothing is retried after the deadline.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from barnabas.client.admin.call import ApiResult, Call, LookupResult, NotAssigned, Time
from barnabas.client.admin.keys import distinct
from barnabas.client.admin.outcomes import Outcomes, failed
from barnabas.client.cluster import Node
from barnabas.client.errors import Disconnected, IllegalArgument, IllegalState, Timeout, UnknownServerError, error_for, refreshes_metadata
from barnabas.client.network.connection_failures import NO_FAILURES, ConnectionFailures
from barnabas.client.software import SOFTWARE_NAME, SOFTWARE_VERSION
from barnabas.errors import KafkaError, NotController
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.registry import BY_NAME

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
R = TypeVar("R")
M = TypeVar("M", bound=Message)


class Channel(Protocol):
    """The part of the network client that `Calls` uses: send one request to one node, and the versions of a node after its handshake."""

    async def send(
        self, node_id: int, request: Message, *, timeout_ms: int | None = None, version: int | None = None, max_version: int | None = None
    ) -> Message: ...

    def version_of(self, node_id: int, api_key: int) -> int | None: ...


class NodeDirectory(Protocol):
    """The part of the metadata that `Calls` uses: the nodes of the cluster and its controller."""

    @property
    def known(self) -> bool:
        """Whether any broker has ever responded."""

    async def any_node(self, timeout_ms: int) -> int: ...

    async def controller(self, timeout_ms: int) -> int: ...

    async def brokers(self, timeout_ms: int) -> list[int]: ...

    def node(self, node_id: int) -> Node:
        """The node of an id. An unknown node has no address."""

    def request_update(self) -> None: ...


class Backoff(Protocol):
    def backoff_ms(self, attempts: int) -> int: ...


@dataclass(frozen=True)
class CallSettings:
    default_api_timeout_ms: int = 60_000
    request_timeout_ms: int = 30_000
    retries: int = 2**31 - 1


Route = Callable[[Call], Awaitable[int]]


class Calls:
    def __init__(
        self,
        channel: Channel,
        directory: NodeDirectory,
        settings: CallSettings,
        clock: Time,
        backoff: Backoff,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        failures: ConnectionFailures = NO_FAILURES,
    ) -> None:
        self.directory = directory
        self._channel = channel
        self._settings = settings
        self._clock = clock
        self._backoff = backoff
        self._sleep = sleep
        self._failures = failures
        self._under_way = 0
        self._closed = False
        self._idle: asyncio.Event | None = None

    @property
    def request_timeout_ms(self) -> int:
        return self._settings.request_timeout_ms

    def begin(self, name: str, timeout_ms: int | None) -> Call:
        """A call with its deadline: `timeout_ms` from now, or default.api.timeout.ms if it is None."""
        if self._closed:
            raise IllegalState("Cannot accept new calls when the admin client is closing.")
        if timeout_ms is not None and timeout_ms < 0:
            raise IllegalArgument(f"timeout_ms must not be negative, but is {timeout_ms}")
        return Call(name, self._settings.default_api_timeout_ms if timeout_ms is None else timeout_ms, self._clock)

    async def close(self, timeout_ms: int | None) -> None:
        """Rejects new calls and waits for pending calls, which are not retried; at most `timeout_ms` unless it is None."""
        self._closed = True
        self._idle = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                while self._under_way:
                    self._idle.clear()
                    await self._idle.wait()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way and self._idle is not None:
                self._idle.set()

    async def any_node(self, call: Call) -> int:
        return await self.directory.any_node(self.attempt_ms(call))

    async def controller(self, call: Call) -> int:
        return await self.directory.controller(self.attempt_ms(call))

    def node(self, node_id: int) -> Route:
        async def constant(call: Call) -> int:
            if node_id not in await self.directory.brokers(self.attempt_ms(call)):
                raise NotAssigned(f"Broker {node_id} is not alive")
            return node_id

        return constant

    async def brokers(self, call: Call) -> list[int]:
        """The ids of all brokers that are alive."""
        while True:
            self._check(call)
            try:
                return await self.directory.brokers(self.attempt_ms(call))
            except KafkaError as error:
                await self.back_off(call, error)

    async def locate_brokers(self, call: Call, node_ids: Sequence[int]) -> LookupResult[int]:
        """Locates keys that are broker ids. A broker that is not alive is looked up again."""
        alive = await self.directory.brokers(self.attempt_ms(call))
        nodes = {node_id: node_id for node_id in node_ids if node_id in alive}
        if not nodes:
            raise NotAssigned(f"None of the brokers {list(node_ids)} is alive")
        return LookupResult(nodes)

    def attempt_ms(self, call: Call) -> int:
        return min(self._settings.request_timeout_ms, call.remaining_ms())

    async def send(self, call: Call, node_id: int, request: Message, *, at_most: int | None = None, at_least: int = 0) -> Any:
        """One attempt at one node: returns its response, or raises the network's error. Uses the highest version common to both, within the
        limits."""
        if call.api is not None:
            call.api = _api_name(request)
        if at_least and await self._version(call, node_id, request) < at_least:
            raise UnsupportedVersion(f"The node {node_id} does not support {type(request).__name__} in version {at_least} or newer")
        return await self._channel.send(node_id, request, timeout_ms=self.attempt_ms(call), max_version=at_most)

    async def _version(self, call: Call, node_id: int, request: Message) -> int:
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        version = self._channel.version_of(node_id, api.key)
        if version is None:
            # There is no handshake yet, or the node does not support the API. A response to any request shows which.
            await self._channel.send(node_id, ApiVersionsRequest(SOFTWARE_NAME, SOFTWARE_VERSION), timeout_ms=self.attempt_ms(call))
            version = self._channel.version_of(node_id, api.key)
        if version is None:
            raise UnsupportedVersion(f"The node {node_id} does not support {api.name}")
        return version

    async def request(
        self,
        call: Call,
        route: Route,
        build: Callable[[int], Message],
        read: Callable[[M], R],
        older: Callable[[int], Message | None] | None = None,
    ) -> R:
        """Sends the request of `build` (called with the timeout of this attempt) to the node of `route`, until `read` raises no retriable
        error.

        `older` builds the request for older brokers, or returns None if it cannot. It is used after a broker returned UNSUPPORTED_VERSION.
        """
        with self._counted():
            while True:
                self._check(call)
                try:
                    node_id = await route(call)
                    return read(await self.send(call, node_id, build(self.attempt_ms(call))))
                except UnsupportedVersion:
                    if older is None or older(0) is None:
                        raise
                    build, older = cast("Callable[[int], Message]", older), None
                except KafkaError as error:
                    await self.back_off(call, error)

    async def request_keys(
        self,
        call: Call,
        keys: Iterable[K],
        route: Route,
        build: Callable[[int, Sequence[K]], Message],
        read: Callable[[M], ApiResult[K, V]],
        refused: Mapping[K, KafkaError] | None = None,
        older: Callable[[int, Sequence[K]], Message | None] | None = None,
    ) -> Outcomes[K, V]:
        """Sends one request for all keys to one node. An error of the whole request becomes the error of each key.

        Keys in `refused` are not sent. Keys throttled by a quota are requested again until the deadline.
        """
        all_keys = list(dict.fromkeys(keys))
        total: ApiResult[K, V] = ApiResult(failed=dict(refused or {}))
        pending = [key for key in all_keys if key not in total.failed]
        throttled: dict[K, KafkaError] = {}
        while pending:
            try:
                before = None if older is None else partial(_swapped, older, pending)
                answer = await self.request(call, route, partial(_swapped, build, pending), read, before)
                throttled = answer.throttled
                total.done.update((key, value) for key, value in answer.done.items() if key in pending)
                total.failed.update((key, error) for key, error in answer.failed.items() if key in pending)
                total.failed.update(
                    (key, UnknownServerError(f"The response did not contain a result for {key}"))
                    for key in pending
                    if not answer.names(key) and key not in throttled
                )
                pending = [key for key in pending if key in throttled]
                if pending:
                    await self.back_off(call, throttled[pending[0]], answer.throttle_time_ms)
            except KafkaError as error:
                timed_out = isinstance(error, Timeout)
                total.failed.update((key, throttled[key] if timed_out and key in throttled else error) for key in pending)
                break
        return Outcomes(all_keys, total.done, total.failed)

    async def request_by_node(
        self,
        call: Call,
        keys: Iterable[K],
        locate: Callable[[Call, Sequence[K]], Awaitable[LookupResult[K]]],
        request_from_node: Callable[[Call, int, Sequence[K]], Awaitable[ApiResult[K, V]]],
    ) -> Outcomes[K, V]:
        """Looks up the node of each key, sends to all these nodes at once, and follows keys that moved until each key has an outcome."""
        with self._counted():
            return await self._request_by_node(call, distinct(keys), locate, request_from_node)

    async def _request_by_node(
        self,
        call: Call,
        all_keys: list[K],
        locate: Callable[[Call, Sequence[K]], Awaitable[LookupResult[K]]],
        request_from_node: Callable[[Call, int, Sequence[K]], Awaitable[ApiResult[K, V]]],
    ) -> Outcomes[K, V]:
        total: ApiResult[K, V] = ApiResult()
        pending = all_keys
        while pending:
            located, pending = await self._locate(call, pending, locate)
            total.failed.update(located.failed)
            by_node: dict[int, list[K]] = {}
            for key, node_id in located.mapped.items():
                by_node.setdefault(node_id, []).append(key)
            answers = await asyncio.gather(
                *(self._request_from_node(call.branch(), node_id, node_keys, request_from_node) for node_id, node_keys in by_node.items())
            )
            for answer in answers:
                total.done.update(answer.done)
                total.failed.update(answer.failed)
                pending += [key for key in all_keys if key in answer.moved]
            if pending:
                where = "Where some of the keys live is not known yet."
                try:
                    await self.back_off(call, NotAssigned(where) if call.api is None else Disconnected(where))
                except KafkaError as error:
                    total.failed.update(failed(pending, error))
                    break
        return Outcomes(all_keys, total.done, total.failed)

    async def back_off(self, call: Call, error: KafkaError, wait_at_least_ms: int = 0) -> None:
        """Waits before the next attempt. Raises if there is none: the error is not retriable, or the deadline, `retries` or close() ends
        the call."""
        if self._closed and isinstance(error, IllegalState):
            raise self._failures.timeout(f"The admin client was closed. Call: {call.name}", cause=error)
        if self._closed or not error.retriable:
            raise error
        if isinstance(error, NotController) or refreshes_metadata(error):
            self.directory.request_update()
        wait_ms = max(wait_at_least_ms, self._backoff.backoff_ms(call.tries))
        call.wait_from_now(wait_ms)
        call.last_error = error
        if call.remaining_ms() == 0 or call.tries > self._settings.retries:
            raise self._timed_out(call)
        await self._sleep(min(wait_ms, call.remaining_ms()) / 1000)

    def _check(self, call: Call) -> None:
        if call.remaining_ms() == 0:
            raise self._timed_out(call)

    def _timed_out(self, call: Call) -> Timeout:
        assigned = self.directory.known and not isinstance(call.last_error, NotAssigned)
        return call.timed_out(self._failures, call.last_error, assigned=assigned)

    async def _locate(
        self, call: Call, keys: list[K], locate: Callable[[Call, Sequence[K]], Awaitable[LookupResult[K]]]
    ) -> tuple[LookupResult[K], list[K]]:
        """The nodes of keys, and the keys whose node is not known yet."""
        while True:
            try:
                self._check(call)
                located = await locate(call, keys)
                return located, [key for key in keys if key not in located.mapped and key not in located.failed]
            except KafkaError as error:
                try:
                    await self.back_off(call, error)
                except KafkaError as final:
                    return LookupResult(failed=failed(keys, final)), []

    async def _request_from_node(
        self, call: Call, node_id: int, keys: list[K], request_from_node: Callable[[Call, int, Sequence[K]], Awaitable[ApiResult[K, V]]]
    ) -> ApiResult[K, V]:
        total: ApiResult[K, V] = ApiResult()
        while keys:
            error: KafkaError = Disconnected("The response did not contain all keys.")
            try:
                self._check(call)
                answer = await request_from_node(call, node_id, keys)
                total.done.update(answer.done)
                total.failed.update(answer.failed)
                total.moved |= answer.moved
                keys = [key for key in keys if not answer.names(key)]
            except Disconnected:
                # The node may be gone for good, and another node may hold the keys now.
                total.moved.update(keys)
                self.directory.request_update()
                break
            except KafkaError as raised:
                error = raised
            if keys:
                try:
                    await self.back_off(call, error)
                except KafkaError as final:
                    total.failed.update(failed(keys, final))
                    break
        return total


def _api_name(request: Message) -> str:
    """The API's name as Java spells it: LIST_OFFSETS."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(request).__name__.removesuffix("Request")).upper()


def _swapped(build: Callable[[int, Sequence[K]], R], keys: Sequence[K], timeout_ms: int) -> R:
    return build(timeout_ms, keys)


def check_controller(code: int, message: str | None = None) -> None:
    """Raises NOT_CONTROLLER wherever it is in a response, so that the whole request is sent to the new controller."""
    if code == NotController.code:
        raise error_for(code, message)
