"""Where the coordinator gets producer ids from. The broker gives the real thing; the coordinator knows only this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode


class ProducerIds(Protocol):
    def take(self) -> int | None:
        """An id that nobody in the cluster has had, or None if a block has to be fetched first (see `fetch`)."""

    def fetch(self, on_done: Callable[[Exception | None], None]) -> None:
        """Get a block; then, exactly once, `on_done(None)`, after which `take` has ids, or `on_done` with what went wrong."""


class NeedsProducerId(KafkaError):
    """A producer id is needed and none is at hand: fetch a block and ask again. A client would be told to try again."""

    code = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    retriable = True
