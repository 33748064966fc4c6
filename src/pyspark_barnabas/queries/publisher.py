"""Publishes the records of queries in the background, on the loop of a client that the tasks of this process use.

A query never waits for it and never fails because of it. Of records with the same key that wait, only the newest is sent, at most five
requests a second. What cannot be sent is dropped, and logged at DEBUG. A cluster that refuses, because this user may not create the topic
or write to it, is left alone for ten minutes, and one that does not answer for ten seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.client.errors import KafkaError

if TYPE_CHECKING:
    from pyspark_barnabas.connections import Client
    from pyspark_barnabas.queries.query_record import Record

_log: Final = logging.getLogger(__name__)

PAUSE_S: Final = 0.2  # after each request
SEND_TIMEOUT_S: Final = 10.0
ATTEMPTS: Final = 5  # while the topic is being created, or its leader moves
RETRY_S: Final = 0.5
REFUSED_PAUSE_MS: Final = 600_000
FAILED_PAUSE_MS: Final = 10_000
KEYS_MAX: Final = 100  # keys that wait; more are dropped

Send = Callable[[Sequence["Record"]], Awaitable[None]]


class Publisher:
    """The publisher of one client. `publish` may be called from any thread; everything else runs on the client's loop."""

    def __init__(self, client: Client, send: Send | None = None) -> None:
        self._call_soon = client.call_soon
        self._monotonic_ms = client.clock.monotonic_ms
        self._send = send or Appender(client).append
        self._waiting: dict[str, bytes] = {}
        self._task: asyncio.Task[None] | None = None
        self._silent_until_ms = 0

    def publish(self, record: Record) -> None:
        """Returns at once."""
        self._call_soon(self._take, record)

    def _take(self, record: Record) -> None:
        key, value = record
        if self._monotonic_ms() < self._silent_until_ms or (key not in self._waiting and len(self._waiting) >= KEYS_MAX):
            return
        self._waiting[key] = value
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        while self._waiting:
            records = list(self._waiting.items())
            self._waiting.clear()
            try:
                await asyncio.wait_for(self._delivered(records), SEND_TIMEOUT_S)
            except Exception as error:  # whatever happens here is no reason to end a query
                refused = not isinstance(error, KafkaError) or not error.retriable
                pause_ms = REFUSED_PAUSE_MS if refused and not isinstance(error, TimeoutError) else FAILED_PAUSE_MS
                _log.debug("The progress of the query could not be published, and is left out for %d s: %r", pause_ms // 1000, error)
                self._silent_until_ms = self._monotonic_ms() + pause_ms
                self._waiting.clear()
                return
            await asyncio.sleep(PAUSE_S)

    async def _delivered(self, records: Sequence[Record]) -> None:
        for left in range(ATTEMPTS - 1, -1, -1):
            try:
                await self._send(records)
                return
            except KafkaError as error:
                if not left or not error.retriable:
                    raise
            await asyncio.sleep(RETRY_S)


class Appender:
    """Appends to the topic, and keeps its leader."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._leader: int | None = None

    async def append(self, records: Sequence[Record]) -> None:
        from pyspark_barnabas.queries import queries_topic

        client = self._client
        try:
            if self._leader is None:
                self._leader = await queries_topic.leader_id(client)
            await queries_topic.append(client, self._leader, records, client.clock.now_ms())
        except BaseException:
            self._leader = None
            raise


def publisher(client: Client) -> Publisher:
    """The publisher of a client, made at its first use."""
    if client.publisher is None:
        client.publisher = Publisher(client)
    return client.publisher
