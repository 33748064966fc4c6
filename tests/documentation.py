"""What tests take out of the pages of docs/ and the README: blocks of code, prose, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")))

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)(?P<output> output)?$")
_NOT_RUN = re.compile(r"^ *<!-- not run: (.+) -->$")
_HEADING = re.compile(r"^#+ (.+)$")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """What stands between two fences; `line` is where `source` begins in its page, `section` the heading above it.

    A block that begins with "```text output" is what the block before it prints. `not_run` is the reason that the page gives in a comment
    right above a block that no test runs.
    """

    page: str
    line: int
    source: str
    language: str
    section: str = ""
    is_output: bool = False
    not_run: str | None = None

    @property
    def is_run(self) -> bool:
        return self.not_run is None

    def __str__(self) -> str:
        return f"{Path(self.page).name}:{self.line}"


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    blocks: list[Block] = []
    section, above, fence, begin = "", "", None, 0
    lines = text(page).splitlines()
    for number, line in enumerate(lines, 1):
        if fence is None:
            fence, begin = _FENCE.match(line), number
            if fence is None:
                section = heading[1] if (heading := _HEADING.match(line)) else section
                above = line
        elif line == f"{fence['indent']}```":
            source = "".join(f"{within.removeprefix(fence['indent'])}\n" for within in lines[begin : number - 1])
            reason = mark[1] if (mark := _NOT_RUN.match(above)) else None
            blocks.append(Block(page, begin + 1, source, fence["language"], section, bool(fence["output"]), reason))
            fence, above = None, ""
    return blocks


def python_blocks(page: str) -> list[Block]:
    return [block for block in blocks(page) if block.language == "python"]


def prose(page: str) -> list[tuple[int, str]]:
    """The lines outside of blocks, with their numbers."""
    inside = {number for block in blocks(page) for number in range(block.line - 1, block.line + block.source.count("\n") + 1)}
    return [(number, line) for number, line in enumerate(text(page).splitlines(), 1) if number not in inside]


def remarks(page: str) -> set[str]:
    """All code in the text of a page and in the last cells of its tables; neither in blocks nor in the other cells."""
    shown = [line.split("|")[-2] if line.startswith("|") else line for _, line in prose(page)]
    return {code for line in shown for code in _CODE.findall(line)}


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
