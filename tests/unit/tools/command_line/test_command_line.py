"""Secrets that stand on the command line of a broker: where, and that the process list does not keep them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.tools.command_line.command_line import ADD_SCRAM, secret_values


def hidden(*arguments: str) -> list[str]:
    """The values that would be overwritten."""
    text = b"".join(argument.encode() + b"\0" for argument in arguments)
    return [text[start:end].decode() for start, end in secret_values(text, lambda name: name.endswith("password"))]


def test_both_forms_of_the_option_are_found() -> None:
    assert hidden("barnabas", "server", "--override", "a.password=x", "--override=b.password=y=z") == ["x", "y=z"]


def test_settings_that_are_no_secrets_stay() -> None:
    assert hidden("server", "--override", "broker.id=1", "--override=log.dirs=/password=1") == []


def test_only_overrides_are_looked_at() -> None:
    assert hidden("a.password=x", "--data", "a.password=x", "--override-file", "a.password=x") == []


def test_an_option_without_its_value_is_no_problem() -> None:
    assert hidden("server", "--override") == hidden("server", "--override", "a.password") == hidden("--override", "a.password=") == []


def test_passwords_of_new_users_are_found() -> None:
    arguments = b"server\0--add-scram\0SCRAM-SHA-256=[name=a,password=x]\0--add-scram=SCRAM-SHA-512=[name=b]\0--add-scram-file\0a=b\0"
    values = [arguments[start:end] for start, end in secret_values(arguments, lambda name: True, ADD_SCRAM)]
    assert values == [b"[name=a,password=x]", b"[name=b]"]


@pytest.mark.linux
def test_the_value_is_gone_from_the_process_list_and_the_rest_stays() -> None:
    program = """
from pathlib import Path
from barnabas.tools.command_line.command_line import hide_overrides
hide_overrides(lambda name: name == "ssl.key.password")
print(Path("/proc/self/cmdline").read_bytes().decode(), end="")
"""
    options = ["--override", "broker.id=1", "--override", "ssl.key.password=geheimnis-geheimnis", "--override=ssl.key.password=oh"]
    shown = subprocess.run([sys.executable, "-c", program, *options], capture_output=True, text=True, check=True).stdout.split("\0")
    assert [argument for argument in shown if argument][-5:] == [
        "--override",
        "broker.id=1",
        "--override",
        "ssl.key.password=********",
        "--override=ssl.key.password=**",
    ]
