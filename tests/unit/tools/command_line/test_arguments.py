"""The command lines with sub-commands: argparse with argparse4j's refusals."""

from __future__ import annotations

import pytest

from barnabas import cli
from barnabas.tools import cluster, features, transactions
from barnabas.tools.command_line.arguments import ArgumentsRefused, Parser, number, refused_text
from barnabas.tools.command_line.options import ShowVersion


def refusal(parser: Parser, line: str) -> str:
    with pytest.raises(ArgumentsRefused) as refused:
        parser.parse(line.split())
    return str(refused.value)


def test_a_missing_command_is_too_few_arguments() -> None:
    assert refusal(cluster.build_parser(), "") == "too few arguments"


def test_an_unknown_command_is_shown_the_known_ones() -> None:
    message = refusal(cluster.build_parser(), "cats")
    assert message == "invalid choice: 'cats' (choose from 'cluster-id', 'unregister', 'list-endpoints')"


def test_a_missing_option_is_named() -> None:
    assert refusal(transactions.build_parser(), "list") == "argument --bootstrap-server is required"


def test_one_of_several_options_is_missing() -> None:
    message = refusal(features.build_parser(), "describe")
    assert message == "one of the arguments --bootstrap-server --bootstrap-controller is required"


def test_an_unknown_option_is_named() -> None:
    assert refusal(cluster.build_parser(), "cluster-id -b x:1 --cats") == "unrecognized arguments: '--cats'"


def test_what_is_no_number_is_refused() -> None:
    message = refusal(cluster.build_parser(), "unregister -b x:1 --id first")
    assert message == "argument --id/-i: could not convert 'first' to Integer (For input string: \"first\")"


def test_a_number_too_large_for_java_is_refused() -> None:
    parser = Parser(prog="p")
    parser.add_argument("--n", type=number("Short"))
    assert refusal(parser, "--n 32768").startswith("argument --n: could not convert '32768' to Short")


def test_the_version_counts_more_than_what_is_missing() -> None:
    with pytest.raises(ShowVersion):
        transactions.build_parser().parse(["--version"])


def test_a_refusal_is_shown_below_the_usage() -> None:
    with pytest.raises(ArgumentsRefused) as refused:
        cluster.build_parser().parse([])
    assert refused_text(refused.value).splitlines()[-1] == "kafka-cluster: error: too few arguments"


@pytest.mark.parametrize(
    ("words", "unknown"),
    [
        (["--no-such"], "--no-such"),
        (["--id", "--no-such"], None),
        (["--id=7", "-x"], "-x"),
        (["-i7", "describe", "--deep", "--no-such"], "--no-such"),
        (["describe", "--depth", "-1"], None),
    ],
)
def test_an_option_that_there_is_not_is_complained_of_before_anything_is_missed(words: list[str], unknown: str | None) -> None:
    parser = Parser(prog="tool")
    parser.add_argument("--id", "-i", required=True)
    parser.add_argument("--needed", required=True)
    describe = parser.add_subparsers(dest="command").add_parser("describe")
    describe.add_argument("--deep", action="store_true")
    describe.add_argument("--depth", type=number("Integer"))
    with pytest.raises(ArgumentsRefused) as refused:
        parser.parse(words)
    assert (f"unrecognized arguments: '{unknown}'" in str(refused.value)) == (unknown is not None)


def test_help_ends_with_1_as_kafkas_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kafka-cluster", "--help"]) == 1
    assert "list-endpoints" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--json", "list"], ["list", "--json"]])
def test_json_may_stand_before_a_command_and_after_it(words: list[str]) -> None:
    parser = Parser(prog="tool")
    parser.add_subparsers(dest="command").add_parser("list")
    parser.add_json()
    assert (parser.parse(words).json, parser.parse(["list"]).json) == (True, False)
