"""The command line of this process as every user sees it in the process list (`ps`, /proc/PID/cmdline)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Final

from barnabas import system

OVERRIDE: Final = b"--override"
ADD_SCRAM: Final = b"--add-scram"
_ARG_START: Final = 48 - 3  # fields of proc(5)'s stat, counted from 3, which follows the name in brackets
_ARG_END: Final = 49 - 3
_STARS: Final = 8


def hide_overrides(is_secret: Callable[[str], bool]) -> None:
    """Overwrites the values of secret settings of --override in the memory from which the kernel reads the command line.

    Works on Linux only; on other systems they stay visible.
    """
    _hide(OVERRIDE, is_secret)


def hide_new_users() -> None:
    """The same for all values of --add-scram: `SCRAM-SHA-256=********`."""
    _hide(ADD_SCRAM, lambda mechanism: True)


def secret_values(arguments: bytes, is_secret: Callable[[str], bool], option: bytes = OVERRIDE) -> Iterator[tuple[int, int]]:
    """The start and end positions of the values in NUL-terminated arguments. The option takes NAME=VALUE."""
    start, follows = 0, False
    for argument in arguments.split(b"\0"):
        given = argument if follows else argument.removeprefix(option + b"=") if argument.startswith(option + b"=") else b""
        name, equals, value = given.partition(b"=")
        end = start + len(argument)
        if equals and value and is_secret(name.decode(errors="replace").strip()):
            yield end - len(value), end
        follows = argument == option
        start = end + 1


def _hide(option: bytes, is_secret: Callable[[str], bool]) -> None:
    arguments = _arguments()
    if arguments is None:
        return
    address, shown = arguments
    for start, end in secret_values(shown, is_secret, option):
        stars = b"*" * min(_STARS, end - start)
        ctypes.memmove(address + start, stars.ljust(end - start, b"\0"), end - start)


def _arguments() -> tuple[int, bytes] | None:
    """The address of the arguments in this process, and their bytes."""
    if not system.HAS_PROC:
        return None
    try:
        with open("/proc/self/stat", "rb") as stat, open("/proc/self/cmdline", "rb") as command_line:
            fields = stat.read().rpartition(b") ")[2].split()
            shown = command_line.read()
        address, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    except (OSError, IndexError, ValueError):
        return None
    if not 0 < address < end or ctypes.string_at(address, end - address) != shown:
        return None
    return address, shown
