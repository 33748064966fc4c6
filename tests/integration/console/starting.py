"""`barnabas up` and `barnabas console` as processes, and what they print."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.ready import is_readable

DEADLINE_S: Final = 120


@dataclass(frozen=True)
class Started:
    """A process that is ready: the line that says so, and the file of its standard error."""

    process: subprocess.Popen[str]
    ready: str
    log: Path

    def find_all(self, pattern: str) -> list[str]:
        """What the groups of a pattern match in the lines that it has printed for people."""
        return re.findall(pattern, self.log.read_text())


@contextmanager
def started(log: Path, *arguments: str) -> Generator[Started, None, None]:
    """`barnabas ARGUMENTS`, once it has printed that it is ready, until the end of the block. It must log no fault."""
    with log.open("w") as errors:
        process = subprocess.Popen([sys.executable, "-m", "barnabas", *arguments], stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        assert is_readable(process.stdout, DEADLINE_S), log.read_text()
        ready = process.stdout.readline()
        assert ready.startswith("ready"), log.read_text()
        yield Started(process, ready, log)
        assert "Traceback" not in log.read_text(), log.read_text()
    finally:
        process.terminate()
        try:
            process.wait(DEADLINE_S)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
