"""The SCRAM users of --add-scram and --add-scram-file, which the broker creates before it serves the first connection.

The process list shows --add-scram to every user until the broker has read it. A file does not have that fault.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import Final

from barnabas.errors import IllegalArgument
from barnabas.security.new_user import NewUser
from barnabas.tools.command_line.command_line import hide_new_users
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode

STANDARD_INPUT: Final = "-"
_BYTES_MAX: Final = 1024 * 1024


def add_user_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--add-scram",
        action="append",
        default=[],
        metavar="SCRAM-SHA-256=[name=NAME,password=PASSWORD]",
        help="create a SCRAM user before the broker serves its first connection, unless the user exists; may be repeated",
    )
    parser.add_argument(
        "--add-scram-file",
        action="append",
        default=[],
        metavar="FILE",
        help="such users, one a line; for passwords, which --add-scram shows to other users at first; - is standard input",
    )


def read_new_users(given: Namespace) -> list[NewUser]:
    hide_new_users()
    users = [_parsed("--add-scram", text) for text in given.add_scram]
    for path in given.add_scram_file:
        users += [_parsed(f"--add-scram-file {path}", line) for line in _lines(path) if line.strip()]
    return users


def _parsed(option: str, text: str) -> NewUser:
    try:
        return NewUser.parse(text)
    except IllegalArgument as error:
        advice = "write it as SCRAM-SHA-256=[name=NAME,password=PASSWORD]"
        raise CannotRun(ExitCode.INVALID_CONFIG, f"{option}: {error}; {advice}") from None


def _lines(path: str) -> Iterable[str]:
    if path == STANDARD_INPUT:
        return sys.stdin.read(_BYTES_MAX).splitlines()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_BYTES_MAX).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CannotRun(ExitCode.INVALID_CONFIG, f"--add-scram-file {path}: {reason}; name a file that can be read") from None
