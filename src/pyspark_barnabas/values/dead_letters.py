"""Writes malformed records unchanged to a dead-letter topic, with headers for the reason and the origin.

Runs on executors while a batch is decoded. The dead letters of a batch are acknowledged before its rows are returned, so that none is
lost. A task that runs again sends them again: at least once. Key, value, timestamp and headers are those of the record.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from barnabas.client import Producer
from barnabas.client.config.config import SharedSettings
from barnabas.client.producer.config import KEYS
from pyspark_barnabas.errors import DataSourceError
from pyspark_barnabas.values.corrupt import REASON_MAX
from pyspark_barnabas.values.settings import ValueSettings

PREFIX: Final = "__barnabas.errors."
PRODUCERS_MAX: Final = 4
IDLE_S_MAX: Final = 300.0
CLOSE_TIMEOUT_S: Final = 5.0
_PLUGINS: Final = ("config.providers.", "sasl.", "ssl.")

_Headers = list[tuple[str, bytes | None]]


def send_dead_letters(settings: ValueSettings, batch: pa.RecordBatch, faults: Mapping[int, str]) -> None:
    """Sends the malformed records and waits until they are acknowledged. Raises an error otherwise: the batch then counts as not read."""
    topic = settings.dead_letter_topic
    assert topic is not None
    rows = sorted(faults)
    letters = batch.take(pa.array(rows, pa.int64())).to_pylist()
    producer = _producers.get(settings.clients)
    deliveries = [
        producer.send(
            topic,
            letter["value"],
            key=letter.get("key"),
            timestamp=_milliseconds(letter.get("timestamp")),
            headers=_headers(letter, faults[row], settings.format),
        )
        for row, letter in zip(rows, letters, strict=True)
    ]
    # check every result: the producer logs errors of deliveries that were not checked
    errors = [delivery.exception() for delivery in deliveries]
    fault = next((error for error in errors if error is not None), None)
    if fault is not None:
        raise DataSourceError(f"A malformed record could not be sent to '{topic}' (option 'value.deadLetterTopic'): {fault}") from fault


def _headers(letter: Mapping[str, Any], reason: str, form: str) -> _Headers:
    """The record's headers, if they were read (includeHeaders), and those of the dead letter."""
    own: _Headers = [(header["key"], header["value"]) for header in letter.get("headers") or ()]
    facts = {"message": reason[:REASON_MAX], "format": form, **{name: letter.get(name) for name in ("topic", "partition", "offset")}}
    return own + [(PREFIX + name, str(fact).encode()) for name, fact in facts.items() if fact is not None]


def _milliseconds(timestamp: Any) -> int | None:
    if timestamp is None:
        return None
    milliseconds = round(timestamp.timestamp() * 1000)
    return milliseconds if milliseconds >= 0 else None


class _Producers:
    """The producers of this process, by their settings: a Python worker runs many tasks. Idle ones are closed when another is requested."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[frozenset[tuple[str, str]], tuple[Producer, float]] = {}
        self._process_id = os.getpid()

    def get(self, settings: Mapping[str, str]) -> Producer:
        own_settings = {name: value for name, value in settings.items() if name in KEYS or name.startswith(_PLUGINS)}
        key = frozenset(own_settings.items())
        with self._lock:
            if self._process_id != os.getpid():  # after a fork: the threads exist only in the parent
                self._known, self._process_id = {}, os.getpid()
            known = self._known.pop(key, None)
            producer = known[0] if known is not None else Producer(SharedSettings({"acks": "all", "linger.ms": "0", **own_settings}))
            self._close_idle(time.monotonic())
            self._known[key] = producer, time.monotonic()
            return producer

    def _close_idle(self, now: float) -> None:
        for number, (key, (producer, used)) in enumerate(list(self._known.items())):
            if now - used > IDLE_S_MAX or number < len(self._known) - PRODUCERS_MAX + 1:
                del self._known[key]
                producer.close(CLOSE_TIMEOUT_S)

    def close(self) -> None:
        if self._process_id == os.getpid():
            for producer, _ in self._known.values():
                producer.close(CLOSE_TIMEOUT_S)
            self._known = {}


_producers = _Producers()
atexit.register(_producers.close)
