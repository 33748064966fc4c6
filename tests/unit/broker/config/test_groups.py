from __future__ import annotations

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.client_metrics import CLIENT_METRICS_CONFIGS, parse_patterns
from barnabas.broker.config.groups import GROUP_CONFIGS, describe_group, group_value, validate_group
from barnabas.config_def import InvalidConfig


def config(**static: str) -> BrokerConfig:
    return BrokerConfig.from_properties({name.replace("_", "."): text for name, text in static.items()})


def test_a_group_has_the_brokers_value_where_it_sets_none() -> None:
    broker = config(group_consumer_session_timeout_ms="50000")
    assert group_value({}, broker, "consumer.session.timeout.ms") == 50_000
    assert group_value({"consumer.session.timeout.ms": "46000"}, broker, "consumer.session.timeout.ms") == 46_000
    assert group_value({}, broker, "share.auto.offset.reset") == "latest"


def test_the_limits_are_the_brokers() -> None:
    with pytest.raises(InvalidConfig, match=r"must be less than or equal to group\.consumer\.max\.session\.timeout\.ms$"):
        validate_group({"consumer.session.timeout.ms": "90000"}, config())
    validate_group({"consumer.session.timeout.ms": "90000"}, config(group_consumer_max_session_timeout_ms="90000"))


def test_a_heartbeat_is_shorter_than_the_session() -> None:
    broker = config(group_consumer_max_heartbeat_interval_ms="60000")
    with pytest.raises(InvalidConfig, match=r"^consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms$"):
        validate_group({"consumer.heartbeat.interval.ms": "45000"}, broker)


@pytest.mark.parametrize("value", ["earliest", "by_duration:P1D", "by_duration:PT0.5S", "by_duration:P1DT2H3M4S", "by_duration:pt1h"])
def test_share_groups_begin_at_an_end_or_some_time_ago(value: str) -> None:
    validate_group({"share.auto.offset.reset": value}, config())


@pytest.mark.parametrize(
    "value", ["by_duration", "by_duration:P", "by_duration:PT", "by_duration:P1M", "by_duration:P1DT", "BY_DURATION:PT1H"]
)
def test_a_duration_is_what_java_takes_for_one(value: str) -> None:
    with pytest.raises(InvalidConfig, match=r"share\.auto\.offset\.reset"):
        validate_group({"share.auto.offset.reset": value}, config())


def test_a_setting_that_is_not_known_any_more_is_shown_without_its_value() -> None:
    (entry,) = describe_group(config(), {"old.setting": "secret"}, {"old.setting"})
    assert "secret" not in repr(entry)


def test_every_setting_says_in_a_sentence_what_it_is_for() -> None:
    for key in (*GROUP_CONFIGS.values(), *CLIENT_METRICS_CONFIGS.values()):
        assert key.doc[0].isupper(), key.name
        assert key.doc.endswith("."), key.name


def test_patterns_match_properties_of_clients() -> None:
    patterns = parse_patterns(["client_id=app-.*", " client_software_version = 3[.].*"])
    assert patterns["client_id"].fullmatch("app-1")
    assert patterns["client_software_version"].fullmatch("3.9")


@pytest.mark.parametrize("pattern", ["client_id", "client_id=a=b", "=a", "client_id=", "client_id=("])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidConfig, match="Illegal client matching pattern"):
        parse_patterns([pattern])
