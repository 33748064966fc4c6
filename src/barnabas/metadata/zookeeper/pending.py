"""Requests to ZooKeeper without a response yet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from barnabas.metadata.tree import TreeRequest, TreeResponse


class PendingBatch:
    """Requests whose responses are returned together."""

    def __init__(self, requests: Sequence[TreeRequest[Any]], done: asyncio.Future[None]) -> None:
        self.responses: list[Any] = [None] * len(requests)
        self._missing = len(requests)
        self._done = done

    def answer(self, index: int, response: TreeResponse[Any]) -> None:
        self.responses[index] = response
        self._missing -= 1
        if self._missing == 0 and not self._done.done():
            self._done.set_result(None)


class PendingRequest:
    """One request of a batch, waiting or sent."""

    __slots__ = ("batch", "index", "request", "xid")

    def __init__(self, request: TreeRequest[Any], batch: PendingBatch, index: int) -> None:
        self.request = request
        self.batch = batch
        self.index = index
        self.xid = 0
