"""The application's interceptors: they see records just before poll() returns them, and offsets once they are committed.

What one raises is logged and goes no further; the next one works with what the last good one gave.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.record import ConsumerRecords

log = logging.getLogger(__name__)


class ConsumerInterceptor:
    """To be subclassed; what is not overridden does nothing. One with a method `configure` is given the settings."""

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        """Runs in the thread of poll(). May filter."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Runs after the offsets were committed."""

    def close(self) -> None:
        """The consumer is closed."""


class ConsumerInterceptors:
    """The chain, in the order of `interceptor.classes`."""

    def __init__(self, interceptors: Iterable[ConsumerInterceptor] = ()) -> None:
        self._interceptors = tuple(interceptors)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        for interceptor in self._interceptors:
            try:
                records = interceptor.on_consume(records)
            except Exception:
                log.warning("Error executing interceptor on_consume callback", exc_info=True)
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._each("on_commit", lambda interceptor: interceptor.on_commit(offsets))

    def close(self) -> None:
        self._each("close", lambda interceptor: interceptor.close())

    def _each(self, name: str, call: Callable[[ConsumerInterceptor], None]) -> None:
        for interceptor in self._interceptors:
            try:
                call(interceptor)
            except Exception:
                log.warning("Error executing interceptor %s callback", name, exc_info=True)
