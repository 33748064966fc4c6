"""One exception for each of Kafka's error codes, and what may be done about it."""

from __future__ import annotations

import pytest

import barnabas.errors
from barnabas import errors as shared
from barnabas.client import errors
from barnabas.client.errors import KafkaError, error_for, refreshes_metadata
from barnabas.client.wire_errors import CLASSES
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition
from tests.error_codes import code_of

CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_every_code_has_a_class_with_kafkas_text(code: ErrorCode) -> None:
    error = error_for(code)
    assert error.code == code and error.retriable == code.retriable and str(error) == code.message
    assert type(error).__name__ in errors.__all__
    assert str(error_for(code, "the broker's words")) == "the broker's words"


def test_no_two_codes_share_a_class() -> None:
    assert len({type(error_for(code)) for code in CODES}) == len(CODES)


def test_a_code_of_the_future_is_an_unknown_server_error() -> None:
    assert isinstance(error_for(9999), errors.UnknownServerError) and "9999" in str(error_for(9999))


def test_what_records_and_protocol_raise_are_the_same_classes() -> None:
    assert errors.CorruptRecord is barnabas.errors.CorruptRecord
    assert isinstance(error_for(1), barnabas.errors.OffsetOutOfRange)


def test_a_timeout_is_pythons_too() -> None:
    assert issubclass(errors.Timeout, TimeoutError) and issubclass(errors.BufferExhausted, errors.Timeout)
    assert type(error_for(7)) is errors.Timeout is errors.RequestTimedOut
    assert issubclass(errors.IllegalArgument, ValueError)


def test_families() -> None:
    for name in ("TopicAuthorization", "GroupAuthorization", "ClusterAuthorization", "TransactionalIdAuthorization"):
        assert issubclass(getattr(errors, name), errors.AuthorizationError)
    for name in ("SaslAuthentication", "SslAuthentication", "UnsupportedSaslMechanism", "IllegalSaslState"):
        assert issubclass(getattr(errors, name), errors.AuthenticationError)
    assert issubclass(errors.UnknownProducerId, errors.OutOfOrderSequence)


def test_which_errors_ask_for_the_cluster_anew() -> None:
    names = {code_of(code).name for code in CODES if refreshes_metadata(error_for(code))}
    assert names == {
        "UNKNOWN_TOPIC_OR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
        "REPLICA_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "KAFKA_STORAGE_ERROR",
        "LISTENER_NOT_FOUND",
        "FENCED_LEADER_EPOCH",
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "ELECTION_NOT_NEEDED",
        "UNKNOWN_TOPIC_ID",
        "INCONSISTENT_TOPIC_ID",
    }
    assert refreshes_metadata(errors.Disconnected("lost"))


def test_errors_that_carry_more() -> None:
    partition = TopicPartition("t", 1)
    assert "[t-1]" in str(errors.NoOffsetForPartition([partition]))
    assert errors.OffsetOutOfRange(offset_out_of_range_partitions={partition: 5}).partitions == {partition}
    truncated = errors.LogTruncation("cut", {partition: 9}, {partition: (5, 2)})
    assert truncated.divergent_offsets == {partition: (5, 2)} and isinstance(truncated, errors.OffsetOutOfRange)
    assert errors.RecordDeserializationError(partition, 7, "bad").offset == 7


def test_all_names_are_exceptions_or_functions() -> None:
    for name in errors.__all__:
        value = getattr(errors, name)
        assert callable(value) and (not isinstance(value, type) or issubclass(value, KafkaError)), name


def test_a_code_that_the_broker_has_a_class_for_has_no_other() -> None:
    """What `records` or the broker raise is caught by who catches the clients' exception of that code."""
    own = [kind for kind in vars(shared).values() if isinstance(kind, type) and issubclass(kind, KafkaError) and kind.code != -1]
    strangers = [
        kind.__name__
        for kind in own
        if kind.code in CLASSES and not issubclass(CLASSES[kind.code], kind) and not issubclass(kind, CLASSES[kind.code])
    ]
    assert len(own) > 50
    assert strangers == []
