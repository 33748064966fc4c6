from __future__ import annotations

import io
from argparse import ArgumentParser
from pathlib import Path

import pytest

from barnabas.security.new_user import NewUser
from barnabas.tools.command_line.exit_codes import CannotRun
from barnabas.tools.running.new_users import add_user_options, read_new_users


def read(*arguments: str) -> list[NewUser]:
    parser = ArgumentParser()
    add_user_options(parser)
    return read_new_users(parser.parse_args(arguments))


def test_users_come_from_the_command_line_a_file_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "users"
    file.write_text("SCRAM-SHA-256=[name=bob,password=y]\n\nSCRAM-SHA-512=[name=bob,password=y]\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("SCRAM-SHA-256=[name=carol,password=z]\n"))
    users = read("--add-scram", "SCRAM-SHA-256=[name=alice,password=x]", "--add-scram-file", str(file), "--add-scram-file", "-")
    assert [(user.name, user.mechanism) for user in users] == [
        ("alice", "SCRAM-SHA-256"),
        ("bob", "SCRAM-SHA-256"),
        ("bob", "SCRAM-SHA-512"),
        ("carol", "SCRAM-SHA-256"),
    ]


def test_an_error_names_the_option_and_not_the_password(tmp_path: Path) -> None:
    with pytest.raises(CannotRun) as raised:
        read("--add-scram", "SCRAM-SHA-256=[password=geheim]")
    assert str(raised.value) == (
        "--add-scram: You must supply 'name' to add-scram; write it as SCRAM-SHA-256=[name=NAME,password=PASSWORD]"
    )
    with pytest.raises(CannotRun, match=r"--add-scram-file .*missing: No such file or directory; name a file that can be read"):
        read("--add-scram-file", str(tmp_path / "missing"))
