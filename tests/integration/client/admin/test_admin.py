"""The admin client against Apache Kafka and against our broker: topics, settings, groups, partitions, transactions, the cluster."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest

from barnabas.client.admin import (
    AbortTransactionSpec,
    AclOperation,
    Admin,
    AlterConfigOp,
    AsyncAdmin,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ElectionType,
    GroupState,
    GroupType,
    IsolationLevel,
    NewTopic,
    OffsetAndMetadata,
    OffsetSpec,
    OpType,
    RecordsToDelete,
    TopicPartitionReplica,
    TransactionState,
)
from barnabas.client.errors import (
    ElectionNotNeeded,
    IllegalState,
    OffsetOutOfRange,
    Timeout,
    TransactionalIdNotFound,
)
from barnabas.config_def import InvalidConfig
from barnabas.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    InvalidPartitions,
    InvalidTopic,
    LogDirNotFound,
    NonEmptyGroup,
    TopicExists,
    UnknownMemberId,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests import broker
from tests.broker import TopicMaker

WAIT_S = 30
_numbers = itertools.count()


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap_servers=bootstrap) as client:
        yield client


@pytest.fixture(name="new_topic")
def known_topic(new_topic: TopicMaker, admin: Admin) -> TopicMaker:
    """Topics that the broker has heard of from its controller, too."""

    def make(hint: str, partitions: int = 1, **config: str) -> str:
        topic = new_topic(hint, partitions, **config)
        until(lambda: topic in admin.list_topics())
        return topic

    return make


@pytest.fixture
def name(worker_id: str) -> str:
    """A name that nothing has yet."""
    return f"admin-{worker_id}-{time.time_ns()}-{next(_numbers)}"


def until(true: Callable[[], bool]) -> None:
    """Waits for what a broker does after it has answered."""
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def produce(bootstrap: str, topic: str, *values: bytes, partition: int = 0, first_timestamp: int = 1000) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=partition, timestamp=first_timestamp + number)
    assert producer.flush(WAIT_S) == 0


@contextmanager
def member(bootstrap: str, group: str, topic: str, **settings: str) -> Generator[confluent_kafka.Consumer, None, None]:
    """A consumer that has been given its partitions, and polls as long as the block lasts."""
    names = {key.replace("_", "."): value for key, value in settings.items()}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": "false"} | names)
    assigned, stop = threading.Event(), threading.Event()
    consumer.subscribe([topic], on_assign=lambda *_: assigned.set())

    def poll() -> None:
        while not stop.is_set():
            consumer.poll(0.05)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        assert assigned.wait(WAIT_S)
        yield consumer
    finally:
        stop.set()
        thread.join()
        consumer.close()


# Topics


def test_a_topic_is_made_listed_described_and_deleted(admin: Admin, name: str) -> None:
    made = admin.create_topics([NewTopic(name, 3, 1, configs={"retention.ms": "86400000"})])[name]
    assert (made.num_partitions, made.replication_factor) == (3, 1)
    assert made.config is not None and made.config["retention.ms"].value == "86400000"
    until(lambda: name in admin.list_topics())
    assert admin.list_topics()[name].topic_id == made.topic_id
    described = admin.describe_topics([name], include_authorized_operations=True)[name]
    assert (described.topic_id, described.is_internal, len(described.partitions)) == (made.topic_id, False, 3)
    assert described.authorized_operations is not None and AclOperation.DESCRIBE in described.authorized_operations
    for number, info in enumerate(described.partitions):
        assert info.partition == number and info.leader is not None
        assert info.replicas == info.isr == (info.leader,)
    admin.delete_topics([name]).all()
    until(lambda: name not in admin.list_topics())


def test_a_topic_is_described_and_deleted_by_its_id(admin: Admin, name: str) -> None:
    topic_id = admin.create_topics([NewTopic(name, 1, 1)])[name].topic_id
    until(lambda: name in admin.list_topics())
    assert admin.describe_topics([topic_id])[topic_id].name == name
    admin.delete_topics([topic_id]).all()
    until(lambda: name not in admin.list_topics())
    assert isinstance(admin.delete_topics([topic_id]).errors[topic_id], UnknownTopicId)


def test_what_is_only_checked_is_not_made(admin: Admin, name: str) -> None:
    assert admin.create_topics([NewTopic(name, 2, 1)], validate_only=True)[name].num_partitions == 2
    assert name not in admin.list_topics()


def test_topics_fail_one_by_one_in_kafkas_words(admin: Admin, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)]).all()
    topics = [
        NewTopic(name, 1, 1),
        NewTopic(f"{name}/no", 1, 1),
        NewTopic(f"{name}-many", 0, 1),
        NewTopic(f"{name}-set", 1, 1, configs={"no": "1"}),
    ]
    errors = admin.create_topics(topics).errors
    assert [type(error) for error in errors.values()] == [TopicExists, InvalidTopic, InvalidPartitions, InvalidConfig]
    assert [str(error) for error in errors.values()] == [
        f"Topic '{name}' already exists.",
        f"Topic name is invalid: '{name}/no' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        "Number of partitions was set to an invalid non-positive value.",
        "Unknown topic config name: no",
    ]


def test_replicas_are_where_they_were_put(admin: Admin, name: str) -> None:
    (node,) = admin.describe_cluster().nodes
    admin.create_topics([NewTopic(name, replicas_assignments={0: [node.id], 1: [node.id]})]).all()
    until(lambda: name in admin.list_topics())
    assert [[replica.id for replica in info.replicas] for info in admin.describe_topics([name])[name].partitions] == [[node.id]] * 2


def test_a_description_comes_in_pages(admin: Admin, new_topic: TopicMaker) -> None:
    topics = [new_topic("pages", partitions=3) for _ in range(3)]
    for limit in (1, 2, 4, 2000):
        descriptions = admin.describe_topics(topics, partition_size_limit_per_response=limit)
        assert {topic: [info.partition for info in descriptions[topic].partitions] for topic in descriptions} == {
            topic: [0, 1, 2] for topic in topics
        }


def test_topics_that_are_not_there_have_errors(admin: Admin, new_topic: TopicMaker) -> None:
    topic, missing = new_topic("there"), Uuid(bytes(15) + b"\x07")
    topics = admin.describe_topics([topic, "not-there", ""])
    assert topics[topic].name == topic
    assert isinstance(topics.errors["not-there"], UnknownTopicOrPartition) and isinstance(topics.errors[""], InvalidTopic)
    assert isinstance(admin.describe_topics([missing]).errors[missing], UnknownTopicId)
    assert isinstance(admin.delete_topics(["not-there"]).errors["not-there"], UnknownTopicOrPartition)


def test_a_topic_gets_more_partitions_and_never_fewer(admin: Admin, new_topic: TopicMaker) -> None:
    topic = new_topic("grow", partitions=2)
    admin.create_partitions({topic: 4}).all()
    until(lambda: len(admin.describe_topics([topic])[topic].partitions) == 4)
    errors = admin.create_partitions({topic: 3, "not-there": 2}).errors
    assert isinstance(errors[topic], InvalidPartitions) and isinstance(errors["not-there"], UnknownTopicOrPartition)


# Settings


def resource_of(topic: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, topic)


def test_all_settings_of_a_topic_are_described(admin: Admin, new_topic: TopicMaker) -> None:
    topic = resource_of(new_topic("described", cleanup_policy="compact"))
    config = admin.describe_configs([topic], include_synonyms=True, include_documentation=True)[topic]
    assert (config["cleanup.policy"].value, config["cleanup.policy"].source) == ("compact", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert config["segment.bytes"].is_default and config["segment.bytes"].documentation
    assert [synonym.name for synonym in config["cleanup.policy"].synonyms] == ["cleanup.policy", "log.cleanup.policy"]


def test_settings_are_changed_one_by_one(admin: Admin, new_topic: TopicMaker) -> None:
    topic = resource_of(new_topic("change", retention_ms="1000"))
    changes = [AlterConfigOp("segment.ms", "5000"), AlterConfigOp("cleanup.policy", "compact", OpType.APPEND)]
    admin.incremental_alter_configs({topic: changes}).all()
    until(lambda: admin.describe_configs([topic])[topic]["segment.ms"].value == "5000")
    config = admin.describe_configs([topic])[topic]
    assert (config["cleanup.policy"].value, config["retention.ms"].value) == ("delete,compact", "1000")
    admin.incremental_alter_configs({topic: [AlterConfigOp("segment.ms", op_type=OpType.DELETE)]}).all()
    until(lambda: admin.describe_configs([topic])[topic]["segment.ms"].is_default)


def test_settings_are_replaced_as_a_whole(admin: Admin, new_topic: TopicMaker) -> None:
    topic = resource_of(new_topic("replace", segment_ms="5000"))
    admin.alter_configs({topic: {"retention.ms": "7000"}}).all()
    until(lambda: admin.describe_configs([topic])[topic]["retention.ms"].value == "7000")
    assert admin.describe_configs([topic])[topic]["segment.ms"].is_default


def test_wrong_settings_are_refused_and_the_others_taken(admin: Admin, new_topic: TopicMaker) -> None:
    right, wrong = resource_of(new_topic("right")), resource_of(new_topic("wrong"))
    outcomes = admin.incremental_alter_configs({right: [AlterConfigOp("segment.ms", "5000")], wrong: [AlterConfigOp("segment.ms", "soon")]})
    assert outcomes[right] is None
    assert isinstance(outcomes.errors[wrong], InvalidConfig)


def test_what_is_only_checked_is_not_set(admin: Admin, new_topic: TopicMaker) -> None:
    topic = resource_of(new_topic("check"))
    admin.incremental_alter_configs({topic: [AlterConfigOp("segment.ms", "5000")]}, validate_only=True).all()
    assert admin.describe_configs([topic])[topic]["segment.ms"].is_default


def test_a_brokers_settings_come_from_that_broker(admin: Admin) -> None:
    (node,) = admin.describe_cluster().nodes
    broker = ConfigResource(ConfigResourceType.BROKER, str(node.id))
    config = admin.describe_configs([broker])[broker]
    assert config["node.id"].value == str(node.id) or config["broker.id"].value == str(node.id)
    assert config["node.id"].is_read_only


def test_resources_with_settings_are_listed(admin: Admin, new_topic: TopicMaker) -> None:
    topic = new_topic("listed")
    assert resource_of(topic) in admin.list_config_resources([ConfigResourceType.TOPIC])
    assert {resource.type for resource in admin.list_config_resources()} >= {ConfigResourceType.TOPIC, ConfigResourceType.BROKER}
    assert admin.list_client_metrics_resources() == []


# Partitions


def test_offsets_are_found_by_end_and_by_time(admin: Admin, bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("offsets", partitions=2)
    produce(bootstrap, topic, b"a", b"b", b"c", first_timestamp=1000)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    def offset(spec: OffsetSpec, partition: TopicPartition = first) -> tuple[int, int]:
        listed = admin.list_offsets({partition: spec})[partition]
        return listed.offset, listed.timestamp

    assert offset(OffsetSpec.earliest()) == (0, -1)
    assert offset(OffsetSpec.latest()) == (3, -1)
    assert offset(OffsetSpec.for_timestamp(1001)) == (1, 1001)
    assert offset(OffsetSpec.max_timestamp()) == (2, 1002)
    assert offset(OffsetSpec.for_timestamp(5000)) == (-1, -1)
    assert offset(OffsetSpec.earliest_local()) == (0, -1)
    assert offset(OffsetSpec.latest(), second) == (0, -1)
    both = {first: OffsetSpec.latest(), second: OffsetSpec.earliest()}
    assert {partition: info.offset for partition, info in admin.list_offsets(both).items()} == {first: 3, second: 0}


def test_a_topic_that_is_not_there_has_no_offsets_and_is_waited_for_to_delete_its_records(admin: Admin) -> None:
    partition = TopicPartition("not-there", 0)
    assert isinstance(admin.list_offsets({partition: OffsetSpec.latest()}).errors[partition], UnknownTopicOrPartition)
    error = admin.delete_records({partition: RecordsToDelete(0)}, timeout_ms=300).errors[partition]
    assert isinstance(error, Timeout) and "delete_records(api=METADATA)" in str(error)


def test_an_open_transaction_hides_offsets_from_those_who_read_committed(admin: Admin, bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("stable")
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"a")
    assert producer.flush(WAIT_S) == 0
    partition = TopicPartition(topic, 0)
    latest = {partition: OffsetSpec.latest()}
    assert admin.list_offsets(latest)[partition].offset == 1
    assert admin.list_offsets(latest, isolation_level=IsolationLevel.READ_COMMITTED)[partition].offset == 0
    (state,) = admin.describe_producers([partition])[partition]
    assert state.current_transaction_start_offset == 0
    described = admin.describe_transactions([topic])[topic]
    assert (described.state, described.producer_id) == (TransactionState.ONGOING, state.producer_id)
    assert described.topic_partitions == {partition}
    listed = admin.list_transactions(states=[TransactionState.ONGOING], producer_ids=[state.producer_id])
    assert [one.transactional_id for ids in listed.values() for one in ids] == [topic]
    assert not any(admin.list_transactions(transactional_id_pattern="no-such.*").values())
    admin.fence_producers([topic]).all()
    assert admin.describe_transactions([topic])[topic].state is TransactionState.EMPTY
    assert admin.list_offsets(latest, isolation_level=IsolationLevel.READ_COMMITTED)[partition].offset == 2  # the record, and its end
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(WAIT_S)


def test_a_transaction_that_hangs_is_aborted(admin: Admin, bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("hanging")
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"a")
    assert producer.flush(WAIT_S) == 0
    partition = TopicPartition(topic, 0)
    (state,) = admin.describe_producers([partition])[partition]
    # One epoch further, as brokers with KIP-890 want the end of a transaction to have.
    spec = AbortTransactionSpec(partition, state.producer_id, state.producer_epoch + 1, 0)
    admin.abort_transaction(spec)
    (after,) = admin.describe_producers([partition])[partition]
    assert after.current_transaction_start_offset is None


def test_a_transactional_id_that_is_not_there_is_said_to_be_so(admin: Admin) -> None:
    with pytest.raises(TransactionalIdNotFound, match="for transactionalId `nobody` failed because the ID could not be found"):
        admin.describe_transactions(["nobody"])["nobody"]


def test_records_are_deleted_up_to_an_offset(admin: Admin, bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("delete", partitions=2)
    produce(bootstrap, topic, b"a", b"b", b"c")
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    deleted = admin.delete_records({first: RecordsToDelete.before_offset(2), second: RecordsToDelete.before_offset(9)})
    assert deleted[first].low_watermark == 2
    assert isinstance(deleted.errors[second], OffsetOutOfRange)
    assert admin.list_offsets({first: OffsetSpec.earliest()})[first].offset == 2


def test_log_directories_tell_their_replicas(admin: Admin, bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("dirs")
    produce(bootstrap, topic, b"a" * 1000)
    (node,) = admin.describe_cluster().nodes
    partition = TopicPartition(topic, 0)
    directories = admin.describe_log_dirs([node.id])[node.id]
    ((path, description),) = [(path, one) for path, one in directories.items() if partition in one.replica_infos]
    info = description.replica_infos[partition]
    assert info.size > 1000 and not info.is_future and description.error is None
    assert description.total_bytes and description.usable_bytes
    replica = TopicPartitionReplica(topic, 0, node.id)
    assert admin.describe_replica_log_dirs([replica])[replica].current_replica_log_dir == path
    assert admin.alter_replica_log_dirs({replica: path})[replica] is None
    assert isinstance(admin.alter_replica_log_dirs({replica: "/no/such/dir"}).errors[replica], LogDirNotFound)


def test_a_broker_that_is_not_there_is_waited_for(admin: Admin) -> None:
    error = admin.describe_log_dirs([4711], timeout_ms=300).errors[4711]
    assert str(error) == "Timed out waiting for a node assignment. Call: describe_log_dirs"


def test_a_leader_that_leads_need_not_be_elected(admin: Admin, new_topic: TopicMaker) -> None:
    topic = new_topic("elect")
    partition, missing = TopicPartition(topic, 0), TopicPartition("not-there", 0)
    for kind in ElectionType:
        errors = admin.elect_leaders(kind, [partition, missing]).errors
        assert isinstance(errors[partition], ElectionNotNeeded) and isinstance(errors[missing], UnknownTopicOrPartition)
    assert dict(admin.elect_leaders(ElectionType.PREFERRED)) == {}


# Groups


def test_offsets_of_a_group_are_set_listed_and_deleted(admin: Admin, new_topic: TopicMaker, name: str) -> None:
    topic = new_topic("committed", partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    admin.alter_consumer_group_offsets(name, {first: OffsetAndMetadata(5, "note", 0)}).all()
    assert admin.list_consumer_group_offsets(name)[name] == {first: OffsetAndMetadata(5, "note", 0)}
    assert admin.list_consumer_group_offsets({name: [first, second]})[name] == {first: OffsetAndMetadata(5, "note", 0), second: None}
    (listing,) = [one for one in admin.list_groups() if one.group_id == name]
    assert (listing.type, listing.group_state, listing.is_simple_consumer_group) == (GroupType.CLASSIC, GroupState.EMPTY, True)
    assert admin.describe_consumer_groups([name])[name].is_simple_consumer_group
    admin.delete_consumer_group_offsets(name, [first]).all()
    assert admin.list_consumer_group_offsets(name)[name] == {}


def test_each_offset_of_a_group_has_its_outcome(admin: Admin, new_topic: TopicMaker, name: str) -> None:
    there, gone = TopicPartition(new_topic("offset"), 0), TopicPartition("not-there", 0)
    altered = admin.alter_consumer_group_offsets(name, {there: OffsetAndMetadata(1), gone: OffsetAndMetadata(1)})
    assert altered[there] is None and isinstance(altered.errors[gone], UnknownTopicOrPartition)


def test_a_classic_group_is_described_with_its_members(admin: Admin, bootstrap: str, new_topic: TopicMaker, name: str) -> None:
    topic = new_topic("members", partitions=2)
    with member(bootstrap, name, topic, client_id="me", group_instance_id="static"):
        until(lambda: admin.describe_consumer_groups([name])[name].group_state is GroupState.STABLE)
        group = admin.describe_consumer_groups([name], include_authorized_operations=True)[name]
        (one,) = group.members
        assert (group.type, group.partition_assignor, one.client_id, one.group_instance_id) == (GroupType.CLASSIC, "range", "me", "static")
        assert one.assignment.topic_partitions == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
        assert group.authorized_operations is not None and AclOperation.READ in group.authorized_operations
        assert group.coordinator == admin.describe_cluster().nodes[0]
        classic = admin.describe_classic_groups([name])[name]
        assert (classic.protocol, classic.protocol_data, len(classic.members)) == ("consumer", "range", 1)
        assert name in [listing.group_id for listing in admin.list_groups(group_states=[GroupState.STABLE], types=[GroupType.CLASSIC])]
        assert name not in [listing.group_id for listing in admin.list_groups(group_states=[GroupState.EMPTY])]
        assert isinstance(admin.delete_consumer_groups([name]).errors[name], NonEmptyGroup)
        partition = TopicPartition(topic, 0)
        assert isinstance(admin.delete_consumer_group_offsets(name, [partition]).errors[partition], GroupSubscribedToTopic)
        assert isinstance(admin.alter_consumer_group_offsets(name, {partition: OffsetAndMetadata(1)}).errors[partition], UnknownMemberId)


def test_a_group_of_the_new_protocol_is_described_with_its_epochs(admin: Admin, bootstrap: str, new_topic: TopicMaker, name: str) -> None:
    topic = new_topic("epochs", partitions=2)
    with member(bootstrap, name, topic, group_protocol="consumer"):
        until(lambda: admin.describe_consumer_groups([name])[name].group_state is GroupState.STABLE)
        group = admin.describe_consumer_groups([name])[name]
        (one,) = group.members
        assert (group.type, group.partition_assignor, one.upgraded) == (GroupType.CONSUMER, "uniform", True)
        assert group.group_epoch == group.target_assignment_epoch == one.member_epoch
        assert one.target_assignment == one.assignment
        assert one.assignment.topic_partitions == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
        assert name in [listing.group_id for listing in admin.list_groups(types=[GroupType.CONSUMER])]


def test_members_are_removed_from_a_group(admin: Admin, bootstrap: str, new_topic: TopicMaker, name: str) -> None:
    topic = new_topic("removed")
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": name, "group.instance.id": "static"})
    consumer.subscribe([topic])
    until(
        lambda: (
            bool(
                consumer.poll(0.05),
            )
            or len(consumer.assignment()) == 1
        )
    )
    consumer.close()  # a static member stays when it closes
    assert admin.remove_members_from_consumer_group(name).all() == {"static": None}
    assert admin.describe_consumer_groups([name])[name].members == ()
    admin.delete_consumer_groups([name]).all()


def test_a_group_that_is_not_there_has_errors(admin: Admin) -> None:
    assert isinstance(admin.describe_consumer_groups(["nobody"]).errors["nobody"], GroupIdNotFound)
    assert isinstance(admin.describe_classic_groups(["nobody"]).errors["nobody"], GroupIdNotFound)
    assert isinstance(admin.delete_consumer_groups(["nobody"]).errors["nobody"], GroupIdNotFound)
    assert admin.list_consumer_group_offsets("nobody")["nobody"] == {}


# The cluster and the client itself


def test_the_cluster_is_described(admin: Admin, bootstrap: str) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True)
    (node,) = cluster.nodes
    assert cluster.controller == node and cluster.cluster_id
    assert node.port == int(bootstrap.rpartition(":")[2])
    assert cluster.authorized_operations is not None and AclOperation.CREATE in cluster.authorized_operations
    assert admin.describe_cluster().authorized_operations is None


def test_brokers_tell_what_they_understand(admin: Admin) -> None:
    (versions,) = admin.describe_api_versions().values()
    assert versions.api_versions[18].name == "ApiVersions" and versions.api_versions[18].max_version >= 4
    features = admin.describe_features()
    assert features.supported_features["group.version"].max_version >= 1
    assert features.finalized_features["transaction.version"].max_version_level == 2


def test_calls_of_many_threads_go_on_side_by_side(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("threads")
    with Admin(bootstrap_servers=bootstrap) as admin:
        problems: list[str] = []
        threads = [threading.Thread(target=lambda: problems.append(admin.describe_topics([topic])[topic].name)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == [topic] * 8


def test_a_closed_client_takes_no_more_calls(bootstrap: str) -> None:
    admin = Admin(bootstrap_servers=bootstrap)
    admin.close()
    admin.close()
    with pytest.raises(IllegalState):
        admin.list_topics()


def test_the_client_works_on_asyncio_as_well(bootstrap: str, name: str) -> None:
    async def scenario() -> int:
        async with AsyncAdmin({"bootstrap.servers": bootstrap, "client.id": "me"}) as admin:
            (await admin.create_topics([NewTopic(name, 2, 1)])).all()
            topics, _ = await asyncio.gather(admin.describe_topics([name]), admin.describe_cluster())
            return len(topics[name].partitions)

    assert asyncio.run(scenario()) == 2


def test_nobody_there_is_a_timeout_in_kafkas_words() -> None:
    with Admin(bootstrap_servers="localhost:1", default_api_timeout_ms=400, request_timeout_ms=400) as admin:
        with pytest.raises(
            Timeout, match=r"^Timed out waiting for a node assignment\. Call: list_topics; the last connection error: localhost:1 "
        ):
            admin.list_topics()
        error = str(admin.describe_topics(["t"]).errors["t"])
        assert error.startswith("Timed out waiting for a node assignment. Call: describe_topics; the last connection error: ")


def test_a_broker_that_comes_back_is_found_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--port", str(port)]
    with broker.running(tmp_path, options) as bootstrap:
        admin = Admin(bootstrap_servers=bootstrap)
        admin.create_topics([NewTopic("kept", 1, 1)]).all()
    problems: list[str] = []
    call = threading.Thread(target=lambda: problems.extend(admin.describe_topics(["kept"]).all()))
    call.start()
    with broker.running(tmp_path, options):
        call.join(WAIT_S)
        admin.close()
    assert problems == ["kept"]
