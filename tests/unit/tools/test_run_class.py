"""`kafka-run-class.sh`: the names of Kafka's classes are those of our tools, and any other name is answered with what to do."""

from __future__ import annotations

import pytest

from barnabas import cli
from barnabas.tools.run_class import CLASSES


def test_each_class_is_a_tool_that_there_is() -> None:
    assert set(CLASSES) <= set(cli.tool_names())


@pytest.mark.parametrize("name", ["kafka.admin.TopicCommand", "org.apache.kafka.tools.TopicCommand"])
def test_the_tool_gets_the_words_after_the_class(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kafka-run-class", "-name", "x", "-loggc", name, "--list"]) == 1
    assert capsys.readouterr().err == "--bootstrap-server must be specified\n"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("kafka.tools.GetOffsetShel", "did you mean kafka.tools.GetOffsetShell?"),
        ("kafka.tools.MirrorMaker", "`barnabas --help` lists the tools that there are"),
    ],
)
def test_a_class_that_is_no_tool_is_answered_with_what_to_do(name: str, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kafka-run-class", name, "--x"]) == 1
    assert capsys.readouterr().err == f"barnabas: no tool here is the class {name}, and there is no JVM to run it; {advice}\n"
