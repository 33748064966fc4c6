"""The settings of a consumer: Kafka 4.2's defaults, what follows from several settings, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.config.config import ClientConfig
from barnabas.client.consumer.config import FetchConfig, consumer_config
from barnabas.client.consumer.offsets.offset_reset import EARLIEST, LATEST, NONE, AutoOffsetResetStrategy, ResetKind, parse_offset_reset
from barnabas.config_def import InvalidConfig
from barnabas.errors import InvalidGroupId

BOOTSTRAP = {"bootstrap.servers": "localhost:9092"}

# As ConsumerConfig.configDef() of Kafka 4.2.0 prints them.
DEFAULTS = {
    "group.id": None,
    "group.instance.id": None,
    "session.timeout.ms": 45000,
    "heartbeat.interval.ms": 3000,
    "metadata.max.age.ms": 300000,
    "auto.commit.interval.ms": 5000,
    "client.rack": "",
    "max.partition.fetch.bytes": 1048576,
    "send.buffer.bytes": 131072,
    "receive.buffer.bytes": 65536,
    "fetch.min.bytes": 1,
    "fetch.max.bytes": 52428800,
    "fetch.max.wait.ms": 500,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1000,
    "auto.offset.reset": "latest",
    "check.crcs": True,
    "metrics.sample.window.ms": 30000,
    "metrics.num.samples": 2,
    "request.timeout.ms": 30000,
    "default.api.timeout.ms": 60000,
    "connections.max.idle.ms": 540000,
    "interceptor.classes": (),
    "max.poll.records": 500,
    "max.poll.interval.ms": 300000,
    "exclude.internal.topics": True,
    "isolation.level": "read_uncommitted",
    "allow.auto.create.topics": True,
    "group.protocol": "classic",
    "group.remote.assignor": None,
    "metadata.recovery.strategy": "rebootstrap",
}


def config(given: dict[str, object] | None = None, /, **settings: object) -> ClientConfig:
    return consumer_config(BOOTSTRAP | (given or {}), settings)


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_defaults_are_those_of_kafka(name: str) -> None:
    assert config()[name] == DEFAULTS[name]


def test_the_default_assignors_are_range_and_cooperative_sticky() -> None:
    assert [name.rpartition(".")[2] for name in config()["partition.assignment.strategy"]] == ["RangeAssignor", "CooperativeStickyAssignor"]


def test_settings_may_be_keywords() -> None:
    assert config({"max.poll.records": "7"}, fetch_min_bytes=3).values().items() >= {"max.poll.records": 7, "fetch.min.bytes": 3}.items()


def test_bootstrap_servers_are_required() -> None:
    with pytest.raises(InvalidConfig, match=r'Missing required configuration "bootstrap.servers" which has no default value.'):
        consumer_config({}, {})


def test_clients_without_a_name_are_numbered() -> None:
    first, second = config()["client.id"], config(group_id="g")["client.id"]
    assert first.startswith("consumer-null-")
    assert second == f"consumer-g-{int(first.rpartition('-')[2]) + 1}"
    assert config(group_id="g", group_instance_id="i")["client.id"] == "consumer-g-i"
    assert config(client_id="mine")["client.id"] == "mine"


def test_without_a_group_commits_are_not_automatic() -> None:
    assert config()["enable.auto.commit"] is False
    assert config(group_id="g")["enable.auto.commit"] is True
    with pytest.raises(InvalidConfig, match=r"^enable\.auto\.commit cannot be set to true without a group\.id\.$"):
        config(enable_auto_commit=True)


@pytest.mark.parametrize("group", ["", "  "])
def test_an_empty_group_is_refused(group: str) -> None:
    with pytest.raises(InvalidGroupId, match=r"The configured group.id should not be an empty string or whitespace."):
        config(group_id=group)


@pytest.mark.parametrize("name", ["session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"])
def test_settings_of_the_classic_protocol_are_refused_by_the_new(name: str) -> None:
    value = "org.apache.kafka.clients.consumer.RangeAssignor" if name.startswith("partition") else 1000
    with pytest.raises(InvalidConfig, match=f"{name} cannot be set when group.protocol=CONSUMER"):
        config({name: value, "group.id": "g", "group.protocol": "consumer"})


def test_a_remote_assignor_is_refused_by_the_classic_protocol() -> None:
    with pytest.raises(InvalidConfig, match=r"group.remote.assignor cannot be set when group.protocol=CLASSIC"):
        config(group_id="g", group_remote_assignor="uniform")


REFUSED = [
    ("isolation.level", "READ_COMMITTED", "String must be one of: read_committed, read_uncommitted"),
    ("max.poll.records", 0, "Value must be at least 1"),
    ("fetch.max.bytes", -1, "Value must be at least 0"),
    ("group.instance.id", "", "String must be non-empty"),
    ("group.protocol", "foo", r"String must be one of \(case insensitive\): CONSUMER, CLASSIC"),
    ("auto.offset.reset", "smallest", "The value must be either 'earliest', 'latest', 'none' or of the format"),
    ("auto.offset.reset", "LATEST", "The value must be either"),
]


@pytest.mark.parametrize(("name", "value", "reason"), REFUSED)
def test_wrong_values_are_refused_in_kafkas_words(name: str, value: object, reason: str) -> None:
    with pytest.raises(InvalidConfig, match=f"Invalid value {value} for configuration {name}: .*{reason}"):
        config({name: value})


RESETS = {
    "earliest": EARLIEST,
    "latest": LATEST,
    "none": NONE,
    "by_duration:PT1H": AutoOffsetResetStrategy(ResetKind.BY_DURATION, 3_600_000),
    "by_duration:P1DT2H3M4.5S": AutoOffsetResetStrategy(ResetKind.BY_DURATION, 93_784_500),
    "by_duration:PT0S": AutoOffsetResetStrategy(ResetKind.BY_DURATION, 0),
    "by_duration:P2D": AutoOffsetResetStrategy(ResetKind.BY_DURATION, 172_800_000),
}


@pytest.mark.parametrize("text", RESETS)
def test_every_reset_strategy_is_read(text: str) -> None:
    assert parse_offset_reset(text) == RESETS[text]


@pytest.mark.parametrize(
    "text", ["", "by_duration:", "by_duration:1h", "by_duration:-PT1H", "by_duration:P", "by_duration:PT", "by_duration:P1Y"]
)
def test_what_is_no_strategy_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"auto\.offset\.reset"):
        parse_offset_reset(text)


@given(st.integers(0, 10**6), st.integers(0, 10**9))
def test_a_duration_is_counted_back_from_now(seconds: int, now_ms: int) -> None:
    assert parse_offset_reset(f"by_duration:PT{seconds}S").timestamp(now_ms) == max(0, now_ms - seconds * 1000)


def test_the_fetcher_gets_its_settings() -> None:
    fetch_config = FetchConfig.of(config(isolation_level="read_committed", client_rack="r", auto_offset_reset="none"))
    assert (fetch_config.read_committed, fetch_config.client_rack, fetch_config.offset_reset, fetch_config.max_poll_records) == (
        True,
        "r",
        NONE,
        500,
    )
