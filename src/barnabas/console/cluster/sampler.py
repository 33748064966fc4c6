"""Takes samples of one cluster while pages are open, and keeps an hour of them.

Pages take the last snapshot and wait for no broker, except the first page. Every 5 seconds the sampler reads brokers, topics and end
offsets, every 15 seconds the rest, every minute the topics' settings. Of a large cluster it samples less often: it uses at most a tenth of
its time. Ten minutes after the last look it stops, and begins again with the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.clock import SystemClock
from barnabas.console.cluster.broker_metrics import BrokerMetrics, MetricsUnreadable
from barnabas.console.cluster.derivation import Derivation
from barnabas.console.cluster.history import MetricHistory
from barnabas.console.cluster.reader import ClusterReader
from barnabas.console.cluster.snapshot import ClusterSnapshot
from barnabas.console.failures import sentence
from barnabas.errors import KafkaError

FAST_MS: Final = 5_000
SLOW_MS: Final = 15_000
CONFIGS_MS: Final = 60_000
WATCHED_MS: Final = 10 * 60_000
BUSY_SHARE: Final = 0.1
HURRY_S: Final = 3.0  # how long a page after a change waits for a new sample; of a large cluster it shows the old one

_log = logging.getLogger(__name__)


class Sampler:
    """The snapshots of one session. The first one lacks what `unknown` names. `history` has the samples of the last hour."""

    def __init__(self, admin: AsyncAdmin, metrics: BrokerMetrics | None = None) -> None:
        self._clock = SystemClock()
        self._reader = ClusterReader(admin)
        self._metrics = metrics if metrics is not None and metrics.is_known else None
        self._derivation = Derivation()
        self.history = MetricHistory()
        self._snapshot: ClusterSnapshot | None = None
        self._failure: KafkaError | None = None
        self._looked_ms = 0
        self._looked_again_ms: int | None = None
        self._read_ms: dict[str, int] = {}  # when each kind of reading was last done
        self._task: asyncio.Task[None] | None = None
        self._sampled = asyncio.Condition()
        self._samples = 0
        self._begun = 0  # the number of samples that have begun
        self._published = 0  # the number of the sample that the snapshot is of
        self._needed = 0  # the number of the first sample that includes the last change
        self._hurry = asyncio.Event()

    @property
    def is_watched(self) -> bool:
        return self._clock.monotonic_ms() - self._looked_ms < WATCHED_MS

    @property
    def last(self) -> ClusterSnapshot | None:
        """The last snapshot, without a look."""
        return self._snapshot

    async def current(self) -> ClusterSnapshot:
        """The last snapshot; the first call waits for it. Raises KafkaError while there is none because the cluster cannot be read."""
        self._looked_ms = self._clock.monotonic_ms()
        if self._task is None or self._task.done():
            self._snapshot = self._failure = None
            self._task = asyncio.create_task(self._run())
        if self._snapshot is None:
            await self._next()
        elif self._published < self._needed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._fresh(), HURRY_S)
        if self._snapshot is None:
            assert self._failure is not None
            raise self._failure
        return self._snapshot

    def stale(self) -> None:
        """After a change: the next `current` waits for a new sample, and not for the end of one that has begun already."""
        self._needed = self._begun + 1
        self._hurry.set()

    def look_again(self) -> None:
        """For a name that is not in the snapshot and may be new: like `stale`, but at most once in FAST_MS, since any name can be asked
        for."""
        now_ms = self._clock.monotonic_ms()
        if self._looked_again_ms is None or now_ms - self._looked_again_ms >= FAST_MS:
            self._looked_again_ms = now_ms
            self.stale()

    async def updates(self) -> AsyncIterator[ClusterSnapshot]:
        """The current snapshot, and each new one. It counts as a look."""
        yield await self.current()
        while True:
            await self._next()
            self._looked_ms = self._clock.monotonic_ms()
            if self._snapshot is not None:
                yield self._snapshot

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _next(self) -> None:
        seen = self._samples
        async with self._sampled:
            await self._sampled.wait_for(lambda: self._samples > seen)

    async def _run(self) -> None:
        while self.is_watched:
            began_ms = self._clock.monotonic_ms()
            self._begun += 1
            if self._hurry.is_set():
                self._hurry.clear()
                self._read_ms.clear()
            try:
                await self._sample(began_ms)
                self._failure = None
            except KafkaError as error:
                self._failed(error)
            except Exception as error:
                _log.exception("A sample of the cluster failed")
                self._failed(KafkaError(f"{type(error).__name__}: {error}"))
            if self._failure is not None:
                self._published = self._begun
                await self._notify()
            took_ms = self._clock.monotonic_ms() - began_ms
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), max(FAST_MS - took_ms, took_ms * (1 / BUSY_SHARE - 1)) / 1_000)

    def _failed(self, error: KafkaError) -> None:
        """Pages continue to show the last snapshot, and its time."""
        self._failure = error
        if self._snapshot is not None:
            self._snapshot = replace(self._snapshot, unknown=MappingProxyType({**self._snapshot.unknown, "cluster": sentence(error)}))

    async def _sample(self, began_ms: int) -> None:
        reader, derivation = self._reader, self._derivation
        is_first = self._snapshot is None
        await reader.fast()
        derivation.note_ends(reader.readings, self._clock.monotonic_ms())
        await self._read_metrics()
        if is_first:
            await self._publish()  # a large cluster has much more to read: the first page does not wait for that
        if self._is_due("slow", SLOW_MS, began_ms):
            await reader.slow()
            derivation.note_commits(reader.readings, self._clock.monotonic_ms())
        if self._is_due("configs", CONFIGS_MS, began_ms):
            await reader.configs()
        await self._publish()
        assert self._snapshot is not None
        self._remember(self._snapshot)

    async def _read_metrics(self) -> None:
        if self._metrics is None:
            return
        try:
            totals = await self._metrics.totals()
        except MetricsUnreadable as error:
            self._reader.readings.unknown["metrics"] = str(error)
            self._derivation.forget_bytes()
        else:
            self._reader.readings.unknown.pop("metrics", None)
            self._derivation.note_bytes(totals, self._clock.monotonic_ms())

    async def _publish(self) -> None:
        self._snapshot = self._derivation.snapshot(self._reader.readings, self._clock.now_ms(), self._clock.monotonic_ms())
        self._published = self._begun
        await self._notify()

    async def _fresh(self) -> None:
        async with self._sampled:
            await self._sampled.wait_for(lambda: self._published >= self._needed)

    async def _notify(self) -> None:
        async with self._sampled:
            self._samples += 1
            self._sampled.notify_all()

    def _is_due(self, kind: str, every_ms: int, now_ms: int) -> bool:
        before = self._read_ms.get(kind)
        if before is not None and now_ms - before < every_ms:
            return False
        self._read_ms[kind] = now_ms
        return True

    def _remember(self, snapshot: ClusterSnapshot) -> None:
        history, now_ms = self.history, snapshot.taken_ms
        history.add_total("records_in", now_ms, snapshot.records_in_per_s)
        history.add_total("records_out", now_ms, snapshot.records_out_per_s)
        history.add_total("bytes_in", now_ms, snapshot.bytes_in_per_s)
        history.add_total("bytes_out", now_ms, snapshot.bytes_out_per_s)
        history.add_total("lag", now_ms, sum(group.lag for group in snapshot.groups.values() if group.lag is not None))
        for topic in snapshot.topics.values():
            if topic.records_in_per_s is not None:
                history.add_topic_rate(topic.name, now_ms, topic.records_in_per_s)
        for group in snapshot.groups.values():
            if group.lag is not None:
                history.add_group_lag(group.group_id, now_ms, group.lag)
