"""The scripts that complete command lines: every tool, command and option is in them, and a shell can read them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas import cli
from barnabas.tools import completion

NO_BROKER = "127.0.0.1:1"


def bash(line: str, path: str = "") -> list[str]:
    """What bash offers for the last word of a line."""
    words = line.split(" ")
    script = completion.bash(completion.grammars())
    quoted = " ".join(f"'{word}'" for word in words)
    ask = f'COMP_LINE="{line}"; COMP_POINT={len(line)}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}'
    run = ["bash", "-c", f'{script}\n{path}\n{ask}; _barnabas; echo "${{COMPREPLY[@]}}"']
    return subprocess.run(run, capture_output=True, text=True, check=True, timeout=60).stdout.split()


def test_every_tool_is_completed() -> None:
    assert set(completion.grammars()) == set(cli.tool_names())


@pytest.mark.parametrize("tool", ["up", "server", "convert", "demo", "audit", "adopt", "zookeeper", "pipeline", "topics", "features"])
def test_every_tool_has_its_options(tool: str) -> None:
    assert len(completion.grammars()[tool].options) > 0


def test_an_option_of_a_tool_is_completed() -> None:
    assert bash("barnabas topics --unava") == ["--unavailable-partitions"]


def test_an_option_of_up_is_completed() -> None:
    assert bash("barnabas up --br") == ["--brokers"]


def test_a_command_of_a_tool_is_completed() -> None:
    assert bash("barnabas transactions find-") == ["find-hanging"]


def test_an_option_of_a_command_is_completed_after_it_alone() -> None:
    assert bash("barnabas pipeline run --full-refresh-") == ["--full-refresh-all"]
    assert bash("barnabas pipeline new --full-refresh-") == []


def test_the_file_of_an_option_is_completed(tmp_path: Path) -> None:
    (tmp_path / "client.properties").touch()
    assert bash(f"barnabas topics --command-config {tmp_path}/cli") == [f"{tmp_path}/client.properties"]


def test_the_name_of_a_topic_is_asked_for_with_the_whole_command_line() -> None:
    asked = (
        'barnabas() { echo orders "$@" >&2; [ "$*" = "completion names topics topics --bootstrap-server b:1 --topic" ] && echo orders; }'
    )
    assert bash("barnabas topics --bootstrap-server b:1 --topic ", asked) == ["orders"]


def test_without_a_broker_no_topic_is_offered_and_nothing_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "barnabas", "completion", "names", "topics", "topics", "--bootstrap-server", NO_BROKER, "--topic"]
    assert subprocess.run(command, check=True, timeout=60).returncode == 0
    assert capfd.readouterr() == ("", "")


def test_settings_are_known_without_a_broker() -> None:
    command = [sys.executable, "-m", "barnabas", "completion", "names", "settings", "topics", "--bootstrap-server", NO_BROKER, "--config"]
    output = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True).stdout.split()
    assert "retention.ms" in output and "log.retention.ms" not in output


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_shell_can_read_its_script(shell: str) -> None:
    script = {"zsh": completion.zsh, "fish": completion.fish}[shell](completion.grammars())
    assert "barnabas completion names" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=30)


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        completion.main(["powershell"])
    assert ended.value.code == 2
    assert "invalid choice: 'powershell'" in capsys.readouterr().err
