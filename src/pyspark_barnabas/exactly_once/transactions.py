"""Transactions that one process opens and another ends, identified by transactional id, producer id and epoch.

It sends the requests to the coordinators of transactional ids: initialize, end exactly one transaction, list open ones. With transaction
version 2 (KIP-890) an end increments the epoch, so that later requests of a zombie are fenced; partitions need not be added either.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.client.cluster import Node
from barnabas.client.errors import KafkaError, error_for
from barnabas.client.network.network_client import TRANSACTION_COORDINATOR
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_transactions_response import DescribeTransactionsResponse
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse
from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.exactly_once.patience import Patience
from pyspark_barnabas.exactly_once.records import Slot, Transaction, slot_of

if TYPE_CHECKING:
    from pyspark_barnabas.connections import Client

_log: Final = logging.getLogger(__name__)

ONGOING: Final = "Ongoing"
INIT_PRODUCER_ID_VERSION_MAX: Final = 5  # the next version is for two-phase commit
END_VERSION_MAX_V1: Final = 4
PRODUCE_VERSION_MAX_V1: Final = 11
ADD_PARTITIONS_VERSION_MAX: Final = 3  # later versions are for brokers
PATTERN_VERSION: Final = 2  # of ListTransactions
ENDS_AT_ONCE_MAX: Final = 32
CLEANING_TIMEOUT_MS: Final = 20_000

_MOVED: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
_GONE: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


class Transactions:
    """The transactions of one prefix. All methods run on the client's loop."""

    def __init__(self, client: Client, prefix: str, timeout_ms: int) -> None:
        self._client = client
        self._network = client.network
        self._prefix = prefix
        self._timeout_ms = timeout_ms
        self._block_ms: int = client.config["max.block.ms"]
        self._coordinators: dict[str, int] = {}

    def is_version_2(self) -> bool:
        features = self._network.newest_features()
        return features is not None and features.finalized.get("transaction.version", 0) >= 2

    # Begin

    async def initialize(self, slot: Slot) -> Transaction | None:
        """Initializes the transactional id of this slot; None if it is unknown whether the request arrived."""
        name = slot.transactional_id(self._prefix)
        patience = Patience(self._client, self._block_ms, f"InitProducerId of {name}")
        while True:
            try:
                node_id = await self._coordinator(name)
                await patience.connected(node_id)
            except KafkaError as error:
                self._coordinators.pop(name, None)
                await patience.wait(error)
                continue
            request = InitProducerIdRequest(name, self._timeout_ms)
            try:
                response = await self._network.send(node_id, request, max_version=INIT_PRODUCER_ID_VERSION_MAX)
            except KafkaError as error:
                self._coordinators.pop(name, None)
                await patience.wait(error)
                return None
            assert isinstance(response, InitProducerIdResponse)
            if not response.error_code:
                return Transaction(slot, response.producer_id, response.producer_epoch)
            if response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                raise OptionError(
                    "kafka.transaction.timeout.ms",
                    f"is {self._timeout_ms}, more than the brokers allow: see their transaction.max.timeout.ms.",
                )
            self._moved(name, response.error_code)
            await patience.wait(error_for(response.error_code))

    async def announce(self, transaction: Transaction, partition: TopicPartition) -> None:
        """Adds a partition to the transaction; with transaction version 2 brokers do that themselves."""
        name = transaction.slot.transactional_id(self._prefix)
        patience = Patience(self._client, self._block_ms, f"AddPartitionsToTxn of {name}")
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=transaction.producer_id,
            v3_and_below_producer_epoch=transaction.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(partition.topic, [partition.partition])],
        )
        while True:
            try:
                response = await self._network.send(await self._coordinator(name), request, max_version=ADD_PARTITIONS_VERSION_MAX)
                assert isinstance(response, AddPartitionsToTxnResponse)
                code = response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
                if not code:
                    return
                self._moved(name, code)
                failure = error_for(code)
            except KafkaError as error:
                self._coordinators.pop(name, None)
                failure = error
            await patience.wait(failure)

    # End

    async def end(self, transactions: Iterable[Transaction], commit: bool) -> list[Transaction]:
        """Ends exactly these transactions; returns those that were neither open nor already ended so. A commit is retried without limit."""
        room = asyncio.Semaphore(ENDS_AT_ONCE_MAX)
        some = list(transactions)

        async def one(transaction: Transaction) -> bool:
            async with room:
                return await self._end(transaction, commit)

        ended = await asyncio.gather(*(one(transaction) for transaction in some))
        return [transaction for transaction, was_open in zip(some, ended, strict=True) if not was_open]

    async def _end(self, transaction: Transaction, commit: bool) -> bool:
        name = transaction.slot.transactional_id(self._prefix)
        patience = Patience(self._client, None if commit else self._block_ms, f"EndTxn of {name}")
        request = EndTxnRequest(name, transaction.producer_id, transaction.epoch, commit)
        while True:
            try:
                node_id = await self._coordinator(name)
                await patience.connected(node_id)
                response = await self._network.send(node_id, request, max_version=None if self.is_version_2() else END_VERSION_MAX_V1)
                assert isinstance(response, EndTxnResponse)
                if not response.error_code:
                    return True
                if response.error_code in _GONE:
                    return False
                self._moved(name, response.error_code)
                failure = error_for(response.error_code)
            except KafkaError as error:
                self._coordinators.pop(name, None)
                failure = error
            await patience.wait(failure)

    # List

    async def list_open(self) -> list[Transaction]:
        """The open transactions with ids of the prefix. A broker that does not answer in time is skipped: this is for clean-up."""
        nodes = [node.id for node in await self._nodes()]
        results = await asyncio.gather(*(self._list_open(node_id) for node_id in nodes), return_exceptions=True)
        for node_id, result in zip(nodes, results, strict=True):
            if isinstance(result, BaseException):
                if not isinstance(result, KafkaError):
                    raise result
                _log.warning("Node %d did not tell its open transactions: %s", node_id, result)
        return [one for result in results if not isinstance(result, BaseException) for one in result]

    async def _nodes(self) -> tuple[Node, ...]:
        metadata = self._client.metadata
        while metadata.cluster.is_bootstrap:
            await metadata.wait_for_update(metadata.request_update(False), self._block_ms)
        return metadata.cluster.nodes

    async def _list_open(self, node_id: int) -> list[Transaction]:
        patience = Patience(self._client, CLEANING_TIMEOUT_MS, f"ListTransactions at node {node_id}")
        while True:
            try:
                await patience.connected(node_id)
                has_pattern = (self._network.version_of(node_id, api_keys.LIST_TRANSACTIONS) or 0) >= PATTERN_VERSION
                pattern = f"^{re.escape(self._prefix)}-[0-9]+-[0-9]+$" if has_pattern else None
                response = await self._network.send(node_id, ListTransactionsRequest([ONGOING], [], -1, pattern))
                assert isinstance(response, ListTransactionsResponse)
                if not response.error_code:
                    names = [one.transactional_id for one in response.transaction_states]
                    return await self._describe(node_id, [name for name in names if slot_of(name, self._prefix) is not None])
                failure = error_for(response.error_code)
            except KafkaError as error:
                failure = error
            await patience.wait(failure)

    async def _describe(self, node_id: int, names: list[str]) -> list[Transaction]:
        if not names:
            return []
        response = await self._network.send(node_id, DescribeTransactionsRequest(names))
        assert isinstance(response, DescribeTransactionsResponse)
        transactions: list[Transaction] = []
        for one in response.transaction_states:
            slot = slot_of(one.transactional_id, self._prefix)
            if not one.error_code and one.transaction_state == ONGOING and slot is not None:
                transactions.append(Transaction(slot, one.producer_id, one.producer_epoch))
        return transactions

    async def _coordinator(self, name: str) -> int:
        node_id = self._coordinators.get(name)
        if node_id is None:
            node_id = self._coordinators[name] = (await self._network.find_coordinator(name, TRANSACTION_COORDINATOR)).id
        return node_id

    def _moved(self, name: str, code: int) -> None:
        if code in _MOVED:
            self._coordinators.pop(name, None)
