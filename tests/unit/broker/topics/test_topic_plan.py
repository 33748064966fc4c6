"""For any request, the plan can be written, or the error is one of Kafka's."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.topics.topic_plan import PARTITIONS_PER_REQUEST_MAX, TopicPlanner
from barnabas.errors import KafkaError
from barnabas.metadata.admin_tree import ExistingTopics, validate_assignment
from barnabas.metadata.replica_assignment import BrokerMetadata
from barnabas.metadata.znodes.topics import ReplicaAssignment, TopicAssignment
from barnabas.protocol.messages.create_partitions_request import CreatePartitionsAssignment, CreatePartitionsTopic
from barnabas.protocol.messages.create_topics_request import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig

BROKERS = [BrokerMetadata(broker_id, rack) for broker_id, rack in ((1, "a"), (2, "b"), (4, "a"), (7, None))]
IDS = {broker.id for broker in BROKERS}

some_count = st.one_of(st.integers(-3, 12), st.sampled_from([-(2**31), PARTITIONS_PER_REQUEST_MAX, 2**31 - 1]))
some_factor = st.one_of(st.integers(-3, 6), st.sampled_from([-(2**15), 2**15 - 1]))
some_brokers = st.lists(st.sampled_from([1, 2, 4, 7, 9, -1]), max_size=4)
some_config = st.builds(
    CreatableTopicConfig,
    st.sampled_from(["retention.ms", "cleanup.policy", "min.insync.replicas", "nothing", ""]),
    st.sampled_from(["1", "-1", "compact", "", "x", None]),
)
some_topic = st.builds(
    CreatableTopic,
    st.one_of(st.text(max_size=4), st.sampled_from(["t", "there", "there.too", "there_too"])),
    some_count,
    some_factor,
    st.lists(st.builds(CreatableReplicaAssignment, st.integers(-1, 4), some_brokers), max_size=4),
    st.lists(some_config, max_size=3),
)


def planner() -> TopicPlanner:
    return TopicPlanner(DynamicBrokerConfig(BrokerConfig.from_properties({"num.partitions": "3"})), None, Random(1))


@given(some_topic)
def test_a_new_topic_can_be_written_or_is_refused(topic: CreatableTopic) -> None:
    names = ExistingTopics(["there", "there.too"], [])
    try:
        planner().check_total([topic])
        plan = planner().new_topic(topic, names, BROKERS)
    except KafkaError as refused:
        assert refused.code > 0
        assert str(refused)
        return
    assert plan.name == topic.name and plan.name not in names
    validate_assignment(plan.assignment)
    assert len(plan.assignment) <= PARTITIONS_PER_REQUEST_MAX
    assert all(set(replicas) <= IDS for replicas in plan.assignment.values())
    assert set(plan.config) == {config.name for config in topic.configs}


@given(
    st.integers(1, 5),
    st.lists(st.sampled_from(sorted(IDS)), min_size=1, max_size=3, unique=True),
    some_count,
    st.one_of(st.none(), st.lists(st.builds(CreatePartitionsAssignment, some_brokers), max_size=4)),
)
def test_new_partitions_follow_the_old_ones_or_are_refused(
    present: int, replicas: list[int], count: int, assignments: list[CreatePartitionsAssignment] | None
) -> None:
    topic = TopicAssignment({partition: ReplicaAssignment(tuple(replicas)) for partition in range(present)})
    requested = CreatePartitionsTopic("t", count, assignments)
    try:
        added = planner().new_partitions(requested, topic, BROKERS, PARTITIONS_PER_REQUEST_MAX)
    except KafkaError as refused:
        assert refused.code > 0
        return
    assert list(added) == list(range(present, count))
    assert all(len(set(replica_ids)) == len(replicas) and set(replica_ids) <= IDS for replica_ids in added.values())
