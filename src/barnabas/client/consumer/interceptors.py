"""The application's interceptors: they receive records before poll() returns them, and offsets after they are committed.

An exception of an interceptor is logged and not raised; the next interceptor receives the result of the last one that succeeded.
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
    """A base class; methods that are not overridden do nothing. A method `configure`, if there is one, receives the settings."""

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        """Runs in the thread of poll(). May remove records."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Runs after the offsets are committed."""

    def close(self) -> None:
        """Called when the consumer is closed."""


class ConsumerInterceptors:
    """The chain of interceptors, in the order of `interceptor.classes`."""

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
