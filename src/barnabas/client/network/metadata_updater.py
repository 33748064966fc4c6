"""The task of the network client that fetches metadata from brokers whenever `Metadata` needs it.

It sends one request at a time. If no known broker can be reached, or none has responded for too long, it starts again with
bootstrap.servers (KIP-899, KIP-1102).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from barnabas.client.errors import AuthenticationError, Disconnected, KafkaError, UnsupportedVersion
from barnabas.client.network.connection import ClosedHere, Idle
from barnabas.client.network.metadata import Metadata, MetadataQuestion
from barnabas.client.network.repeated_warnings import RepeatedWarnings
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_response import MetadataResponse

if TYPE_CHECKING:
    from barnabas.client.network.network_client import NetworkClient

_log = logging.getLogger(__name__)
_NAMES: Final = {int(code): code.name for code in ErrorCode}

TOPIC_PATIENCE_MS: Final = 5000
_BEING_CREATED: Final = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class MetadataUpdater:
    def __init__(self, client: NetworkClient, metadata: Metadata) -> None:
        self._client = client
        self._metadata = metadata
        self._rebootstraps = str(client.config["metadata.recovery.strategy"]).upper() == "REBOOTSTRAP"
        self._rebootstrap_trigger_ms: int = client.config["metadata.recovery.rebootstrap.trigger.ms"]
        self._reconnect_backoff_ms: int = client.config["reconnect.backoff.ms"]
        self._asking_since_ms: int | None = None  # the time of the first attempt without a response
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._is_asking = False
        self._topic_warnings = RepeatedWarnings()

    def start(self) -> None:
        loop = asyncio.get_running_loop()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._woken.set)

        self._metadata.wake = wake
        self._task = loop.create_task(self._run())

    async def stop(self) -> None:
        self._metadata.wake = lambda: None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def disconnected(self, node_id: int, error: KafkaError) -> None:
        """Called when a connection was lost or failed: the metadata may be stale."""
        if isinstance(error, Idle):
            return
        now_ms = self._now_ms()
        if not self._is_asking and self._metadata.time_to_next_update(now_ms) == 0:
            self._metadata.failed_update(now_ms)  # so that the next attempt waits for the back-off
        if isinstance(error, AuthenticationError):
            self._metadata.fatal_error(error)
        self._metadata.request_update(False)

    async def _run(self) -> None:
        while True:
            try:
                await self._wait_until_due()
                await self._ask()
            except asyncio.CancelledError:
                raise
            except Exception:
                _log.exception("Updating the metadata failed in a way it should not")
                self._metadata.failed_update(self._now_ms())

    async def _wait_until_due(self) -> None:
        while (wait_ms := self._metadata.time_to_next_update(self._now_ms())) > 0:
            await self._wait_woken(wait_ms)

    async def _wait_woken(self, wait_ms: int) -> None:
        self._woken.clear()
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _ask(self) -> None:
        node_id = await self._choose()
        if node_id is None:
            return
        question = self._metadata.next_question()
        version = self._client.version_of(node_id, api_keys.METADATA)
        try:
            if version is None:
                raise UnsupportedVersion("The node does not support METADATA") if self._client.is_ready(node_id) else Disconnected("lost")
            self._is_asking = True
            response = await self._client.send(node_id, question.request, version=version)
        except KafkaError as error:
            _log.debug("Asking node %d about the cluster failed: %s", node_id, error)
            if isinstance(error, AuthenticationError | UnsupportedVersion):
                self._metadata.fatal_error(error)
            self._metadata.failed_update(self._now_ms())
            return
        finally:
            self._is_asking = False
        assert isinstance(response, MetadataResponse)
        self._take(response, version, question)

    def _take(self, response: MetadataResponse, version: int, question: MetadataQuestion) -> None:
        now_ms = self._now_ms()
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._metadata.failed_update(now_ms)
            self._rebootstrap("a broker requested it")
            return
        self._warn_of_topics(response, now_ms)
        if not response.brokers:
            self._metadata.failed_update(now_ms)  # the broker is still starting
            return
        self._metadata.update(response, version, question, now_ms)
        self._client.forget_nodes()
        self._asking_since_ms = None

    def _warn_of_topics(self, response: MetadataResponse, now_ms: int) -> None:
        """Warns of topics with errors. A topic that is being created has no leader yet, or is unknown to the broker: that is normal for
        a while."""
        failed = {topic.name or str(topic.topic_id): topic.error_code for topic in response.topics if topic.error_code != 0}
        warnings: dict[str, str] = {}
        for topic, code in failed.items():
            name = str(_NAMES.get(code, code))
            if self._topic_warnings.due(topic, name, now_ms, TOPIC_PATIENCE_MS if code in _BEING_CREATED else 0) is not None:
                warnings[topic] = name
        self._topic_warnings.keep_only(failed)
        if warnings:
            _log.warning("The metadata response from the cluster reported a recoverable issue: %s", warnings)

    async def _choose(self) -> int | None:
        """A ready node; None after waiting for a change."""
        client, now_ms = self._client, self._now_ms()
        if self._asking_since_ms is None:
            self._asking_since_ms = now_ms
        if self._rebootstraps and now_ms - self._asking_since_ms > self._rebootstrap_trigger_ms:
            self._rebootstrap(f"there was no response for {self._rebootstrap_trigger_ms} ms")
        node_id = client.least_loaded_node()
        if node_id is None and self._rebootstraps and not self._metadata.cluster.is_bootstrap and not client.any_connected():
            self._rebootstrap("no known broker can be reached")
            node_id = client.least_loaded_node()
        if node_id is not None and client.is_ready(node_id):
            return node_id
        if node_id is not None and not client.any_connecting():
            client.ready(node_id)
        delay_ms = 1000 if node_id is not None else max(self._reconnect_backoff_ms, 1)
        await client.wait_for_change(delay_ms)
        return None

    def _rebootstrap(self, reason: str) -> None:
        _log.info("Rebootstrapping, since %s", reason)
        self._client.disconnect_all(ClosedHere("The client begins again with bootstrap.servers"))
        self._metadata.rebootstrap()
        self._asking_since_ms = self._now_ms()

    def _now_ms(self) -> int:
        return self._client.clock.monotonic_ms()
