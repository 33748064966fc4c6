"""Keys of a terminal, one at a time, without Enter and without an echo."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def reading_keys(on_key: Callable[[str], None]) -> Generator[None, None, None]:
    """A context in which each key of standard input calls `on_key` on the running loop; without a terminal it does nothing."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    loop = asyncio.get_running_loop()

    def read() -> None:
        for character in os.read(descriptor, 64).decode("utf-8", "ignore"):
            on_key(character)

    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
