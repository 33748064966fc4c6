"""The command lines of Kafka's tools: what is taken, what is refused and in which words."""

from __future__ import annotations

import pytest

from barnabas.tools.command_line.options import Option, Options, ShowUsage, ShowVersion, UsageError

OPTIONS = (
    Option("topic", "The topic.", "required", described_as="topic"),
    Option("partitions", "How many.", "required", "Integer"),
    Option("timeout", "How long.", "required", "Long", default="30000"),
    Option("keys", "Several.", "required", separator=","),
    Option("state", "Of what is listed.", "optional", available_if=("list",)),
    Option("list", "List."),
)


def options(line: str) -> Options:
    return Options(OPTIONS, line.split())


def test_a_value_may_follow_or_be_joined_by_an_equals_sign() -> None:
    assert options("--topic a").text("topic") == options("--topic=a").text("topic") == options("-topic a").text("topic") == "a"


def test_a_value_may_look_like_an_option() -> None:
    assert options("--topic --list").text("topic") == "--list"


def test_what_is_not_given_has_its_default() -> None:
    assert options("").integer("timeout") == 30000
    assert options("").optional("topic") is None


def test_an_option_may_be_repeated_where_several_values_are_asked_for() -> None:
    assert options("--topic a --topic b").texts("topic") == ["a", "b"]


def test_an_option_that_is_repeated_has_no_one_value() -> None:
    with pytest.raises(UsageError, match="Found multiple arguments for option topic, but you asked for only one"):
        options("--topic a --topic b").text("topic")


def test_values_are_split_at_their_separator() -> None:
    assert options("--keys a,b,,c").texts("keys") == ["a", "b", "c"]


def test_an_optional_value_is_not_an_option() -> None:
    assert options("--list --state").optional("state") is None
    assert options("--list --state stable").optional("state") == "stable"


def test_an_option_may_depend_on_another() -> None:
    with pytest.raises(UsageError, match=r"Option\(s\) \[state\] are unavailable given other options on the command line"):
        options("--state stable")


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UsageError, match=r"^cats is not a recognized option$"):
        options("--cats 9")


def test_a_missing_value_is_named() -> None:
    with pytest.raises(UsageError, match=r"^Option topic requires an argument$"):
        options("--topic")


@pytest.mark.parametrize("text", ["many", "1.5", "2147483648", ""])
def test_what_is_not_a_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"^Cannot parse argument '{text}' of option partitions$"):
        Options(OPTIONS, ["--partitions", text]).integer("partitions")


def test_a_long_may_be_longer_than_an_integer() -> None:
    assert options("--timeout 2147483648").integer("timeout") == 2**31


def test_a_required_option_is_named_and_the_options_are_shown() -> None:
    with pytest.raises(ShowUsage, match=r'Missing required argument "\[topic\]"') as shown:
        options("--list").require("topic")
    assert "--partitions <Integer>" in shown.value.help_text


def test_options_that_do_not_go_together_are_named() -> None:
    with pytest.raises(ShowUsage, match=r'Option "\[topic\]" can\'t be used with option "\[list\]"'):
        options("--topic a --list").refuse_with("topic", ("partitions", "list"))


def test_the_version_counts_more_than_what_is_wrong() -> None:
    with pytest.raises(ShowVersion):
        options("--version --state x").maybe_help_or_version("about")


def test_the_order_of_the_command_line_is_kept() -> None:
    assert options("--list --topic a --list").order == ["list", "topic", "list"]
