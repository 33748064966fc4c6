"""What tools read from their command lines and files, and what they refuse in which words."""

from __future__ import annotations

import pytest

from barnabas.java_numbers import double_text, parse_double
from barnabas.tools.administration import feature_versions as versions
from barnabas.tools.administration.config_entities import added_configs
from barnabas.tools.administration.group_offsets import as_csv, parse_datetime, parse_duration_ms, parse_plan, parse_topic
from barnabas.tools.administration.topic_arguments import parse_configs, parse_replica_assignment
from barnabas.tools.command_line.failures import BadArgument, Terse, ToolError, described, java_name
from barnabas.tools.command_line.json_plan import WrongJson
from barnabas.tools.command_line.options import Options
from barnabas.tools.command_line.topic_filter import IncludeList
from barnabas.tools.configs import OPTIONS as CONFIG_OPTIONS
from barnabas.tools.configs import entities
from barnabas.tools.connecting.connect import validate_bootstrap
from barnabas.tools.connecting.load import ThroughputThrottler, java_date
from barnabas.tools.delete_records import parse_offsets
from barnabas.tools.e2e_latency import named
from barnabas.tools.features import parse_level
from barnabas.tools.get_offsets import OPTIONS as OFFSET_OPTIONS
from barnabas.tools.get_offsets import parse_rules, parse_time
from barnabas.tools.leader_election import parse_partitions
from barnabas.topic_partition import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def test_an_include_list_takes_a_comma_for_or_and_drops_quotes() -> None:
    included = IncludeList("'a.*, b'")
    assert [name for name in ("a", "ab", "b", "bb") if included.allows(name)] == ["a", "ab", "b"]


def test_an_include_list_can_leave_out_internal_topics() -> None:
    assert not IncludeList(".*").allows("__consumer_offsets", exclude_internal=True)


def test_a_pattern_that_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(ToolError, match=r"^\(a is an invalid regex\.$"):
        IncludeList("(a")


def test_replicas_are_assigned_partition_by_partition() -> None:
    assert parse_replica_assignment("1:2,2:3") == {0: [1, 2], 1: [2, 3]}


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("1:1", "Partition replica lists may not contain duplicate entries: 1"),
        ("1:2,3", r"Partition 1 has different replication factor: \[3\]"),
        ("1,,2", 'For input string: ""'),
        ("x", 'For input string: "x"'),
    ],
)
def test_a_bad_assignment_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(ToolError, match=refusal):
        parse_replica_assignment(text)


def test_a_topic_config_needs_a_value() -> None:
    with pytest.raises(BadArgument, match="all configs to be added must be in the format"):
        parse_configs(["retention.ms"])


def test_configs_with_commas_stand_in_brackets() -> None:
    options = Options(CONFIG_OPTIONS, ["--add-config", "cleanup.policy=[compact,delete], retention.ms = 5"])
    assert added_configs(options) == {"cleanup.policy": "compact,delete", "retention.ms": "5"}


def test_names_and_defaults_are_in_the_order_of_the_command_line() -> None:
    line = "--entity-type users --entity-default --entity-type clients --entity-name c"
    assert entities(Options(CONFIG_OPTIONS, line.split())) == (["users", "clients"], ["", "c"])


@pytest.mark.parametrize(
    ("text", "expected"), [("latest", -1), ("-2", -2), ("earliest-pending-upload", -6), ("1700000000000", 1700000000000)]
)
def test_a_time_is_a_name_or_a_number(text: str, expected: int) -> None:
    assert parse_time(text) == expected


def test_a_time_that_is_neither_is_refused() -> None:
    with pytest.raises(Terse, match=r"^Malformed time argument soon. Please use -1 or latest / "):
        parse_time("soon")


@pytest.mark.parametrize(
    ("rules", "taken"),
    [("a", [A]), ("b:1", [B]), (":0", [A]), ("b:0-1", []), ("b:0-2", [B]), ("b:1-", [B]), ("b:-1", []), ("a,b", [A, B])],
)
def test_rules_take_topics_and_ranges_of_partitions(rules: str, taken: list[TopicPartition]) -> None:
    parsed = parse_rules(Options(OFFSET_OPTIONS, ["--topic-partitions", rules]))
    assert [partition for partition in (A, B) if any(rule.allows(partition) for rule in parsed)] == taken


def test_offsets_to_delete_are_read() -> None:
    assert parse_offsets('{"partitions": [{"topic": "a", "partition": 0, "offset": -1}]}') == {A: -1}


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("{", "The input string is not a valid JSON"),
        ("{}", "Missing partitions field"),
        ("[]", r"Expected JSON object, received \[\]"),
        ('{"version": 2, "partitions": []}', "Not supported version field value 2"),
        ('{"partitions": [{"topic": 1}]}', "Expected `String` value, received 1"),
        ('{"partitions": [{"topic": "a", "partition": 0}]}', "No such field exists: `offset`"),
        ('{"partitions": [{"topic": "a", "partition": true, "offset": 1}]}', "Expected `Integer` value, received true"),
    ],
)
def test_a_bad_file_of_offsets_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(ToolError, match=f"^{refusal}$"):
        parse_offsets(text)


def test_a_partition_may_be_elected_once_only() -> None:
    with pytest.raises(ToolError, match=r"Replica election data contains duplicate partitions: \[a-0\]"):
        parse_partitions('{"partitions": [{"topic": "a", "partition": 0}, {"topic": "a", "partition": 0}]}')


def test_json_errors_are_kafkas() -> None:
    assert java_name(WrongJson("x")) == "com.fasterxml.jackson.databind.JsonMappingException"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T00:00:00.000-01", 3_600_000),
        ("2000-02-29T00:00:00.000Z", 951_782_400_000),
    ],
)
def test_a_datetime_is_utc_unless_it_names_a_zone(text: str, expected: int) -> None:
    assert parse_datetime(text) == expected


@pytest.mark.parametrize("text", ["2020-01-01T00:00", "2020-13-01T00:00:00.000", "2020-02-30T00:00:00.000", "xTy"])
def test_a_datetime_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match=r"java.text.ParseException: Unparseable date"):
        parse_datetime(text)


@pytest.mark.parametrize(("text", "expected"), [("PT1S", 1000), ("P1DT2H3M4.5S", 93_784_500), ("-PT1M", -60_000), ("PT-1.5S", -1500)])
def test_a_duration_is_read_as_java_reads_it(text: str, expected: int) -> None:
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1DT", "long"])
def test_a_duration_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="Text cannot be parsed to a Duration"):
        parse_duration_ms(text)


def test_a_topic_may_name_its_partitions() -> None:
    assert parse_topic("a:0,2") == [A, TopicPartition("a", 2)]


def test_a_plan_survives_the_way_through_a_file() -> None:
    plan = {"g": {A: 5, TopicPartition("a-topic-with-quite-a-long-name", 1): 6}}
    assert parse_plan(as_csv(plan, with_group=True), []) == plan
    assert parse_plan(as_csv(plan, with_group=False), ["g"]) == plan


def test_long_names_are_quoted_in_csv() -> None:
    assert as_csv({"g": {TopicPartition("x" * 25, 0): 1}}, with_group=False) == f'"{"x" * 25}",0,1\n'


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1.0"), (1e7, "1.0E7"), (12345678.9, "1.23456789E7"), (0.001, "0.001"), (1e-5, "1.0E-5"), (0.0, "0.0")]
)
def test_doubles_are_written_as_in_java(value: float, text: str) -> None:
    assert double_text(value) == text
    assert parse_double(text) == value


@pytest.mark.parametrize("text", ["", "fast", "1,5", "0x", "1e"])
def test_what_java_does_not_read_as_a_double_is_none(text: str) -> None:
    assert parse_double(text) is None


@pytest.mark.parametrize(("release", "level"), [("3.9-IV0", 21), ("4.2", 29), ("4.0.1", 25), ("4.3-IV0", 30)])
def test_a_release_has_a_metadata_version(release: str, level: int) -> None:
    assert versions.metadata_level(release) == level


def test_a_release_that_is_not_there_yet_has_none() -> None:
    with pytest.raises(ValueError, match=r"Unknown metadata.version '4.3'"):
        versions.metadata_level("4.3")


def test_features_have_the_levels_of_their_release() -> None:
    levels = {name: versions.default_level(name, versions.metadata_level("4.0")) for name in versions.FEATURES}
    assert levels["transaction.version"] == 2
    assert levels["share.version"] == 0


def test_a_feature_level_is_a_short() -> None:
    assert parse_level(" a = 5") == ("a", 5)
    with pytest.raises(ToolError, match="unable to parse 99999 as a short"):
        parse_level("a=99999")


def test_words_by_position_become_options() -> None:
    assert named(["h:1", "t", "5", "all", "20"])[:4] == ["--bootstrap-server", "h:1", "--topic", "t"]
    with pytest.raises(Terse, match="Expected 5 or 6 positional arguments, but got 2"):
        named(["a", "b"])


@pytest.mark.parametrize("address", ["localhost:9092", "[::1]:9092", "a:1,b:2"])
def test_an_address_has_a_port(address: str) -> None:
    assert validate_bootstrap(address) is None


@pytest.mark.parametrize("address", ["localhost", "a:1,b", "", " ", "a:x"])
def test_an_address_without_a_port_is_refused(address: str) -> None:
    assert validate_bootstrap(address) is not None


def test_dates_follow_javas_patterns() -> None:
    assert java_date("yyyy 'it''s' SSS", 1_700_000_000_007) == "2023 it's 007"


def test_a_throttle_sleeps_off_what_was_done_too_fast() -> None:
    slept: list[float] = []
    throttle = ThroughputThrottler(100, 0, slept.append)
    for done in range(1, 4):
        throttle.wait(done, 10)
    assert sum(slept) == pytest.approx(0.02)


def test_no_throttle_never_sleeps() -> None:
    throttle = ThroughputThrottler(-1, 0, lambda _: pytest.fail("slept"))
    throttle.wait(1_000_000, 1)


def test_an_error_is_described_with_its_java_name() -> None:
    from barnabas.errors import GroupIdNotFound, TopicExists

    assert (
        described(TopicExists("Topic 'a' already exists."))
        == "org.apache.kafka.common.errors.TopicExistsException: Topic 'a' already exists."
    )
    assert java_name(GroupIdNotFound()) == "org.apache.kafka.common.errors.GroupIdNotFoundException"


@pytest.mark.parametrize(
    ("code", "name"),
    [(-1, "UnknownServerException"), (36, "TopicExistsException"), (40, "InvalidConfigurationException"), (56, "KafkaStorageException")],
)
def test_every_code_has_the_name_of_its_java_exception(code: int, name: str) -> None:
    from barnabas.client.errors import error_for

    assert java_name(error_for(code)) == f"org.apache.kafka.common.errors.{name}"
