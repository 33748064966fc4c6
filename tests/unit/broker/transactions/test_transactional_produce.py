"""A transactional Produce: which requests of the same client wait until its records are appended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.transactions.transaction_verification import Support
from barnabas.broker.transactions.transactional_produce import TransactionalProduce
from barnabas.protocol.errors import ErrorCode
from tests.unit.broker.replicas import TP, Replicas
from tests.unit.broker.verifying import ID, Verifying, transactional


class Connection:
    """What hands over the requests of a client (`Order`)."""

    connection: Any = None

    def __init__(self) -> None:
        self.is_held = False

    def hold_next(self) -> None:
        self.is_held = True

    def release_next(self) -> None:
        self.is_held = False


class Client:
    """A producer with transaction version 2 on one connection."""

    def __init__(self, verifying: Verifying) -> None:
        self.verifying = verifying
        self.connection = Connection()
        self.errors: list[int] = []

    def produce(self, sequence: int = 0) -> None:
        entries = [(TP, transactional(sequence))]
        call = AppendCall(entries, self._done, timeout_ms=1000, required_acks=1, order=self.connection)
        produce = TransactionalProduce(self.verifying.replicas.manager, Support.ADD_PARTITION, call)
        produce.begin(self.verifying.verification, ID)

    def _done(self, results: list[PartitionAppend]) -> None:
        self.errors += [result.error for result in results]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    replicas = Replicas(tmp_path)
    replicas.lead()
    yield Client(Verifying(replicas))
    replicas.close()


def test_the_next_request_is_held_while_the_coordinator_is_asked(client: Client) -> None:
    client.verifying.verifier.is_held = True
    client.produce()
    assert client.connection.is_held
    client.verifying.verifier.let_go()
    assert (client.connection.is_held, client.errors) == (False, [0])


def test_the_next_request_is_not_held_where_the_transaction_is_open(client: Client) -> None:
    client.produce()
    client.verifying.verifier.is_held = True
    client.produce(1)
    assert (client.connection.is_held, client.errors) == (False, [0, 0])


@pytest.mark.parametrize("code", [ErrorCode.NETWORK_EXCEPTION, ErrorCode.INVALID_TXN_STATE])
def test_the_next_request_is_released_when_the_coordinator_refuses_or_does_not_answer(client: Client, code: ErrorCode) -> None:
    client.verifying.verifier.is_held = True
    client.verifying.verifier.code = int(code)
    client.produce()
    client.verifying.verifier.let_go()
    assert not client.connection.is_held
    assert len(client.errors) == 1
    assert client.errors != [0]
