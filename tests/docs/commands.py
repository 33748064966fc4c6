"""The commands of a block of shell, as a reader would type them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.documentation import Block

_SERVICE = re.compile(r"(bin/kafka-server-start\.sh(?! +-daemon)|barnabas (up|server|zookeeper|console))(?![\w-])")
_HERE_DOCUMENT = re.compile(r"(?<!<)<<-? *['\"]?(\w+)['\"]?")
_PRINTS = re.compile(r" # (?:.*[,;:] )?prints (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """`line` is that of its page."""

    line: int
    text: str

    @property
    def prints(self) -> str:
        """The line that the page says it prints, in a comment: `# prints …`."""
        return "\n".join(_PRINTS.findall(self.text))

    @property
    def service(self) -> str | None:
        """The tool, if it runs until it is stopped: `up`, `server`, `zookeeper` or `console`."""
        match = _SERVICE.match(self.text)
        return None if match is None else match[2] or "server"

    @property
    def starts_broker(self) -> bool:
        return self.service not in (None, "console") or "-daemon" in self.text

    @property
    def program(self) -> str:
        return self.text.split()[0]


def commands(block: Block) -> Iterator[Command]:
    """A command ends with its line, unless the line ends with a backslash or begins a here document."""
    lines: list[str] = []
    end: str | None = None
    for number, line in enumerate(block.source.splitlines(), block.line):
        if not lines and (not line.strip() or line.startswith("#")):
            continue
        lines.append(line)
        if end is None and (here := _HERE_DOCUMENT.search(line)) is not None:
            end = here[1]
        elif line == end:
            end = None
        if end is None and not line.endswith("\\"):
            yield Command(number - len(lines) + 1, "\n".join(lines))
            lines = []
    if lines:
        raise ValueError(f"{block}: the last command has no end")


def missing_line(printed: str, expected: str) -> str | None:
    """A line of `expected` that `printed` has not, in their order; `…` stands for anything, and spaces for any number of them."""
    remaining = iter(printed.splitlines())
    for line in expected.splitlines():
        pattern = re.compile(r"\s*" + r"\s+".join(re.escape(word).replace("…", ".*") for word in line.split()) + r"\s*")
        if not any(pattern.fullmatch(shown) for shown in remaining):
            return line
    return None
