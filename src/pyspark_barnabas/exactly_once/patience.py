"""Retries with growing back-off up to a time limit, and a check whether a request can be sent.

A request that was never sent cannot arrive late: callers that must know wait for `connected` before they send. All requests of this package
use it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from barnabas.client.errors import KafkaError, Timeout
from barnabas.client.network.backoff import ExponentialBackoff

if TYPE_CHECKING:
    from pyspark_barnabas.connections import Client

CONNECT_TRY_MS: Final = 1000


class Patience:
    """The retries of one operation: `wait` after each failure, until `limit_ms` has passed; None means no limit."""

    def __init__(self, client: Client, limit_ms: int | None, what: str) -> None:
        self._client = client
        self._backoff = ExponentialBackoff(client.config["retry.backoff.ms"], client.config["retry.backoff.max.ms"])
        self._deadline_ms = None if limit_ms is None else client.clock.monotonic_ms() + limit_ms
        self._limit_ms = limit_ms
        self._what = what
        self._attempts = 0

    async def wait(self, failure: KafkaError) -> None:
        """Raises the failure if a retry cannot help, and Timeout if there is no time left."""
        if not failure.retriable:
            raise failure
        if self._deadline_ms is not None and self._client.clock.monotonic_ms() >= self._deadline_ms:
            raise Timeout(f"{self._what} was not possible within {self._limit_ms} ms; the last failure: {failure}") from failure
        await asyncio.sleep(self._backoff.backoff_ms(self._attempts) / 1000)
        self._attempts += 1

    async def connected(self, node_id: int) -> None:
        """Returns once a request to this node would be sent at once. Raises the connection error otherwise."""
        network = self._client.network
        deadline_ms = self._client.clock.monotonic_ms() + CONNECT_TRY_MS
        while not network.ready(node_id):
            error = network.authentication_error(node_id)
            if error is not None:
                raise error
            left_ms = deadline_ms - self._client.clock.monotonic_ms()
            if left_ms <= 0:
                raise Timeout(f"Node {node_id} could not be connected to")
            await network.wait_for_change(min(left_ms, max(network.delay_ms(node_id), 100)))
