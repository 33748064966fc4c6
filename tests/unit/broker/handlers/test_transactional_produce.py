"""Produce with transactional records, as frames; the test decides what the transaction coordinator returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.broker.scheduling.turns import Turns
from barnabas.broker.security.access import Access
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import request_frame
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.produce_response import PartitionProduceResponse
from barnabas.protocol.slices import Records
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.asking import no_quotas
from tests.unit.broker.handlers.leader import Asked
from tests.unit.broker.replicas import TOPIC_ID, TP, Replicas, records
from tests.unit.broker.verifying import ID, PRODUCER, Verifying, transactional

OTHER = TopicPartition("orders", 1)
IN_TRANSACTIONS = range(3, 14)
ADDING = 12  # the first version that leaves adding partitions to the broker


@pytest.fixture
def verifying(tmp_path: Path) -> Iterator[Verifying]:
    replicas = Replicas(tmp_path)
    replicas.lead()
    replicas.lead(OTHER)
    yield Verifying(replicas)
    replicas.close()


def produce(
    verifying: Verifying,
    version: int,
    data: dict[int, Records] | None = None,
    acks: int = -1,
    sent_as: str | None = ID,
    access: Access | None = None,
) -> Asked:
    """Records for partitions of one topic."""
    parts = [PartitionProduceData(index, batch) for index, batch in (data or {0: transactional()}).items()]
    name, topic_id = ("", TOPIC_ID) if version >= 13 else ("orders", Uuid.ZERO)
    message = ProduceRequest(sent_as, acks, 1000, [TopicProduceData(name, topic_id, parts)])
    pending = Asked(api_keys.PRODUCE, version)
    replicas = verifying.replicas
    broker: Any = SimpleNamespace(
        replica_manager=replicas.manager,
        metadata_cache=replicas.cache,
        verification=verifying.verification,
        config=replicas.config,
        access=access or Access(None),
        quotas=no_quotas(),
        turns=Turns(),
    )
    frame = b"".join(request_frame(message, pending.api, version, 7, "client"))
    RequestDispatcher(broker).dispatch(pending.exchange, frame[4:])
    return pending


def parts_of(pending: Asked) -> list[PartitionProduceResponse]:
    parts: list[PartitionProduceResponse] = pending.response().responses[0].partition_responses
    return parts


@pytest.mark.parametrize("version", IN_TRANSACTIONS)
def test_records_of_a_transaction_are_appended_when_its_coordinator_knows_of_them(verifying: Verifying, version: int) -> None:
    (part,) = parts_of(produce(verifying, version))
    assert (part.error_code, part.base_offset) == (0, 0)
    assert [question.add for question in verifying.verifier.asked] == [version >= ADDING]
    assert verifying.replicas.log().last_stable_offset == 0


def test_a_plain_batch_is_appended_without_asking(verifying: Verifying) -> None:
    plain = records(producer_id=PRODUCER, producer_epoch=0, base_sequence=0)
    assert parts_of(produce(verifying, 9, {0: plain}))[0].error_code == 0
    assert verifying.verifier.asked == []


@pytest.mark.parametrize("version", IN_TRANSACTIONS)
def test_a_partition_that_was_not_added_is_told_so_in_words(verifying: Verifying, version: int) -> None:
    verifying.verifier.code = int(ErrorCode.INVALID_TXN_STATE)
    (part,) = parts_of(produce(verifying, version))
    assert (part.error_code, part.base_offset, part.log_start_offset) == (ErrorCode.INVALID_TXN_STATE, -1, -1)
    assert part.error_message == ("Partition was not added to the transaction" if version >= 8 else None)
    assert verifying.replicas.log().log_end_offset == 0


@pytest.mark.parametrize("version", [9, ADDING])
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    ],
)
def test_a_coordinator_that_cannot_be_asked_is_a_reason_to_send_again(verifying: Verifying, version: int, code: ErrorCode) -> None:
    verifying.verifier.code = int(code)
    (part,) = parts_of(produce(verifying, version))
    assert part.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert part.error_message == f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}"


def test_old_producers_send_again_while_the_last_transaction_ends(verifying: Verifying) -> None:
    verifying.verifier.code = int(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert parts_of(produce(verifying, ADDING - 1))[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_new_producers_wait_for_the_end_of_the_last_transaction_and_are_then_told_of_it(verifying: Verifying) -> None:
    verifying.verifier.code = int(ErrorCode.CONCURRENT_TRANSACTIONS)
    pending = produce(verifying, ADDING)
    assert pending.is_waiting
    verifying.pass_time(100)
    (part,) = parts_of(pending)
    assert (part.error_code, part.error_message) == (ErrorCode.CONCURRENT_TRANSACTIONS, None)


def test_what_the_coordinator_refuses_is_none_of_the_other_partitions_business(verifying: Verifying) -> None:
    verifying.verifier.codes = {TP: int(ErrorCode.PRODUCER_FENCED)}
    refused, appended = parts_of(produce(verifying, 9, {0: transactional(), 1: transactional()}))
    assert (refused.index, refused.error_code) == (0, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert (appended.index, appended.error_code, appended.base_offset) == (1, 0, 0)


@pytest.mark.parametrize("version", [7, 9, ADDING])
@pytest.mark.parametrize("other", [{"producer_id": PRODUCER + 1}, {"epoch": 1}])
def test_one_produce_is_of_one_producer(verifying: Verifying, version: int, other: dict[str, int]) -> None:
    parts = parts_of(produce(verifying, version, {0: transactional(), 1: transactional(**other), 99: transactional()}))
    assert [part.error_code for part in parts] == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3
    assert {part.error_message for part in parts} == {"Transactional records contained more than one producer ID" if version >= 8 else None}
    assert verifying.verifier.asked == []


def test_a_refusal_closes_the_connection_of_a_producer_that_waits_for_no_answer(verifying: Verifying) -> None:
    verifying.verifier.code = int(ErrorCode.INVALID_TXN_STATE)
    assert produce(verifying, 9, acks=0).is_refused


def test_two_produces_of_one_connection_are_appended_in_their_order(verifying: Verifying) -> None:
    verifying.verifier.is_held = True
    first = produce(verifying, ADDING, {0: transactional(0)})
    second = produce(verifying, ADDING, {0: transactional(1)})
    assert first.is_waiting
    assert second.is_waiting
    verifying.verifier.let_go()
    verifying.time.advance(0)
    assert [parts_of(pending)[0].base_offset for pending in (first, second)] == [0, 1]


def test_a_batch_that_is_cut_short_is_asked_about_by_nobody(verifying: Verifying) -> None:
    whole = transactional().data
    (part,) = parts_of(produce(verifying, 9, {0: Records(whole[:-1])}))
    assert part.error_code != 0
    assert verifying.replicas.log().log_end_offset == 0
