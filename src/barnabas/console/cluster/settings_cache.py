"""Settings of brokers and topics as they were read some seconds ago: a search as one types asks the broker once.

A change that is made here drops everything. For as long after it nothing is kept, because the brokers of a cluster learn of a change one
after the other.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Protocol

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.admin.cluster.config_entries import Config, ConfigResource
from barnabas.client.clock import SystemClock

FRESH_MS: Final = 10_000
RESOURCES_MAX: Final = 20


class Clock(Protocol):
    def monotonic_ms(self) -> int: ...

    def now_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class KnownConfig:
    """The settings of a resource, and the wall time at which they were read."""

    config: Config
    read_ms: int


class SettingsCache:
    """The settings of one session, with synonyms and documentation."""

    def __init__(self, admin: AsyncAdmin, clock: Clock | None = None) -> None:
        self._admin = admin
        self._clock = clock or SystemClock()
        self._known: OrderedDict[ConfigResource, tuple[int, KnownConfig]] = OrderedDict()  # with the monotonic time of the reading
        self._changed_ms: int | None = None
        self._reading = asyncio.Lock()

    async def of(self, resource: ConfigResource) -> KnownConfig:
        """The settings, at most FRESH_MS old. Raises KafkaError."""
        known = self._fresh(resource)
        if known is not None:
            return known
        async with self._reading:
            known = self._fresh(resource)  # somebody else has read them while this call waited
            return known if known is not None else await self._read(resource)

    def forget(self) -> None:
        """After a change."""
        self._known.clear()
        self._changed_ms = self._clock.monotonic_ms()

    async def _read(self, resource: ConfigResource) -> KnownConfig:
        began_ms = self._clock.monotonic_ms()
        outcomes = await self._admin.describe_configs([resource], include_synonyms=True, include_documentation=True)
        known = KnownConfig(outcomes[resource], self._clock.now_ms())
        if self._changed_ms is None or began_ms - self._changed_ms >= FRESH_MS:
            self._known[resource] = began_ms, known
            self._known.move_to_end(resource)
            if len(self._known) > RESOURCES_MAX:
                self._known.popitem(last=False)
        return known

    def _fresh(self, resource: ConfigResource) -> KnownConfig | None:
        read_ms, known = self._known.get(resource, (0, None))
        return known if known is not None and self._clock.monotonic_ms() - read_ms < FRESH_MS else None
