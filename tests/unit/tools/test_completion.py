"""The scripts that complete command lines: every tool is in them, and a shell can read them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from barnabas import cli
from barnabas.tools import completion


def test_every_tool_is_completed() -> None:
    assert set(completion.words_of_tools()) == set(cli.tool_names())


def test_an_option_of_a_tool_is_completed() -> None:
    assert "--under-replicated-partitions" in dict(completion.words_of_tools()["topics"])


def test_a_command_of_a_tool_is_completed() -> None:
    assert "find-hanging" in dict(completion.words_of_tools()["transactions"])


def test_bash_completes(tmp_path: object) -> None:
    script = completion.bash(completion.words_of_tools())
    ask = 'COMP_WORDS=(barnabas topics --unava); COMP_CWORD=2; _barnabas; echo "${COMPREPLY[@]}"'
    told = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True, timeout=30)
    assert told.stdout == "--unavailable-partitions\n"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_shell_can_read_its_script(shell: str) -> None:
    script = {"zsh": completion.zsh, "fish": completion.fish}[shell](completion.words_of_tools())
    assert "--topic" in script or "-l topic" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=30)


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert completion.main(["powershell"]) == 2
    assert "usage: barnabas completion {bash,zsh,fish}" in capsys.readouterr().err
