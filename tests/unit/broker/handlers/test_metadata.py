from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.broker import Broker
from barnabas.broker.topics.admin_manager import TopicCreation
from barnabas.broker.topics.auto_topic_creation import AutoTopicCreation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics_request import CreatableTopic
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.asking import CLUSTER_ID, a_broker, alive, ask, asked, id_of, topic, update

VERSIONS = range(14)
TOPIC_OPERATIONS = 3576  # what Apache Kafka 4.2 answers without an authorizer
CLUSTER_OPERATIONS = 8096


def named(*names: str | None, allow_creation: bool = True) -> MetadataRequest:
    return MetadataRequest([MetadataRequestTopic(name=name) for name in names], allow_creation)


def by_id(*topic_ids: Uuid) -> MetadataRequest:
    return MetadataRequest([MetadataRequestTopic(topic_id, None) for topic_id in topic_ids])


def no_creation(*names: str) -> MetadataRequest:
    return named(*names, allow_creation=False)


def metadata(broker: Broker, request: MetadataRequest, version: int = 13, listener: str = "PLAINTEXT") -> MetadataResponse:
    return asked(broker, request, MetadataResponse, version, listener)


def told(response: MetadataResponse) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in response.topics]


class Admin:
    """Stands for the AdminManager: notes what is to be created."""

    def __init__(self) -> None:
        self.created: list[str] = []

    async def create_topics(self, topics: Sequence[CreatableTopic], timeout_ms: int) -> list[TopicCreation]:
        self.created += [topic.name for topic in topics]
        return [TopicCreation(topic.name) for topic in topics]


def creating_broker(admin: Admin, **settings: str) -> Broker:
    broker = a_broker(topic("known"), settings={name.replace("_", "."): value for name, value in settings.items()})
    broker.topic_creation = AutoTopicCreation(broker.config, admin, lambda: 0, lambda: 0)
    return broker


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_tells_a_topic_with_its_leader(version: int) -> None:
    response = metadata(a_broker(topic("t", 2), topic("u")), named("t"), version)
    (found,) = response.topics
    assert (found.name, found.error_code) == ("t", 0)
    assert [(partition.partition_index, partition.leader_id, partition.replica_nodes) for partition in found.partitions] == [
        (0, 0, [0]),
        (1, 0, [0]),
    ]
    assert response.brokers == [MetadataResponseBroker(0, "host0", 9092)]


def test_fields_come_with_their_versions() -> None:
    broker = a_broker(topic("t"))
    assert metadata(broker, named("t"), 2).cluster_id == CLUSTER_ID
    assert metadata(broker, named("t"), 1).controller_id == 0
    assert metadata(broker, named("t"), 7).topics[0].partitions[0].leader_epoch == 7
    assert metadata(broker, named("t"), 10).topics[0].topic_id == id_of("t")


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_are_told_in_the_order_of_their_names(version: int) -> None:
    everything = MetadataRequest([] if version == 0 else None)
    response = metadata(a_broker(topic("b"), topic("__consumer_offsets"), topic("a")), everything, version)
    assert [topic.name for topic in response.topics] == ["__consumer_offsets", "a", "b"]
    if version >= 1:
        assert [found.is_internal for found in response.topics] == [True, False, False]


@pytest.mark.parametrize("version", range(1, 14))
def test_asking_for_no_topics_is_answered_with_none_since_version_1(version: int) -> None:
    response = metadata(a_broker(topic("a")), MetadataRequest([]), version)
    assert (response.topics, len(response.brokers)) == ([], 1)


def test_existing_topics_come_first_each_once_and_in_the_order_asked_for() -> None:
    response = metadata(a_broker(topic("zz"), topic("aa")), no_creation("zz", "nope", "aa", "zz", "bad name", ""))
    assert told(response) == [("zz", 0), ("aa", 0), ("nope", 3), ("bad name", 17), ("", 17)]


@pytest.mark.parametrize("version", range(8, 14))
def test_operations_are_told_to_those_who_ask(version: int) -> None:
    request = no_creation("t", "nope")
    request.include_topic_authorized_operations = True
    request.include_cluster_authorized_operations = version <= 10
    response = metadata(a_broker(topic("t")), request, version)
    assert [topic.topic_authorized_operations for topic in response.topics] == [TOPIC_OPERATIONS] * 2
    assert response.cluster_authorized_operations == (CLUSTER_OPERATIONS if version <= 10 else -(2**31))


def test_operations_asked_for_by_one_client_are_not_told_to_the_next() -> None:
    broker = a_broker(topic("t"))
    request = named("t")
    request.include_topic_authorized_operations = True
    metadata(broker, request)
    assert metadata(broker, named("t")).topics[0].topic_authorized_operations == -(2**31)


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_found_by_their_ids_and_unknown_ids_come_first(version: int) -> None:
    request = by_id(id_of("t"), Uuid(b"x" * 16), id_of("t"))
    request.include_topic_authorized_operations = True
    unknown, known = metadata(a_broker(topic("t")), request, version).topics
    assert (unknown.name, unknown.error_code, unknown.topic_id) == (None, ErrorCode.UNKNOWN_TOPIC_ID, Uuid(b"x" * 16))
    assert unknown.topic_authorized_operations == -(2**31)
    assert (known.name, known.error_code, known.topic_authorized_operations) == ("t", 0, TOPIC_OPERATIONS)


def test_names_are_not_looked_at_beside_ids() -> None:
    request = MetadataRequest([MetadataRequestTopic(id_of("t"), "other"), MetadataRequestTopic(name="u")])
    assert told(metadata(a_broker(topic("t"), topic("u")), request)) == [("t", 0)]


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_before_version_12(version: int) -> None:
    response = metadata(a_broker(topic("t")), MetadataRequest([MetadataRequestTopic(id_of("t"), "t")]), version)
    assert (told(response), response.brokers, response.cluster_id) == ([("t", ErrorCode.INVALID_REQUEST)], [], None)


def test_a_topic_without_name_and_id_spoils_the_request() -> None:
    response = metadata(a_broker(topic("t")), named(None, "t"))
    assert told(response) == [("", ErrorCode.INVALID_REQUEST), ("t", ErrorCode.INVALID_REQUEST)]


def test_addresses_are_those_of_the_listener_the_client_came_in_by() -> None:
    broker = a_broker(topic("t", leader=1))
    broker.metadata_cache.update(update(brokers=(alive(0, "IN", "OUT"), alive(1, "IN", rack="r"))))
    assert [node.node_id for node in metadata(broker, named("t"), listener="OUT").brokers] == [0]
    assert metadata(broker, named("t"), 6, "OUT").topics[0].partitions[0].error_code == ErrorCode.LISTENER_NOT_FOUND
    assert metadata(broker, named("t"), 5, "OUT").topics[0].partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert metadata(broker, named("t"), listener="IN").brokers[1] == MetadataResponseBroker(1, "host1", 9093, "r")


def test_the_first_version_misses_replicas_that_cannot_be_reached() -> None:
    broker = a_broker(topic("t", leader=1))
    broker.metadata_cache.update(update(brokers=(alive(0, "IN"), alive(1, "IN", "OUT"))))
    partition = metadata(broker, named("t"), 0, "OUT").topics[0].partitions[0]
    assert (partition.error_code, partition.replica_nodes) == (ErrorCode.REPLICA_NOT_AVAILABLE, [])


def test_a_cluster_without_a_controller_says_so() -> None:
    broker = a_broker()
    broker.metadata_cache.update(update(controller_id=-1))
    assert metadata(broker, MetadataRequest([])).controller_id == -1


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_topic_is_created_and_has_no_leader_meanwhile(version: int) -> None:
    admin = Admin()

    async def scenario() -> MetadataResponse:
        broker = creating_broker(admin)
        response = await ask(broker, named("new", "known", "bad name"), MetadataResponse, version)
        await broker.topic_creation.settled()
        return response

    response = asyncio.run(scenario())
    assert told(response) == [("known", 0), ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION), ("new", ErrorCode.LEADER_NOT_AVAILABLE)]
    assert admin.created == ["new"]


@pytest.mark.parametrize(("request_", "settings"), [(no_creation("new"), {}), (named("new"), {"auto_create_topics_enable": "false"})])
def test_nothing_is_created_unless_broker_and_client_want_it(request_: MetadataRequest, settings: dict[str, str]) -> None:
    admin = Admin()
    response = metadata(creating_broker(admin, **settings), request_)
    assert (told(response), admin.created) == ([("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)], [])


def test_asking_for_all_topics_creates_none() -> None:
    admin = Admin()
    assert told(metadata(creating_broker(admin), MetadataRequest(None))) == [("known", 0)]
    assert admin.created == []


@given(
    st.integers(0, 13),
    st.none()
    | st.lists(st.tuples(st.sampled_from([Uuid.ZERO, id_of("t"), Uuid(b"x" * 16)]), st.none() | st.text(max_size=5) | st.just("t"))),
    st.booleans(),
)
def test_whatever_is_asked_for_is_answered_once_and_in_the_client_s_version(
    version: int, wanted: list[tuple[Uuid, str | None]] | None, operations: bool
) -> None:
    if version < 12:
        wanted = [(topic_id if version >= 10 else Uuid.ZERO, name or "") for topic_id, name in wanted or []]
    topics = None if wanted is None else [MetadataRequestTopic(topic_id, name) for topic_id, name in wanted]
    request = MetadataRequest(topics, version < 4, include_topic_authorized_operations=operations and version >= 8)
    response = metadata(a_broker(topic("t"), settings={"auto.create.topics.enable": "false"}), request, version)
    if not any(found.error_code == ErrorCode.INVALID_REQUEST for found in response.topics):
        told_of = [(topic.name, topic.topic_id) for topic in response.topics]
        assert len(told_of) == len(set(told_of))
