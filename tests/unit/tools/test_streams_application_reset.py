"""What kafka-streams-application-reset takes for internal topics, plans and offsets; and small refusals of its neighbours."""

from __future__ import annotations

import pytest

from barnabas.tools import delegation_tokens, streams_application_reset
from barnabas.tools.administration.reassignment_plan import PartitionReplica
from barnabas.tools.command_line.failures import BadArgument
from barnabas.tools.command_line.options import Options
from barnabas.tools.reassign_partitions import move_state
from barnabas.tools.streams_application_reset import Unparsable, bounded, matches_internal_topic_format, parse_reset_plan
from barnabas.topic_partition import TopicPartition


@pytest.mark.parametrize(
    "topic",
    [
        "app-store-changelog",
        "app-x-repartition",
        "app-x-subscription-registration-topic",
        "app-x-subscription-response-topic",
        "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000004-topic",
        "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-12-topic",
    ],
)
def test_internal_topics_are_known_by_their_names(topic: str) -> None:
    assert matches_internal_topic_format(topic)


@pytest.mark.parametrize("topic", ["app-changelog-x", "app", "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-topic", "app-repartitions"])
def test_others_are_not(topic: str) -> None:
    assert not matches_internal_topic_format(topic)


def test_an_input_topic_may_be_called_like_an_internal_one() -> None:
    options = Options(streams_application_reset.OPTIONS, ["--application-id", "app", "--input-topics", "app-in-changelog"])
    assert not streams_application_reset._is_internal_of("app-in-changelog", options)
    assert streams_application_reset._is_internal_of("app-x-changelog", options)
    assert not streams_application_reset._is_internal_of("other-x-changelog", options)


def test_a_plan_has_three_words_in_each_line() -> None:
    assert parse_reset_plan("t,0,5\nu,1,7\n") == {TopicPartition("t", 0): 5, TopicPartition("u", 1): 7}
    for text in ("", "t,0", "t,0,5,6"):
        with pytest.raises(Unparsable):
            parse_reset_plan(text)
    with pytest.raises(BadArgument, match='For input string: "x"'):
        parse_reset_plan("t,x,5")


def test_an_offset_is_moved_into_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    assert [bounded(offset, 2, 10) for offset in (1, 5, 30)] == [2, 5, 10]
    assert capsys.readouterr().out == (
        "New offset (1) is lower than earliest offset. Value will be set to 2\n"
        "New offset (30) is higher than latest offset. Value will be set to 10\n"
    )


def test_an_hmac_is_base64() -> None:
    assert delegation_tokens.decode_hmac("AAEC") == b"\0\1\2"
    with pytest.raises(BadArgument, match="Illegal base64 character 23"):
        delegation_tokens.decode_hmac("AA#A")
    with pytest.raises(BadArgument, match="wrong 4-byte ending unit"):
        delegation_tokens.decode_hmac("A")


def test_minus_one_is_a_value_where_a_number_may_follow() -> None:
    options = Options(delegation_tokens.OPTIONS, ["--max-life-time-period", "-1", "--create"])
    assert options.integer("max-life-time-period") == -1
    assert options.has("create")
    assert Options(delegation_tokens.OPTIONS, ["--max-life-time-period", "x"]).texts("max-life-time-period") == []


class Info:
    def __init__(self, current: str | None, future: str | None) -> None:
        self.current_replica_log_dir = current
        self.future_replica_log_dir = future


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (None, "Partition t-0 cannot be found in any live log directory on broker 1."),
        (
            Info(None, None),
            "Partition t-0 is not found in any live log dir on broker 1. There is likely an offline log directory on the broker.",
        ),
        (Info("/new", None), "Reassignment of replica t-0-1 completed successfully."),
        (Info("/old", None), "Partition t-0 on broker 1 is not being moved from log dir /old to /new."),
        (Info("/old", "/new"), "Reassignment of replica t-0-1 is still in progress."),
        (Info("/old", "/else"), "Partition t-0 on broker 1 is being moved to log dir /else instead of /new."),
    ],
)
def test_the_state_of_a_move_is_told(info: Info | None, text: str) -> None:
    assert move_state(PartitionReplica("t", 0, 1), "/new", info) == text
