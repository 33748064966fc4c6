"""Consumer groups of every client, and of several in one group: members come, are killed and leave while records keep coming."""

from __future__ import annotations

import pytest

from tests.integration.groups.scenario import Outcome, Scenario

pytestmark = pytest.mark.java

EVERYBODY = ("confluent", "kafka_python", "aiokafka", "java")
SCENARIOS = [
    Scenario("range", "range", EVERYBODY, joins="kafkajs", killed=3),
    Scenario("roundrobin", "roundrobin", ("kafkajs", "aiokafka", "java", "kafka_python"), joins="confluent", killed=0),
    Scenario("sticky", "sticky", ("java", "kafka_python", "aiokafka"), joins="java", killed=1),
    Scenario("cooperative-sticky", "cooperative-sticky", ("confluent", "java", "kafka_python"), joins="confluent", killed=0),
    Scenario("consumer", "consumer", ("java", "confluent"), joins="java", killed=1),
    Scenario("classic-and-consumer", "consumer", ("confluent:cooperative-sticky", "java:range"), joins="java", killed=0),
    Scenario("confluent", "range", ("confluent", "confluent"), joins="confluent", killed=0),
    Scenario("kafka-python", "roundrobin", ("kafka_python", "kafka_python"), joins="kafka_python", killed=0),
    Scenario("aiokafka", "roundrobin", ("aiokafka", "aiokafka"), joins="aiokafka", killed=1),
    Scenario("kafkajs", "RoundRobinAssigner", ("kafkajs", "kafkajs"), joins="kafkajs", killed=1),
]
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


Played = dict[str, Outcome]


@every_scenario
def test_every_record_is_delivered_at_least_once(scenario: Scenario, played: Played) -> None:
    assert (played[scenario.name].problem, played[scenario.name].missing) == ("", [])


@every_scenario
def test_a_partition_is_held_by_one_member_at_any_time(scenario: Scenario, played: Played) -> None:
    assert (played[scenario.name].problem, played[scenario.name].held_by_two) == ("", [])


@every_scenario
def test_a_record_is_delivered_once_unless_who_read_it_was_killed(scenario: Scenario, played: Played) -> None:
    assert (played[scenario.name].problem, played[scenario.name].repeated) == ("", [])
