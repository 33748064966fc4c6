"""`python -m benchmarks [PART …]`: runs the parts named, or all of them, prints their figures and writes them to docs/performance.md."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from importlib.metadata import version
from pathlib import Path

from barnabas.records import batch
from benchmarks import (
    broker,
    clients,
    cluster,
    cluster_transactions,
    connections,
    console,
    groups,
    many_topics,
    metrics,
    quotas,
    report,
    security,
    spark,
    storage,
    transactions,
)

PARTS = {
    "broker": broker,
    "groups": groups,
    "transactions": transactions,
    "cluster": cluster,
    "cluster-transactions": cluster_transactions,
    "clients": clients,
    "many-topics": many_topics,
    "connections": connections,
    "quotas": quotas,
    "metrics": metrics,
    "console": console,
    "security": security,
    "storage": storage,
    "spark": spark,
}
PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measures this project, by turns with what it is compared to.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which parts to run: {', '.join(PARTS)} (all if none is named)")
    parser.add_argument("--megabytes", type=int, default=1000, help="how much log to write and read for each figure (1000)")
    parser.add_argument("--turns", type=int, default=3, help="how often each figure is measured (3, after one that does not count)")
    parser.add_argument("--no-page", action="store_true", help="print the figures only, leave docs/performance.md as it is")
    parser.add_argument("--before", type=Path, metavar="PATH", help="metrics: compare with the code of another checkout, without metrics")
    parser.add_argument("--minutes", type=float, default=console.minutes, help="console: how long it is used for its memory (2)")
    arguments = parser.parse_args()
    metrics.before, console.minutes = arguments.before, arguments.minutes
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    sections = _sections()
    for name in arguments.parts or PARTS:
        figures = PARTS[name].run(arguments.megabytes, arguments.turns)
        module = sys.modules[PARTS[name].__name__]
        print(f"\n{name}\n\n{report.table(figures)}\n", flush=True)
        how = f"{arguments.turns} turns after one that does not count"
        sections[name] = f"## {name}\n\n{(module.__doc__ or '').strip()}\n\n{report.table(figures)}\n\n{_measured(how)}\n"
        if not arguments.no_page:
            others = [section for section in sections if section not in PARTS]  # of `make soak`
            PAGE.write_text(f"{_head()}\n" + "\n".join(sections[name] for name in (*PARTS, *others) if name in sections))
    return 0


def _sections() -> dict[str, str]:
    """What the page says of each part: one that is not measured now stays as it was."""
    parts = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)[1:] if PAGE.exists() else []
    return {part.split(maxsplit=2)[1]: part.rstrip() + "\n" for part in parts}


def _head() -> str:
    return "# Performance\n\nWritten by `make bench`, part by part; run it yourself to check. Figures are medians, with their spread.\n"


def _measured(how: str) -> str:
    compiled = "compiled with mypyc" if batch.__file__.endswith(".so") else "not compiled"
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}"
    return f"Measured with {how}, on {machine}, Python {platform.python_version()}, barnabas {version('barnabas')}, {compiled}."


if __name__ == "__main__":
    sys.exit(main())
