"""What a broker's process does with the memory of large requests once they are over."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A piece of 30 MB was there once; then comes one of 20 MB, with something small behind it, and goes.
LEFT_BEHIND = """
import os, sys
from barnabas.tools.running import run
if sys.argv[1] == "as a broker":
    run.hand_large_pieces_back()
def pages():
    return int(open("/proc/self/statm").read().split()[1])
before = pages()
piece = bytearray(30 << 20); del piece
piece = bytearray(20 << 20); small = [bytearray(100_000) for _ in range(5)]; del piece
print((pages() - before) * os.sysconf("SC_PAGE_SIZE"))
"""


def left_behind(how: str) -> int:
    return int(subprocess.run([sys.executable, "-c", LEFT_BEHIND, how], check=True, capture_output=True, text=True, timeout=60).stdout)


@pytest.mark.linux
def test_a_large_piece_of_memory_is_given_back_when_it_is_freed() -> None:
    assert left_behind("as a broker") < 5_000_000
