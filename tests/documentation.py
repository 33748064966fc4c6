"""What tests take out of the pages of docs/ and the README: blocks of Python, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPILED_ONLY = "# The tests only compile this"

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED_PYTHON = re.compile(r"^    (from \w[\w.]* import |import \w|def \w+\(|class \w|with \w+\(|async )")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """A block of Python; `line` is where it begins in its page."""

    page: str
    line: int
    source: str

    @property
    def is_run(self) -> bool:
        return not self.source.startswith(COMPILED_ONLY)

    def __str__(self) -> str:
        return f"{Path(self.page).name}:{self.line}"


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def python_blocks(page: str) -> list[Block]:
    content = text(page)
    return [Block(page, content.count("\n", 0, found.start()) + 2, found[1]) for found in _BLOCK.finditer(content)]


def unmarked_python(page: str) -> list[str]:
    """Lines of Python that stand in a block without a language, where no test would find them."""
    outside = _BLOCK.sub("", text(page))
    return [line for line in outside.splitlines() if _INDENTED_PYTHON.match(line)]


def remarks(page: str) -> set[str]:
    """All code in the text of a page and in the last cells of its tables; neither in blocks nor in the other cells."""
    prose = []
    for line in _BLOCK.sub("", text(page)).splitlines():
        prose.append(line.split("|")[-2] if line.startswith("|") else line)
    return {code for line in prose for code in _CODE.findall(line)}


@dataclass(frozen=True)
class Row:
    """A row of a table that translates: what is written in code in its first two cells."""

    subject: str
    theirs: tuple[str, ...]
    ours: tuple[str, ...]


def translations(page: str) -> Iterator[Row]:
    """The rows of all tables whose heads are `| client: subject | Barnabas | what differs |`."""
    subject = None
    for line in text(page).splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 3:
            subject = None
        elif cells[1:] == ["Barnabas", "what differs"]:
            subject = cells[0]
        elif subject is not None and "`" in cells[0] + cells[1]:
            yield Row(subject, tuple(_CODE.findall(cells[0])), tuple(_CODE.findall(cells[1])))
