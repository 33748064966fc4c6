"""The coordinator's source of producer ids. The broker implements it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode


class ProducerIds(Protocol):
    def take(self) -> int | None:
        """An id that no producer of the cluster has had, or None if a block has to be fetched first (see `fetch`)."""

    def fetch(self, on_done: Callable[[Exception | None], None]) -> None:
        """Fetch a block of ids. Calls `on_done` exactly once: with None, after which `take` has ids, or with the error."""


class NeedsProducerId(KafkaError):
    """A producer id is needed and none is left: fetch a block and retry. As a response it makes the client retry."""

    code = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    retriable = True
