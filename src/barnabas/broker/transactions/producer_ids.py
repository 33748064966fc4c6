"""Allocates producer ids for InitProducerId and the transaction coordinator, from a block that this broker owns.

The broker takes a block by a conditional write of /latest_producer_id_block, so no id is used twice in the cluster. The ids that are left
in a block at a crash are lost. The next block is fetched when nine tenths of the current one are used. Ids come only from a block whose
write the metadata store has confirmed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from barnabas.errors import KafkaError
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import BadVersion, NodeExists, NoNode, TreeError
from barnabas.metadata.znodes.cluster import PRODUCER_ID_BLOCK_SIZE, ProducerIdBlock, decode_producer_id_block, encode_producer_id_block
from barnabas.protocol.errors import ErrorCode

_log = logging.getLogger(__name__)

PREFETCH_THRESHOLD: Final = 0.9  # the used share of a block at which the next one is fetched
ID_MAX: Final = 2**63 - 1
ATTEMPTS_MAX: Final = 100  # an attempt fails only when another broker takes a block, so 100 failures mean a problem of the cluster


class ProducerIdsNotReady(KafkaError):
    """The metadata store did not answer. The code is COORDINATOR_LOAD_IN_PROGRESS, after which all versions of clients retry."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    retriable = True


class ProducerIdsUnavailable(KafkaError):
    """All 2^63 ids are used, or the block in the metadata store cannot be decoded. The code is UNKNOWN_SERVER_ERROR: a retry does not
    help."""


class ProducerIdManager:
    def __init__(self, broker_id: int, tree: TreeClient) -> None:
        self._broker_id = broker_id
        self._tree = tree
        self._next_id = 0
        self._last_id = -1
        self._prefetch_at = -1
        self._fetch: asyncio.Task[ProducerIdBlock] | None = None

    async def generate(self) -> int:
        """An id that is new in the cluster. Raises ProducerIdsNotReady or ProducerIdsUnavailable."""
        while (producer_id := self.take()) is None:
            fetch = self._start_fetch()
            await asyncio.wait([fetch])  # the fetch itself is not awaited: cancelling one caller must not cancel the fetch for the others
            if error := _error_of(fetch):
                raise error
        return producer_id

    def take(self) -> int | None:
        """A new id at once, or None if a block must be fetched first. `take` and `fetch` implement `ProducerIds`."""
        if self._next_id > self._last_id and not self._begin_next_block():
            return None
        producer_id = self._next_id
        self._next_id += 1
        if producer_id == self._prefetch_at:
            self._start_fetch()
        return producer_id

    def fetch(self, on_done: Callable[[Exception | None], None]) -> None:
        """Fetches a block if none is left, then calls `on_done` with None, or with the error that `generate` would raise."""
        if self._next_id <= self._last_id:
            on_done(None)
        else:
            self._start_fetch().add_done_callback(lambda fetch: on_done(_error_of(fetch)))

    async def close(self) -> None:
        if self._fetch is not None:
            self._fetch.cancel()
            await asyncio.wait([self._fetch])
            self._fetch = None

    def _begin_next_block(self) -> bool:
        """Starts the block that was fetched. False if there is none."""
        fetch = self._fetch
        if fetch is None or not fetch.done() or _error_of(fetch) is not None:
            return False
        self._fetch = None
        block = fetch.result()
        self._next_id, self._last_id = block.first, block.last
        self._prefetch_at = block.first + int((block.last - block.first + 1) * PREFETCH_THRESHOLD)
        return True

    def _start_fetch(self) -> asyncio.Task[ProducerIdBlock]:
        if self._fetch is None:
            self._fetch = asyncio.get_running_loop().create_task(take_block(self._tree, self._broker_id))
            self._fetch.add_done_callback(self._forget_failure)
        return self._fetch

    def _forget_failure(self, fetch: asyncio.Task[ProducerIdBlock]) -> None:
        """Drops a failed fetch, so that the next caller starts a new one."""
        if fetch.cancelled() or fetch.exception() is None:
            return
        _log.warning("No new block of producer ids could be taken: %s", fetch.exception())
        self._fetch = None


async def take_block(tree: TreeClient, broker_id: int) -> ProducerIdBlock:
    """Takes the next block for a broker. Raises TreeError, or OverflowError when all ids are used."""
    for _ in range(ATTEMPTS_MAX):
        node = await tree.get(paths.PRODUCER_ID_BLOCK)
        block = _block_after(node.data if node is not None else None, broker_id)
        try:
            if node is None:
                await tree.create_recursive(paths.PRODUCER_ID_BLOCK, encode_producer_id_block(block))
            else:
                await tree.set_data(paths.PRODUCER_ID_BLOCK, encode_producer_id_block(block), node.stat.version)
        except (BadVersion, NodeExists, NoNode):
            continue  # another broker took the block in between
        _log.info("Acquired the block of producer ids %d to %d for broker %d", block.first, block.last, broker_id)
        return block
    raise BadVersion(paths.PRODUCER_ID_BLOCK, f"{ATTEMPTS_MAX} times another broker wrote {paths.PRODUCER_ID_BLOCK} first")


def _block_after(data: bytes | None, broker_id: int) -> ProducerIdBlock:
    first = decode_producer_id_block(data).last + 1 if data else 0
    if first > ID_MAX - PRODUCER_ID_BLOCK_SIZE + 1:
        raise OverflowError(f"Have exhausted all producerIds: the last block in {paths.PRODUCER_ID_BLOCK} ends with {first - 1}")
    return ProducerIdBlock(broker_id, first, first + PRODUCER_ID_BLOCK_SIZE - 1)


def _error_of(fetch: asyncio.Task[ProducerIdBlock]) -> KafkaError | None:
    """The error for the callers that waited for a failed fetch."""
    if fetch.cancelled():
        return ProducerIdsNotReady("The broker is shutting down")
    error = fetch.exception()
    if error is None:
        return None
    if isinstance(error, TreeError):
        refused: KafkaError = ProducerIdsNotReady(f"No new block of producer ids, the metadata tree refused it: {error}")
    else:
        refused = ProducerIdsUnavailable(str(error))
    refused.__cause__ = error
    return refused
