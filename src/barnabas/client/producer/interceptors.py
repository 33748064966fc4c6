"""The chain of `interceptor.classes`: each interceptor receives a record before it is serialized, and its result.

`on_send` runs in the caller's thread and may return another record; `on_acknowledgement` runs before the callback of the application, in
the network thread. An exception of an interceptor is logged and not raised: the next one receives the result of the last one that
succeeded.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from barnabas.client.producer.record import INVALID_OFFSET, NO_TIMESTAMP, ProducerRecord, RecordMetadata
from barnabas.records.record import Header

logger = logging.getLogger(__name__)


class ProducerInterceptor(Protocol):
    """The interface of `interceptor.classes`. It may have `configure(configs)`; `on_acknowledgement` may take headers as a third
    argument."""

    def on_send(self, record: ProducerRecord, /) -> ProducerRecord:
        """Called by `send` before serialization; returns the record that is sent instead. An exception is logged and ignored."""

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None, /) -> None:
        """Called in the producer's thread when the record is written or has failed; `error` is None if it is written."""

    def close(self) -> None:
        """Called when the producer is closed."""


class ProducerInterceptors:
    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._interceptors = [(interceptor, _takes_headers(interceptor)) for interceptor in interceptors]

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def configure(self, configs: Mapping[str, Any]) -> None:
        for interceptor, _ in self._interceptors:
            if hasattr(interceptor, "configure"):
                interceptor.configure(configs)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        for interceptor, _ in self._interceptors:
            try:
                record = interceptor.on_send(record)
            except Exception:
                logger.warning(
                    "Error executing interceptor on_send callback for topic: %s, partition: %s",
                    record.topic,
                    record.partition,
                    exc_info=True,
                )
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None, headers: Sequence[Header] = ()) -> None:
        for interceptor, takes_headers in self._interceptors:
            try:
                if takes_headers:
                    interceptor.on_acknowledgement(metadata, error, headers)
                elif hasattr(interceptor, "on_acknowledgement"):
                    interceptor.on_acknowledgement(metadata, error)
            except Exception:
                logger.warning("Error executing interceptor on_acknowledgement callback", exc_info=True)

    def close(self) -> None:
        for interceptor, _ in self._interceptors:
            try:
                if hasattr(interceptor, "close"):
                    interceptor.close()
            except Exception:
                logger.error("Failed to close producer interceptor", exc_info=True)


def failed_metadata(topic: str, partition: int) -> RecordMetadata:
    """The destination of a failed record, without an offset."""
    return RecordMetadata(topic, partition, INVALID_OFFSET, NO_TIMESTAMP)


def _takes_headers(interceptor: Any) -> bool:
    """Whether `on_acknowledgement` accepts a third argument (Kafka 4.1's second form)."""
    method = getattr(interceptor, "on_acknowledgement", None)
    if method is None:
        return False
    try:
        inspect.signature(method).bind(None, None, ())
    except (TypeError, ValueError):
        return False
    return True
