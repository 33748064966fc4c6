from __future__ import annotations

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.handlers.find_coordinator import GROUP, SHARE, TRANSACTION, coordinator_partition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from tests.unit.broker.handlers.asking import a_broker, alive, asked, topic, update

SHARE_KEY = "g:AAAAAAAAAAAAAAAAAAAAAA:0"
BAD_REQUEST = ErrorCode.INVALID_REQUEST.message


class Creations:
    """Stands for AutoTopicCreation, and notes what it is asked for."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def create_topics(self, names: list[str]) -> None:
        self.names += names


def found(broker: Broker, version: int, *keys: str, key_type: int = GROUP, listener: str = "PLAINTEXT") -> FindCoordinatorResponse:
    request = FindCoordinatorRequest("", key_type, list(keys)) if version >= 4 else FindCoordinatorRequest(keys[0], key_type)
    return asked(broker, request, FindCoordinatorResponse, version, listener)


@pytest.mark.parametrize("version", range(4))
def test_while_there_is_no_topic_there_is_no_coordinator(version: int) -> None:
    text = "The coordinator is not available." if version >= 1 else ""
    broker = a_broker(topic_creation=Creations())
    assert found(broker, version, "g") == FindCoordinatorResponse(0, ErrorCode.COORDINATOR_NOT_AVAILABLE, text, -1, "", -1)


@pytest.mark.parametrize("version", range(4, 7))
def test_many_keys_are_answered_one_by_one_without_a_text(version: int) -> None:
    nobody = [Coordinator(key, -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE) for key in ("g", "h")]
    broker = a_broker(topic_creation=Creations())
    assert found(broker, version, "g", "h") == FindCoordinatorResponse(coordinators=nobody)
    assert found(broker, version) == FindCoordinatorResponse()


def test_the_topic_of_the_groups_is_made_when_the_first_client_asks() -> None:
    creations = Creations()
    found(a_broker(topic_creation=creations), 3, "g")
    assert creations.names == ["__consumer_offsets"]


def test_a_topic_that_is_there_is_not_made_again() -> None:
    creations = Creations()
    found(a_broker(topic("__consumer_offsets", 50, leader=-1), topic_creation=creations), 3, "g")
    assert creations.names == []


def test_the_topic_of_transactions_is_made_when_the_first_client_asks() -> None:
    creations = Creations()
    response = found(a_broker(topic_creation=creations), 6, "t", key_type=TRANSACTION)
    assert [coordinator.error_code for coordinator in response.coordinators] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert creations.names == ["__transaction_state"]


def test_the_topic_of_share_groups_is_not_made_for_who_asks() -> None:
    creations = Creations()
    found(a_broker(topic_creation=creations), 6, SHARE_KEY, key_type=SHARE)
    assert creations.names == []


@pytest.mark.parametrize("version", range(4))
def test_the_coordinator_is_whoever_leads_the_partition_of_the_key(version: int) -> None:
    text = "NONE" if version >= 1 else ""
    assert found(a_broker(topic("__consumer_offsets", 50)), version, "g") == FindCoordinatorResponse(0, 0, text, 0, "host0", 9092)


@pytest.mark.parametrize(
    ("key_type", "name", "key"),
    [(GROUP, "__consumer_offsets", ""), (TRANSACTION, "__transaction_state", "t"), (SHARE, "__share_group_state", SHARE_KEY)],
)
def test_every_type_of_key_has_its_topic(key_type: int, name: str, key: str) -> None:
    response = found(a_broker(topic(name, 3)), 6, key, key_type=key_type)
    assert response.coordinators == [Coordinator(key, 0, "host0", 9092)]


def test_a_partition_without_a_leader_or_without_the_listener_has_no_coordinator() -> None:
    leaderless = a_broker(topic("__consumer_offsets", 50, leader=-1))
    assert found(leaderless, 3, "g").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker = a_broker(topic("__consumer_offsets", 50))
    broker.metadata_cache.update(update(brokers=(alive(0, "IN"),)))
    assert found(broker, 3, "g", listener="OUT").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", range(1, 7))
def test_an_unknown_type_of_key_is_refused_with_a_text(version: int) -> None:
    response = found(a_broker(), version, "g", key_type=9)
    if version < 4:
        assert response == FindCoordinatorResponse(0, ErrorCode.INVALID_REQUEST, BAD_REQUEST, -1, "", -1)
    else:
        assert response.coordinators == [Coordinator("g", -1, "", -1, ErrorCode.INVALID_REQUEST, BAD_REQUEST)]


@pytest.mark.parametrize("version", range(1, 6))
def test_share_groups_are_refused_before_version_6(version: int) -> None:
    response = found(a_broker(), version, SHARE_KEY, key_type=SHARE)
    if version < 4:
        assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, BAD_REQUEST)
    else:
        assert response.coordinators == [Coordinator(SHARE_KEY, -1, "", -1, ErrorCode.INVALID_REQUEST)]


# Each as Apache Kafka 4.2 judged it.
@pytest.mark.parametrize(
    "key", [SHARE_KEY, SHARE_KEY + ":", "g:AAAAAAAAAAAAAAAAAAAAAA:-1", "g:AAAAAAAAAAAAAAAAAAAAAA:+1", "g:AAAAAAAAAAAAAAAAAAAAAA==:0"]
)
def test_keys_of_share_groups_that_kafka_takes_are_taken(key: str) -> None:
    (answer,) = found(a_broker(), 6, key, key_type=SHARE).coordinators
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    "key",
    [
        "a:b:AAAAAAAAAAAAAAAAAAAAAA:0",
        "g:AAAAAAAAAAAAAAAAAAAAAA:x",
        ":AAAAAAAAAAAAAAAAAAAAAA:0",
        " :AAAAAAAAAAAAAAAAAAAAAA:0",
        "g:zz:0",
        "g:AAAAAAAAAAAAAAAAAAAAAA",
        "",
        "::",
        "g:AAAAAAAAAAAAAAAAAAAAAA:99999999999",
        "g:AAAAAAAAAAAAAAAAAAAAAA: 1",
    ],
)
def test_keys_of_share_groups_that_kafka_refuses_are_refused(key: str) -> None:
    (answer,) = found(a_broker(), 6, key, key_type=SHARE).coordinators
    assert answer == Coordinator(key, -1, "", -1, ErrorCode.INVALID_REQUEST)


# Computed by Kafka's own Utils.abs(key.hashCode) % 50.
@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("g", 3),
        ("", 0),
        ("abc", 4),
        ("polygenelubricants", 0),
        ("zzzzzz", 14),
        ("my-group", 12),
        ("gr\u00fcppe", 12),
        ("\U0001f600group", 32),
    ],
)
def test_a_partition_is_chosen_by_the_hash_of_java_even_where_that_has_no_absolute_value(key: str, partition: int) -> None:
    assert coordinator_partition(a_broker(), GROUP, key) == ("__consumer_offsets", partition)


def test_the_topic_s_real_partitions_count_and_before_it_is_there_those_it_will_have() -> None:
    settings = {"transaction.state.log.num.partitions": "7"}
    assert coordinator_partition(a_broker(settings=settings), TRANSACTION, "abc") == ("__transaction_state", 96354 % 7)
    there = a_broker(topic("__transaction_state", 5), settings=settings)
    assert coordinator_partition(there, TRANSACTION, "abc") == ("__transaction_state", 96354 % 5)
