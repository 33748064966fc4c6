"""`python -m benchmarks [PART …]`: runs the parts named, or all of them, prints their figures and writes them to docs/performance.md."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from barnabas.records import batch
from benchmarks import broker, connections, groups, many_topics, report, storage

PARTS = {"broker": broker, "groups": groups, "many-topics": many_topics, "connections": connections, "storage": storage}
PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measures this project, by turns with what it is compared to.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which parts to run: {', '.join(PARTS)} (all if none is named)")
    parser.add_argument("--megabytes", type=int, default=1000, help="how much log to write and read for each figure (1000)")
    parser.add_argument("--turns", type=int, default=3, help="how often each figure is measured (3, after one that does not count)")
    parser.add_argument("--no-page", action="store_true", help="print the figures only, leave docs/performance.md as it is")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    sections = []
    for name in arguments.parts or PARTS:
        figures = PARTS[name].run(arguments.megabytes, arguments.turns)
        module = sys.modules[PARTS[name].__name__]
        print(f"\n{name}\n\n{report.table(figures)}\n", flush=True)
        sections.append(f"## {name}\n\n{(module.__doc__ or '').strip()}\n\n{report.table(figures)}\n")
    if not arguments.no_page:
        PAGE.write_text(f"{_head(arguments.megabytes, arguments.turns)}\n" + "\n".join(sections))
    return 0


def _head(megabytes: int, turns: int) -> str:
    compiled = "compiled with mypyc" if batch.__file__.endswith(".so") else "not compiled"
    return (
        "# Performance\n\n"
        "Written by `make bench`; run it yourself to check. "
        f"Each figure is the median of {turns} turns after one that does not count, alternating with its limit, over {megabytes:,} MB.\n\n"
        f"Machine: {os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}. "
        f"Python {platform.python_version()}, barnabas {version('barnabas')}, {compiled}.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
